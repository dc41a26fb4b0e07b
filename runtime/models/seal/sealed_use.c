/*
 * Uses of sealed memory: products, and plaintext copies on request.
 */
#include "sealed_state.h"

#include "core/check.h"
#include "quantised/formats/quant_block.h"
#include "seal/chacha.h"
#include "seal/sealed_product.h"
#include "seal/tagger.h"
#include "seal_rows.h"

#include <stdlib.h>
#include <string.h>

static tol_status refuse_changed(const struct tol_sealed *s) {
    tol_status status = TOL_OK;
    TOL_CHECK(!s->is_changed, TOL_MISMATCH,
              "sealed memory \"%s\" was changed, and is not used until it is verified", s->label);
out:
    return status;
}

/* ---- products ---- */

static tol_status sealed_use_multiply(struct tol_sealed *s, struct tol_stream *stream,
                                      struct tol_place x, struct tol_place y) {
    tol_status status = TOL_OK;
    if (s->verify_each_use) {
        TOL_TRY(sealed_verify(s));
    } else {
        TOL_TRY(refuse_changed(s));
    }
    const struct kn_sealed_product problem = {.rows = s->shape.rows,
                                              .k = s->shape.row_bytes /
                                                   sizeof(struct kn_block_q4_k) * 256,
                                              .weights = kn_place_of(s->data, 0),
                                              .x = {x.address, x.bytes},
                                              .y = {y.address, y.bytes},
                                              .rounds = s->rounds,
                                              .stream = &s->secret->stream};
    status = kn_sealed_product(s->sealer->kernels, stream, &problem);
out:
    return status;
}

tol_status tol_seal_product(struct tol_sealed *sealed, struct tol_stream *stream,
                            struct tol_place x, struct tol_place y) {
    tol_status status = TOL_OK;
    TOL_CHECK(sealed != NULL && stream != NULL, TOL_INVALID_ARGUMENT,
              "tol_seal_product: an argument is NULL");
    TOL_CHECK(sealed->shape.row_bytes % sizeof(struct kn_block_q4_k) == 0, TOL_UNSUPPORTED,
              "rows of %zu bytes are not whole blocks of q4_k, which have %zu",
              sealed->shape.row_bytes, sizeof(struct kn_block_q4_k));
    pthread_mutex_lock(&sealed->lock);
    status = sealed_use_multiply(sealed, stream, x, y);
    pthread_mutex_unlock(&sealed->lock);
out:
    return status;
}

/* ---- plain bytes on the device ---- */

static tol_status open_to(struct tol_sealed *s, struct tol_place out) {
    tol_status status = TOL_OK;
    uint8_t *tags = NULL;
    TOL_TRY(refuse_changed(s));
    tags = malloc(s->tags_bytes);
    TOL_CHECK(tags != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for %zu tags", s->chunks);
    struct kn_seal_chunks pass = {.how = KN_SEAL_OPEN,
                                  .out = {out.address, out.bytes},
                                  .from = &s->secret->stream,
                                  .before = &s->secret->tagger};
    TOL_TRY(sealed_pass(s, &pass));
    TOL_TRY(tol_buffer_read(s->tags_buffer, tags, s->tags_bytes));
    status = sealed_compare(s, tags);
    if (status == TOL_OK) goto out;
    /* Nobody is to work with what was changed. */
    TOL_TRY(sealed_wipe(s->sealer->context, out, s->bytes));
    status = TOL_MISMATCH; /* and the message is that of the change */
out:
    free(tags);
    return status;
}

tol_status tol_seal_open(struct tol_sealed *sealed, struct tol_place out) {
    tol_status status = TOL_OK;
    TOL_CHECK(sealed != NULL && out.address != 0, TOL_INVALID_ARGUMENT,
              "tol_seal_open: an argument is NULL");
    pthread_mutex_lock(&sealed->lock);
    status = open_to(sealed, out);
    pthread_mutex_unlock(&sealed->lock);
out:
    return status;
}

/* ---- plain bytes on the host ---- */

static tol_status sealed_use_read_all(struct tol_sealed *s, void *plain) {
    enum { SPAN_BYTES = 256 * SEAL_CHUNK_BYTES };
    tol_status status = TOL_OK;
    uint8_t *tags = malloc(s->tags_bytes);
    char *span = malloc(s->bytes < SPAN_BYTES ? s->bytes : SPAN_BYTES);
    TOL_CHECK(tags != NULL && span != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for %d encrypted bytes", SPAN_BYTES);
    for (size_t at = 0; at < s->bytes; at += SPAN_BYTES) {
        const size_t bytes = s->bytes - at < SPAN_BYTES ? s->bytes - at : SPAN_BYTES;
        const uint64_t chunk = at / SEAL_CHUNK_BYTES;
        TOL_TRY(tol_buffer_read_at(s->data, at, span, bytes));
        kn_tagger_tags(&s->secret->tagger, chunk, 0, span, bytes, tags + chunk * SEAL_TAG_BYTES);
        kn_chacha_add(&s->secret->stream, s->rounds, (uint32_t)(chunk * SEAL_CHUNK_UNITS), span,
                      span, bytes);
        seal_rows_put(s->shape, span, at, bytes, plain);
        explicit_bzero(span, bytes);
    }
    status = sealed_compare(s, tags);
out:
    free(span);
    free(tags);
    return status;
}

tol_status tol_seal_read(struct tol_sealed *sealed, void *plain, size_t plain_bytes) {
    tol_status status = TOL_OK;
    TOL_CHECK(sealed != NULL && plain != NULL, TOL_INVALID_ARGUMENT,
              "tol_seal_read: an argument is NULL");
    const struct tol_seal_shape shape = sealed->shape;
    TOL_CHECK(plain_bytes == shape.rows * shape.row_bytes, TOL_SIZE_MISMATCH,
              "%zu rows of %zu bytes are sealed, but the memory for them has %zu bytes", shape.rows,
              shape.row_bytes, plain_bytes);
    pthread_mutex_lock(&sealed->lock);
    status = refuse_changed(sealed);
    if (status == TOL_OK) status = sealed_use_read_all(sealed, plain);
    if (status != TOL_OK) memset(plain, 0, plain_bytes);
    pthread_mutex_unlock(&sealed->lock);
out:
    return status;
}

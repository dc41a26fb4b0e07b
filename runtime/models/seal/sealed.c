/*
 * Sealers and sealed objects: keys, memory, and the three ways in which bytes get there.
 */
#include "sealed_state.h"

#include "core/check.h"
#include "core/context_state.h"
#include "locked.h"
#include "seal/chacha.h"
#include "seal/tagger.h"
#include "seal_pack.h"
#include "seal_rows.h"

#include <stdlib.h>
#include <string.h>

/* ---- the sealer ---- */

tol_status tol_sealer_create(struct tol_context *context, const struct tol_seal_key *key,
                             struct tol_sealer **result) {
    tol_status status = TOL_OK;
    struct tol_sealer *sealer = NULL;
    TOL_CHECK(context != NULL && key != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_sealer_create: an argument is NULL");
    sealer = calloc(1, sizeof *sealer);
    TOL_CHECK(sealer != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a sealer");
    sealer->context = context;
    TOL_TRY(seal_key_copy(key, &sealer->key));
    TOL_TRY(kn_kernels_create(context, &sealer->kernels));
    TOL_TRY(tol_stream_create(context, NULL, &sealer->stream));
    *result = sealer;
    sealer = NULL;
out:
    tol_sealer_destroy(sealer);
    return status;
}

void tol_sealer_destroy(struct tol_sealer *sealer) {
    if (sealer == NULL) return;
    tol_stream_destroy(sealer->stream);
    kn_kernels_destroy(sealer->kernels);
    tol_seal_key_destroy(sealer->key);
    free(sealer);
}

/* ---- secrets ---- */

tol_status sealed_secret_take(const struct tol_sealer *sealer, const uint8_t name[SEAL_NAME_BYTES],
                              uint32_t generation, struct sealed_secret **result) {
    tol_status status = TOL_OK;
    static const uint8_t no_nonce[KN_CHACHA_NONCE_BYTES]; /* the key is never used again */
    struct {
        uint8_t stream[KN_CHACHA_KEY_BYTES], tag[KN_CHACHA_KEY_BYTES], point[16];
    } *derived = NULL;
    struct sealed_secret *secret = NULL;
    void *memory = NULL, *keys = NULL;
    TOL_TRY(tol_locked_take(sizeof *derived, &keys));
    derived = keys;
    TOL_TRY(tol_locked_take(sizeof *secret, &memory));
    secret = memory;
    TOL_TRY(seal_key_derive(sealer->key, "chacha and tags on a device", name, generation, derived,
                            sizeof *derived));
    kn_chacha_begin(derived->stream, no_nonce, &secret->stream);
    kn_tagger_begin(derived->point, derived->tag, &secret->tagger);
    *result = secret;
    secret = NULL;
out:
    sealed_secret_give(secret);
    tol_locked_give(keys, sizeof *derived);
    return status;
}

void sealed_secret_give(struct sealed_secret *secret) {
    tol_locked_give(secret, sizeof *secret);
}

/* ---- what is sealed ---- */

static size_t whole_units(size_t bytes) {
    return (bytes + SEAL_UNIT_BYTES - 1) / SEAL_UNIT_BYTES * SEAL_UNIT_BYTES;
}

tol_status sealed_create(struct tol_sealer *sealer, struct tol_seal_shape shape, const char *label,
                         const struct tol_seal_options *options, struct tol_sealed **result) {
    tol_status status = TOL_OK;
    struct tol_sealed *s = NULL;
    const unsigned rounds = options->rounds != 0 ? options->rounds : 20;
    TOL_CHECK(kn_chacha_has(rounds), TOL_INVALID_ARGUMENT,
              "ChaCha with %u rounds is not supported; 20, 12 and 8 are", rounds);
    TOL_CHECK(label == NULL || strlen(label) < TOL_SEAL_LABEL_BYTES, TOL_INVALID_ARGUMENT,
              "a label of %zu bytes is too long; %d are allowed", label != NULL ? strlen(label) : 0,
              TOL_SEAL_LABEL_BYTES - 1);
    TOL_TRY(seal_rows_check(shape));
    s = calloc(1, sizeof *s);
    TOL_CHECK(s != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a sealed object");
    pthread_mutex_init(&s->lock, NULL);
    s->sealer = sealer;
    s->shape = shape;
    s->rounds = rounds;
    s->verify_each_use = options->verify_each_use;
    if (label != NULL) memcpy(s->label, label, strlen(label));
    s->bytes = seal_rows_bytes(shape);
    s->chunks = kn_seal_chunk_count(s->bytes);
    s->tags_bytes = whole_units(kn_seal_tag_bytes(s->bytes));
    s->tops = kn_seal_chunk_count(s->tags_bytes);
    s->expected = calloc(s->tags_bytes, 1);
    s->expected_tops = calloc(s->tops, SEAL_TAG_BYTES);
    TOL_CHECK(s->expected != NULL && s->expected_tops != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for the tags of %zu chunks", s->chunks);
    TOL_TRY(seal_name_draw(sealer->key->crypto, s->name));
    TOL_TRY(sealed_secret_take(sealer, s->name, 0, &s->secret));
    TOL_TRY(tol_buffer_create(sealer->context, s->bytes, 1, &s->data));
    TOL_TRY(tol_buffer_create(sealer->context, s->tags_bytes, 1, &s->tags_buffer));
    TOL_TRY(tol_buffer_create(sealer->context, s->tops, SEAL_TAG_BYTES, &s->tops_buffer));
    TOL_TRY(tol_buffer_fill_at(s->tags_buffer, 0, 0, 1, s->tags_bytes));
    *result = s;
    s = NULL;
out:
    tol_sealed_destroy(s);
    return status;
}

void tol_sealed_destroy(struct tol_sealed *sealed) {
    if (sealed == NULL) return;
    tol_buffer_destroy(sealed->data);
    tol_buffer_destroy(sealed->tags_buffer);
    tol_buffer_destroy(sealed->tops_buffer);
    sealed_secret_give(sealed->secret);
    free(sealed->expected);
    free(sealed->expected_tops);
    pthread_mutex_destroy(&sealed->lock);
    free(sealed);
}

struct tol_place tol_sealed_place(const struct tol_sealed *sealed) {
    return tol_place_of_buffer(sealed->data);
}

uint32_t tol_sealed_generation(const struct tol_sealed *sealed) {
    return sealed->generation;
}

void sealed_expect(struct tol_sealed *s) {
    kn_tagger_tags(&s->secret->tagger, 0, 1, s->expected, s->tags_bytes, s->expected_tops);
}

/* ---- from the host ---- */

/* Where plain chunks come from: the rows of a caller, or a packed object. */
struct plain_source {
    const void *rows;
    const struct seal_opened *opened;
};

static tol_status plain_chunk(const struct tol_sealed *s, const struct plain_source *source,
                              uint64_t chunk, void *out, size_t bytes) {
    if (source->opened != NULL) return seal_opened_chunk(source->opened, chunk, out);
    seal_rows_take(s->shape, source->rows, (size_t)chunk * SEAL_CHUNK_BYTES, out, bytes);
    return TOL_OK;
}

/* Encrypts all chunks on the host, keeps their tags, and copies them in spans of 4 MiB. */
static tol_status sealed_upload(struct tol_sealed *s, const struct plain_source *source) {
    enum { SPAN_BYTES = 256 * SEAL_CHUNK_BYTES };
    tol_status status = TOL_OK;
    void *plain = NULL;
    char *span = malloc(s->bytes < SPAN_BYTES ? s->bytes : SPAN_BYTES);
    TOL_CHECK(span != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for %d encrypted bytes",
              SPAN_BYTES);
    TOL_TRY(tol_locked_take(SEAL_CHUNK_BYTES, &plain));
    for (size_t at = 0; at < s->bytes; at += SPAN_BYTES) {
        const size_t span_bytes = s->bytes - at < SPAN_BYTES ? s->bytes - at : SPAN_BYTES;
        for (size_t in_span = 0; in_span < span_bytes; in_span += SEAL_CHUNK_BYTES) {
            const size_t left = span_bytes - in_span;
            const size_t bytes = left < SEAL_CHUNK_BYTES ? left : SEAL_CHUNK_BYTES;
            const uint64_t chunk = (at + in_span) / SEAL_CHUNK_BYTES;
            TOL_TRY(plain_chunk(s, source, chunk, plain, bytes));
            kn_chacha_add(&s->secret->stream, s->rounds, (uint32_t)(chunk * SEAL_CHUNK_UNITS),
                          plain, span + in_span, bytes);
            kn_tagger_tag(&s->secret->tagger, chunk, 0, span + in_span, bytes,
                          s->expected + chunk * SEAL_TAG_BYTES);
        }
        TOL_TRY(tol_buffer_write_at(s->data, at, span, span_bytes));
    }
    sealed_expect(s);
    status = sealed_verify(s);
out:
    tol_locked_give(plain, SEAL_CHUNK_BYTES);
    free(span);
    return status;
}

tol_status tol_seal_host(struct tol_sealer *sealer, const struct tol_seal_options *options,
                         const void *plain, struct tol_sealed **result) {
    tol_status status = TOL_OK;
    struct tol_sealed *sealed = NULL;
    TOL_CHECK(sealer != NULL && options != NULL && plain != NULL && result != NULL,
              TOL_INVALID_ARGUMENT, "tol_seal_host: an argument is NULL");
    TOL_TRY(sealed_create(sealer, options->shape, options->label, options, &sealed));
    TOL_TRY(sealed_upload(sealed, &(struct plain_source){.rows = plain}));
    *result = sealed;
    sealed = NULL;
out:
    tol_sealed_destroy(sealed);
    return status;
}

tol_status tol_seal_packed(struct tol_sealer *sealer, const struct tol_seal_options *options,
                           const void *packed, size_t packed_bytes, struct tol_sealed **result) {
    static const struct tol_seal_options usual;
    tol_status status = TOL_OK;
    struct tol_sealed *sealed = NULL;
    struct seal_opened opened = {.key = NULL};
    TOL_CHECK(sealer != NULL && packed != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_seal_packed: an argument is NULL");
    TOL_TRY(seal_opened_begin(sealer->key, packed, packed_bytes, &opened));
    TOL_TRY(sealed_create(sealer, opened.manifest.shape, opened.manifest.label,
                          options != NULL ? options : &usual, &sealed));
    TOL_TRY(sealed_upload(sealed, &(struct plain_source){.opened = &opened}));
    *result = sealed;
    sealed = NULL;
out:
    tol_sealed_destroy(sealed);
    seal_opened_close(&opened);
    return status;
}

/* ---- from the device ---- */

tol_status sealed_wipe(struct tol_context *context, struct tol_place place, size_t bytes) {
    tol_status status = TOL_OK;
    TOL_TRY(tol_context_enter(context));
    TOL_CONTEXT_CU(context, cuMemsetD8_v2, (place.address, 0, bytes), "wiping %zu plain bytes",
                   bytes);
    status = tol_context_synchronize(context, SEALED_PATIENCE_MS);
out:
    return status;
}

tol_status tol_seal_device(struct tol_sealer *sealer, const struct tol_seal_options *options,
                           struct tol_place plain, struct tol_sealed **result) {
    tol_status status = TOL_OK;
    struct tol_sealed *s = NULL;
    TOL_CHECK(sealer != NULL && options != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_seal_device: an argument is NULL");
    TOL_CHECK(options->shape.row_bytes % SEAL_UNIT_BYTES == 0, TOL_UNSUPPORTED,
              "rows of %zu bytes cannot be sealed on the device: that is not a multiple of %d",
              options->shape.row_bytes, SEAL_UNIT_BYTES);
    TOL_TRY(sealed_create(sealer, options->shape, options->label, options, &s));
    struct kn_seal_chunks pass = {.how = KN_SEAL_CLOSE,
                                  .in = {plain.address, plain.bytes},
                                  .to = &s->secret->stream,
                                  .after = &s->secret->tagger,
                                  .tags_after = kn_place_of(s->tags_buffer, 0)};
    TOL_TRY(sealed_pass(s, &pass));
    TOL_TRY(tol_buffer_read_at(s->tags_buffer, 0, s->expected, s->chunks * SEAL_TAG_BYTES));
    sealed_expect(s);
    TOL_TRY(sealed_verify(s));
    TOL_TRY(sealed_wipe(sealer->context, plain, s->bytes));
    *result = s;
    s = NULL;
out:
    tol_sealed_destroy(s);
    return status;
}

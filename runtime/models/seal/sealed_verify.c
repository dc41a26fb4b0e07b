/*
 * Verification and rotation: tags computed on the device and compared on the host.
 */
#include "sealed_state.h"

#include "core/check.h"
#include "seal/tagger.h"

#include <stdlib.h>
#include <string.h>

tol_status sealed_pass(struct tol_sealed *s, struct kn_seal_chunks *pass) {
    tol_status status = TOL_OK;
    pass->rounds = s->rounds;
    pass->bytes = s->bytes;
    if (pass->in.address == 0) pass->in = kn_place_of(s->data, 0);
    if (pass->out.address == 0) pass->out = kn_place_of(s->data, 0);
    if (pass->how != KN_SEAL_CLOSE) pass->tags_before = kn_place_of(s->tags_buffer, 0);
    TOL_TRY(kn_seal_chunks(s->sealer->kernels, s->sealer->stream, pass));
    status = tol_stream_synchronize_for(s->sealer->stream, SEALED_PATIENCE_MS);
out:
    return status;
}

static bool sealed_verify_is_same(const struct tol_sealed *s, const uint8_t *a, const uint8_t *b,
                                  size_t bytes) {
    return s->sealer->key->crypto->CRYPTO_memcmp(a, b, bytes) == 0;
}

tol_status sealed_compare(struct tol_sealed *s, const uint8_t *tags) {
    size_t changed = 0, first = 0;
    if (sealed_verify_is_same(s, tags, s->expected, s->chunks * SEAL_TAG_BYTES)) return TOL_OK;
    for (size_t i = 0; i < s->chunks; i++) {
        if (sealed_verify_is_same(s, tags + i * SEAL_TAG_BYTES, s->expected + i * SEAL_TAG_BYTES,
                                  SEAL_TAG_BYTES)) {
            continue;
        }
        if (changed++ == 0) first = i;
    }
    s->is_changed = true;
    return tol_fail(__FILE__, __LINE__, TOL_MISMATCH,
                    "sealed memory \"%s\" was changed: chunk %zu of %zu, from byte %zu on, and %zu "
                    "chunks in all",
                    s->label, first, s->chunks, first * SEAL_CHUNK_BYTES, changed);
}

/* Tells which chunks are under tops that differ. */
static tol_status find_change(struct tol_sealed *s) {
    tol_status status = TOL_OK;
    uint8_t *tags = malloc(s->tags_bytes);
    TOL_CHECK(tags != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for %zu tags", s->chunks);
    TOL_TRY(tol_buffer_read(s->tags_buffer, tags, s->tags_bytes));
    TOL_TRY(sealed_compare(s, tags));
    TOL_FAIL(TOL_MISMATCH, "the tags of sealed memory \"%s\" were changed while it was verified",
             s->label);
out:
    free(tags);
    return status;
}

tol_status sealed_verify(struct tol_sealed *s) {
    tol_status status = TOL_OK;
    uint8_t *tops = malloc(s->tops * SEAL_TAG_BYTES);
    TOL_CHECK(tops != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for %zu tags", s->tops);
    const struct kn_seal_chunks of_data = {.how = KN_SEAL_TAGS,
                                           .bytes = s->bytes,
                                           .in = kn_place_of(s->data, 0),
                                           .before = &s->secret->tagger,
                                           .tags_before = kn_place_of(s->tags_buffer, 0)};
    const struct kn_seal_chunks of_tags = {.how = KN_SEAL_TAGS,
                                           .bytes = s->tags_bytes,
                                           .level = 1,
                                           .in = kn_place_of(s->tags_buffer, 0),
                                           .before = &s->secret->tagger,
                                           .tags_before = kn_place_of(s->tops_buffer, 0)};
    TOL_TRY(kn_seal_chunks(s->sealer->kernels, s->sealer->stream, &of_data));
    TOL_TRY(kn_seal_chunks(s->sealer->kernels, s->sealer->stream, &of_tags));
    TOL_TRY(tol_stream_synchronize_for(s->sealer->stream, SEALED_PATIENCE_MS));
    TOL_TRY(tol_buffer_read(s->tops_buffer, tops, s->tops * SEAL_TAG_BYTES));
    if (!sealed_verify_is_same(s, tops, s->expected_tops, s->tops * SEAL_TAG_BYTES)) {
        s->is_changed = true;
        TOL_TRY(find_change(s));
    }
    s->is_changed = false;
out:
    free(tops);
    return status;
}

tol_status tol_seal_verify(struct tol_sealed *sealed) {
    tol_status status = TOL_OK;
    TOL_CHECK(sealed != NULL, TOL_INVALID_ARGUMENT, "tol_seal_verify: sealed is NULL");
    pthread_mutex_lock(&sealed->lock);
    status = sealed_verify(sealed);
    pthread_mutex_unlock(&sealed->lock);
out:
    return status;
}

/* ---- rotation ---- */

/* Turns all bytes to the next secret, and compares what was read with the tags of the old one. */
static tol_status sealed_verify_turn(struct tol_sealed *s, struct sealed_secret *next,
                                     struct tol_buffer *after, uint8_t *tags) {
    tol_status status = TOL_OK;
    struct kn_seal_chunks pass = {.how = KN_SEAL_TURN,
                                  .from = &s->secret->stream,
                                  .before = &s->secret->tagger,
                                  .to = &next->stream,
                                  .after = &next->tagger,
                                  .tags_after = kn_place_of(after, 0)};
    s->is_changed = true; /* a pass that fails leaves a part with either key */
    TOL_TRY(sealed_pass(s, &pass));
    TOL_TRY(tol_buffer_read(s->tags_buffer, tags, s->tags_bytes));
    status = sealed_compare(s, tags);
    /* The bytes have the new key, whether or not they are those of the sealing; if not, the tags
     * that are expected stay those of the old key, which no verification finds again. */
    struct sealed_secret *old = s->secret;
    s->secret = next;
    s->generation++;
    sealed_secret_give(old);
    if (status == TOL_OK) {
        TOL_TRY(tol_buffer_read_at(after, 0, s->expected, s->chunks * SEAL_TAG_BYTES));
        sealed_expect(s);
        s->is_changed = false;
    }
out:
    return status;
}

tol_status tol_seal_rotate(struct tol_sealed *sealed) {
    tol_status status = TOL_OK;
    struct sealed_secret *next = NULL;
    struct tol_buffer *after = NULL;
    uint8_t *tags = NULL;
    TOL_CHECK(sealed != NULL, TOL_INVALID_ARGUMENT, "tol_seal_rotate: sealed is NULL");
    pthread_mutex_lock(&sealed->lock);
    const struct tol_sealer *sealer = sealed->sealer;
    TOL_TRY(sealed_secret_take(sealer, sealed->name, sealed->generation + 1, &next));
    TOL_TRY(tol_buffer_create(sealer->context, sealed->tags_bytes, 1, &after));
    tags = malloc(sealed->tags_bytes);
    TOL_CHECK(tags != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for %zu tags", sealed->chunks);
    TOL_TRY(tol_context_synchronize(sealer->context, SEALED_PATIENCE_MS));
    const uint32_t generation = sealed->generation;
    status = sealed_verify_turn(sealed, next, after, tags);
    if (sealed->generation != generation) next = NULL; /* it is the object's now */
out:
    if (sealed != NULL) pthread_mutex_unlock(&sealed->lock);
    sealed_secret_give(next);
    tol_buffer_destroy(after);
    free(tags);
    return status;
}

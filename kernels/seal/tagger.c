/*
 * Tags on the host: a word of the polynomial after the other.
 */
#include "seal/tagger.h"

#include "seal/chacha.h"
#include "seal/limbs.h"

#include <string.h>

static uint32_t tagger_load(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void tagger_store(const uint32_t words[4], uint8_t bytes[16]) {
    for (int i = 0; i < 16; i++) bytes[i] = (uint8_t)(words[i / 4] >> 8 * (i % 4));
}

static struct seal_limbs tagger_power(struct seal_limbs r, unsigned exponent) {
    const struct seal_limbs zero = {{0, 0, 0, 0, 0}};
    struct seal_limbs result = {{1, 0, 0, 0, 0}};
    for (unsigned i = 0; i < exponent; i++) result = limbs_step(result, zero, r);
    return result;
}

void kn_tagger_begin(const uint8_t point[16], const uint8_t key[32], struct seal_tagger *tagger) {
    static const unsigned exponents[SEAL_POWERS] = {
        [SEAL_R] = 1,    [SEAL_R4] = 4,   [SEAL_R8] = 8,    [SEAL_R16] = 16,
        [SEAL_R32] = 32, [SEAL_R64] = 64, [SEAL_R125] = 125};
    static const uint8_t no_nonce[KN_CHACHA_NONCE_BYTES];
    struct seal_stream stream;
    struct seal_limbs r =
        limbs_of(tagger_load(point) & 0x0fffffff, tagger_load(point + 4) & 0x0ffffffc,
                 tagger_load(point + 8) & 0x0ffffffc, tagger_load(point + 12) & 0x0ffffffc);
    r.at[4] &= (1 << 24) - 1; /* without the one after a block */
    for (int i = 0; i < SEAL_POWERS; i++) tagger->powers[i] = tagger_power(r, exponents[i]);
    kn_chacha_begin(key, no_nonce, &stream);
    memcpy(tagger->words, stream.words, sizeof tagger->words);
    explicit_bzero(&stream, sizeof stream);
    explicit_bzero(&r, sizeof r);
}

/* The sum so far, with more blocks. */
static struct seal_limbs tagger_take(const struct seal_tagger *tagger, struct seal_limbs sum,
                                     const uint8_t *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 16) {
        const struct seal_limbs block =
            limbs_of(tagger_load(data + i), tagger_load(data + i + 4), tagger_load(data + i + 8),
                     tagger_load(data + i + 12));
        sum = limbs_step(sum, block, tagger->powers[SEAL_R]);
    }
    return sum;
}

void kn_tagger_value(const struct seal_tagger *tagger, const void *data, size_t bytes,
                     uint8_t value[16]) {
    uint32_t words[4];
    limbs_words(tagger_take(tagger, (struct seal_limbs){{0, 0, 0, 0, 0}}, data, bytes), words);
    tagger_store(words, value);
}

void kn_tagger_tag(const struct seal_tagger *tagger, uint64_t chunk, uint32_t level,
                   const void *data, size_t bytes, uint8_t tag[SEAL_TAG_BYTES]) {
    const uint32_t end[4] = {(uint32_t)chunk, (uint32_t)(chunk >> 32), level,
                             (uint32_t)(bytes / SEAL_UNIT_BYTES)};
    struct seal_stream stream;
    uint8_t last[16];
    uint32_t value[4];
    tagger_store(end, last);
    struct seal_limbs sum = tagger_take(tagger, (struct seal_limbs){{0, 0, 0, 0, 0}}, data, bytes);
    sum = tagger_take(tagger, sum, last, sizeof last);
    limbs_words(sum, value);
    memcpy(stream.words, tagger->words, sizeof stream.words);
    memcpy(stream.words + 13, value + 1, 3 * sizeof value[0]);
    kn_chacha_add(&stream, 20, value[0], NULL, tag, SEAL_TAG_BYTES);
    explicit_bzero(&stream, sizeof stream);
    explicit_bzero(value, sizeof value);
    explicit_bzero(&sum, sizeof sum);
}

void kn_tagger_tags(const struct seal_tagger *tagger, uint64_t first, uint32_t level,
                    const void *data, size_t bytes, uint8_t *tags) {
    const uint8_t *from = data;
    for (size_t done = 0; done < bytes; done += SEAL_CHUNK_BYTES) {
        const size_t now = bytes - done < SEAL_CHUNK_BYTES ? bytes - done : SEAL_CHUNK_BYTES;
        kn_tagger_tag(tagger, first++, level, from + done, now,
                      tags + done / SEAL_CHUNK_BYTES * SEAL_TAG_BYTES);
    }
}

/*
 * Tags on the host: RFC 8439's Poly1305 vectors of whole blocks, and what a tag depends on.
 */
#include "seal/tagger.h"

#include "inputs.h"
#include "seal/chacha.h"
#include "seal/hex.h"

#include <criterion/criterion.h>
#include <string.h>

static const uint8_t key[32] = {7, 7, 7};

static void must_value(const char *point, const char *data, const char *expected) {
    uint8_t r[16] = {0}, in[64], wanted[16] = {0}, made[16];
    struct seal_tagger tagger;
    kn_hex(point, r, sizeof r);
    const size_t bytes = kn_hex(data, in, sizeof in);
    kn_hex(expected, wanted, sizeof wanted);
    kn_tagger_begin(r, key, &tagger);
    kn_tagger_value(&tagger, in, bytes, made);
    cr_assert_arr_eq(made, wanted, sizeof made, "of %s at %s", data, point);
}

/* Appendix A.3, 7 and 9 to 11, which have whole blocks and nothing to add at the end: what is near
 * the modulus, and carries through all limbs. */
Test(tagger, values_are_those_of_the_rfc) {
    must_value("02", "ffffffffffffffffffffffffffffffff", "03");
    must_value("02", "fdffffffffffffffffffffffffffffff", "faffffffffffffffffffffffffffffff");
    must_value("01000000000000000400000000000000",
               "e33594d7505e43b900000000000000003394d7505e4379cd01000000000000000000000000000000"
               "0000000000000000 01000000000000000000000000000000",
               "14000000000000005500000000000000");
    must_value("01000000000000000400000000000000",
               "e33594d7505e43b900000000000000003394d7505e4379cd01000000000000000000000000000000"
               "0000000000000000",
               "13");
    must_value("00", "ffffffffffffffffffffffffffffffff", "00");
}

/* A tag is the ChaCha20 block of the value of the chunk and of its number, level and length. */
Test(tagger, a_tag_is_of_the_value_and_of_where_the_chunk_is) {
    uint8_t point[16] = {9, 9, 9, 9}, data[128 + 16] = {1, 2, 3}, value[16], tag[16], made[16];
    struct seal_tagger tagger;
    struct seal_stream stream;
    kn_tagger_begin(point, key, &tagger);
    data[128] = 5; /* the chunk's number, in 8 bytes */
    data[136] = 1; /* its level, in 4 */
    data[140] = 2; /* its units, in 4 */
    kn_tagger_value(&tagger, data, sizeof data, value);
    kn_chacha_begin(key, value + 4, &stream);
    kn_chacha_add(&stream, 20,
                  (uint32_t)value[0] | (uint32_t)value[1] << 8 | (uint32_t)value[2] << 16 |
                      (uint32_t)value[3] << 24,
                  NULL, made, sizeof made);
    kn_tagger_tag(&tagger, 5, 1, data, 128, tag);
    cr_assert_arr_eq(tag, made, sizeof tag);
}

Test(tagger, any_bit_and_any_place_makes_another_tag) {
    uint64_t random = 3;
    uint8_t point[16], data[256], tag[16], other[16];
    struct seal_tagger tagger;
    for (size_t i = 0; i < sizeof point; i++) point[i] = (uint8_t)kn_random(&random);
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)kn_random(&random);
    kn_tagger_begin(point, key, &tagger);
    kn_tagger_tag(&tagger, 0, 0, data, sizeof data, tag);
    for (size_t bit = 0; bit < 8 * sizeof data; bit++) {
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        kn_tagger_tag(&tagger, 0, 0, data, sizeof data, other);
        cr_assert_arr_neq(tag, other, sizeof tag, "bit %zu", bit);
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    kn_tagger_tag(&tagger, 1, 0, data, sizeof data, other);
    cr_assert_arr_neq(tag, other, sizeof tag);
    kn_tagger_tag(&tagger, 0, 1, data, sizeof data, other);
    cr_assert_arr_neq(tag, other, sizeof tag);
    kn_tagger_tag(&tagger, 0, 0, data, sizeof data - 64, other);
    cr_assert_arr_neq(tag, other, sizeof tag);
}

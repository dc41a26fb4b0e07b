/*
 * The host's checksum, by each way, beside published values and the definition.
 */
#include "checksum/crc32c.h"

#include "inputs.h"

#include <criterion/criterion.h>

enum { BYTES = 100000 };
static uint8_t bytes[BYTES];

static void draw(void) {
    uint64_t random = 7;
    for (size_t i = 0; i < BYTES; i++) bytes[i] = (uint8_t)(kn_random(&random) >> 24);
}

static void both_must_be(uint32_t expected, const void *data, size_t count) {
    for (enum kn_crc32c_way way = 0; way < KN_CRC32C_WAYS; way++) {
        const uint32_t sum = kn_crc32c(data, count, way);
        cr_assert_eq(sum, expected, "way %d of %zu bytes: %#x, not %#x", (int)way, count, sum,
                     expected);
    }
}

/* Bit by bit, as RFC 3720 defines it: nothing of crc32c.c. */
static uint32_t definition(const uint8_t *data, size_t count) {
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        sum ^= data[i];
        for (int bit = 0; bit < 8; bit++) sum = (sum & 1) != 0 ? sum >> 1 ^ 0x82f63b78 : sum >> 1;
    }
    return ~sum;
}

/* RFC 3720, appendix B.4, and the check value of the catalogues. */
Test(crc32c, published_values) {
    uint8_t range[32];
    both_must_be(0, "", 0);
    both_must_be(0xe3069283, "123456789", 9);
    memset(range, 0, sizeof range);
    both_must_be(0x8a9136aa, range, sizeof range);
    memset(range, 0xff, sizeof range);
    both_must_be(0x62a8ab43, range, sizeof range);
    for (unsigned i = 0; i < 32; i++) range[i] = (uint8_t)i;
    both_must_be(0x46dd794e, range, sizeof range);
    for (unsigned i = 0; i < 32; i++) range[i] = (uint8_t)(31 - i);
    both_must_be(0x113fdb5c, range, sizeof range);
}

Test(crc32c, every_way_is_the_definition_at_every_size_and_offset) {
    draw();
    for (size_t count = 0; count < 300; count++) {
        both_must_be(definition(bytes + count % 9, count), bytes + count % 9, count);
    }
    /* The instruction's three ranges of 8 KiB: none, once, several times, and what is left. */
    static const size_t counts[] = {24575, 24576, 24577, 49151, 49152, 73735, BYTES - 3};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        both_must_be(definition(bytes + 3, counts[i]), bytes + 3, counts[i]);
    }
}

Test(crc32c, two_ranges_join) {
    draw();
    for (size_t cut = 0; cut <= 2000; cut += 7) {
        const uint32_t first = kn_crc32c(bytes, cut, KN_CRC32C_BEST);
        const uint32_t second = kn_crc32c(bytes + cut, 2000 - cut, KN_CRC32C_BEST);
        cr_assert_eq(kn_crc32c_join(first, second, 2000 - cut),
                     kn_crc32c(bytes, 2000, KN_CRC32C_TABLE));
    }
}

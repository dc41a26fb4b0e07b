/*
 * The host's checksum: by a table of bytes, or eight bytes at a time by the instruction, in three
 * ranges side by side, since the instruction takes three cycles and a new one can begin in each.
 */
#include "checksum/crc32c.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_CRC32 1
#include <nmmintrin.h>
#else
#define HAS_CRC32 0
#endif

enum { SIDE_BYTES = 8192 }; /* of each of the three ranges */
static const uint32_t polynomial = 0x82f63b78, one = 0x80000000;

static uint32_t table[256], past_one_side, past_two_sides;
static pthread_once_t once = PTHREAD_ONCE_INIT;

uint32_t kn_crc32c_multiply(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (; a != 0; a <<= 1) {
        if ((a & one) != 0) product ^= b;
        b = (b >> 1) ^ ((b & 1) != 0 ? polynomial : 0);
    }
    return product;
}

uint32_t kn_crc32c_power(uint64_t bits) {
    uint32_t result = one, square = one >> 1; /* x */
    for (; bits != 0; bits >>= 1) {
        if ((bits & 1) != 0) result = kn_crc32c_multiply(result, square);
        square = kn_crc32c_multiply(square, square);
    }
    return result;
}

static void crc32c_prepare(void) {
    const uint32_t past_a_byte = kn_crc32c_power(8);
    for (uint32_t byte = 0; byte < 256; byte++) table[byte] = kn_crc32c_multiply(byte, past_a_byte);
    past_one_side = kn_crc32c_power(8 * (uint64_t)SIDE_BYTES);
    past_two_sides = kn_crc32c_power(16 * (uint64_t)SIDE_BYTES);
}

uint32_t kn_crc32c_append(uint32_t remainder, uint8_t byte) {
    pthread_once(&once, crc32c_prepare);
    return table[(remainder ^ byte) & 255] ^ remainder >> 8;
}

static uint32_t by_table(uint32_t remainder, const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        remainder = table[(remainder ^ bytes[i]) & 255] ^ remainder >> 8;
    }
    return remainder;
}

#if HAS_CRC32

__attribute__((target("sse4.2"))) static uint64_t next_word(uint64_t remainder,
                                                            const uint8_t *bytes) {
    uint64_t word = 0;
    memcpy(&word, bytes, sizeof word);
    return _mm_crc32_u64(remainder, word);
}

__attribute__((target("sse4.2"))) static uint32_t
by_instruction(uint32_t remainder, const uint8_t *bytes, size_t count) {
    uint64_t first = remainder;
    for (; count >= 3 * (size_t)SIDE_BYTES; count -= 3 * (size_t)SIDE_BYTES) {
        uint64_t second = 0, third = 0;
        for (size_t i = 0; i < SIDE_BYTES; i += 8) {
            first = next_word(first, bytes + i);
            second = next_word(second, bytes + SIDE_BYTES + i);
            third = next_word(third, bytes + 2 * (size_t)SIDE_BYTES + i);
        }
        first = kn_crc32c_multiply((uint32_t)first, past_two_sides) ^
                kn_crc32c_multiply((uint32_t)second, past_one_side) ^ third;
        bytes += 3 * (size_t)SIDE_BYTES;
    }
    for (; count >= 8; count -= 8, bytes += 8) first = next_word(first, bytes);
    remainder = (uint32_t)first;
    for (; count > 0; count--) remainder = _mm_crc32_u8(remainder, *bytes++);
    return remainder;
}

bool kn_crc32c_has_instruction(void) {
    return __builtin_cpu_supports("sse4.2");
}

#else

static uint32_t by_instruction(uint32_t remainder, const uint8_t *bytes, size_t count) {
    return by_table(remainder, bytes, count);
}

bool kn_crc32c_has_instruction(void) {
    return false;
}

#endif

uint32_t kn_crc32c(const void *bytes, size_t count, enum kn_crc32c_way way) {
    pthread_once(&once, crc32c_prepare);
    const bool by_table_only = way == KN_CRC32C_TABLE || !kn_crc32c_has_instruction();
    return ~(by_table_only ? by_table(UINT32_MAX, bytes, count)
                           : by_instruction(UINT32_MAX, bytes, count));
}

uint32_t kn_crc32c_join(uint32_t first, uint32_t second, uint64_t second_bytes) {
    return kn_crc32c_multiply(first, kn_crc32c_power(8 * second_bytes)) ^ second;
}

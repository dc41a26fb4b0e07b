/*
 * Lines: patterns in the addresses of a warp, found by vector instructions if the processor has
 * them. The plain loops define the result that the others must give.
 */
#ifndef SOFT_OPS_LINES_H
#define SOFT_OPS_LINES_H

#include "op_body.h"

#include <stdbool.h>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

/* Whether lane i's address is the first lane's and i steps more. */
static inline bool soft_has_step_32(const uint32_t *address, uint32_t step) {
#if defined(__AVX512F__)
    __m512i ramp = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    __m512i low = _mm512_add_epi32(_mm512_set1_epi32((int)address[0]),
                                   _mm512_mullo_epi32(ramp, _mm512_set1_epi32((int)step)));
    __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32((int)(16 * step)));
    return (_mm512_cmpneq_epi32_mask(_mm512_loadu_si512(address), low) |
            _mm512_cmpneq_epi32_mask(_mm512_loadu_si512(address + 16), high)) == 0;
#elif defined(__AVX2__)
    __m256i ramp = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    __m256i line = _mm256_add_epi32(_mm256_set1_epi32((int)address[0]),
                                    _mm256_mullo_epi32(ramp, _mm256_set1_epi32((int)step)));
    __m256i same = _mm256_set1_epi32(-1), by = _mm256_set1_epi32((int)(8 * step));
    for (int i = 0; i < SOFT_LANES; i += 8) {
        __m256i part = _mm256_loadu_si256((const __m256i *)(const void *)(address + i));
        same = _mm256_and_si256(same, _mm256_cmpeq_epi32(part, line));
        line = _mm256_add_epi32(line, by);
    }
    return _mm256_movemask_epi8(same) == -1;
#else
    uint32_t differ = 0;
    LANES differ |= (address[i] - address[0]) ^ (uint32_t)i * step;
    return differ == 0;
#endif
}

static inline bool soft_has_step_64(const uint64_t *address, uint64_t step) {
#if defined(__AVX512F__)
    const long long s = (long long)step;
    __m512i line =
        _mm512_add_epi64(_mm512_set1_epi64((long long)address[0]),
                         _mm512_set_epi64(7 * s, 6 * s, 5 * s, 4 * s, 3 * s, 2 * s, s, 0));
    __m512i by = _mm512_set1_epi64(8 * s);
    __mmask8 differ = 0;
    for (int i = 0; i < SOFT_LANES; i += 8) {
        differ |= _mm512_cmpneq_epi64_mask(_mm512_loadu_si512(address + i), line);
        line = _mm512_add_epi64(line, by);
    }
    return differ == 0;
#elif defined(__AVX2__)
    const long long s = (long long)step;
    __m256i line = _mm256_add_epi64(_mm256_set1_epi64x((long long)address[0]),
                                    _mm256_set_epi64x(3 * s, 2 * s, s, 0));
    __m256i same = _mm256_set1_epi64x(-1), by = _mm256_set1_epi64x(4 * s);
    for (int i = 0; i < SOFT_LANES; i += 4) {
        __m256i part = _mm256_loadu_si256((const __m256i *)(const void *)(address + i));
        same = _mm256_and_si256(same, _mm256_cmpeq_epi64(part, line));
        line = _mm256_add_epi64(line, by);
    }
    return _mm256_movemask_epi8(same) == -1;
#else
    uint64_t differ = 0;
    LANES differ |= (address[i] - address[0]) ^ (uint64_t)i * step;
    return differ == 0;
#endif
}

/* Whether any offset is beyond the limit or has some of the low bits. */
static inline bool soft_any_wrong_32(const uint32_t *offsets, uint32_t limit, uint32_t low_bits) {
#if defined(__AVX512F__)
    __m512i most = _mm512_set1_epi32((int)limit), bits = _mm512_set1_epi32((int)low_bits);
    __m512i low = _mm512_loadu_si512(offsets), high = _mm512_loadu_si512(offsets + 16);
    return (_mm512_cmpgt_epu32_mask(low, most) | _mm512_cmpgt_epu32_mask(high, most) |
            _mm512_test_epi32_mask(_mm512_or_si512(low, high), bits)) != 0;
#else
    uint32_t wrong = 0;
    LANES wrong |= (offsets[i] > limit) | (offsets[i] & low_bits);
    return wrong != 0;
#endif
}

static inline bool soft_any_wrong_64(const uint64_t *offsets, uint64_t limit, uint64_t low_bits) {
#if defined(__AVX512F__)
    __m512i most = _mm512_set1_epi64((long long)limit), sum = _mm512_setzero_si512();
    __mmask8 beyond = 0;
    for (int i = 0; i < SOFT_LANES; i += 8) {
        __m512i part = _mm512_loadu_si512(offsets + i);
        beyond |= _mm512_cmpgt_epu64_mask(part, most);
        sum = _mm512_or_si512(sum, part);
    }
    return (beyond | _mm512_test_epi64_mask(sum, _mm512_set1_epi64((long long)low_bits))) != 0;
#else
    uint64_t wrong = 0;
    LANES wrong |= (offsets[i] > limit) | (offsets[i] & low_bits);
    return wrong != 0;
#endif
}

/* Whether all of these shadow bytes say that their four bytes are written; the count is a multiple
 * of 8. */
static inline bool soft_all_written(const uint8_t *shadow, size_t count) {
    uint64_t sum = UINT64_MAX, word;
#if defined(__AVX2__)
    if (count % 32 == 0) {
        __m256i all = _mm256_set1_epi8(-1);
        for (size_t i = 0; i < count; i += 32) {
            const __m256i *from = (const __m256i *)(const void *)(shadow + i);
            all = _mm256_and_si256(all, _mm256_loadu_si256(from));
        }
        return _mm256_testc_si256(all, _mm256_set1_epi8(0x0f)) != 0;
    }
#endif
    for (size_t i = 0; i < count; i += 8) {
        memcpy(&word, shadow + i, 8);
        sum &= word;
    }
    return (sum & 0x0f0f0f0f0f0f0f0f) == 0x0f0f0f0f0f0f0f0f;
}

/* Four words of each lane, from or to four slots. Four lanes at a time are a square that is
 * transposed. */
typedef uint32_t soft_quad __attribute__((vector_size(16), aligned(1), may_alias));

/* Lanes of two, by number; those of the second are 4 to 7. gcc 11 has a word of its own for it. */
#if defined(__clang__) || __GNUC__ >= 12
#define SOFT_PICK(first, second, ...) __builtin_shufflevector(first, second, __VA_ARGS__)
#else
#define SOFT_PICK(first, second, ...) __builtin_shuffle(first, second, (soft_quad){__VA_ARGS__})
#endif

static inline void soft_transpose(soft_quad square[4]) {
    soft_quad a = SOFT_PICK(square[0], square[1], 0, 4, 1, 5);
    soft_quad b = SOFT_PICK(square[2], square[3], 0, 4, 1, 5);
    soft_quad c = SOFT_PICK(square[0], square[1], 2, 6, 3, 7);
    soft_quad d = SOFT_PICK(square[2], square[3], 2, 6, 3, 7);
    square[0] = SOFT_PICK(a, b, 0, 1, 4, 5);
    square[1] = SOFT_PICK(a, b, 2, 3, 6, 7);
    square[2] = SOFT_PICK(c, d, 0, 1, 4, 5);
    square[3] = SOFT_PICK(c, d, 2, 3, 6, 7);
}

#endif

// What argmax_2_whole, top_k_2_warp and top_k_3_pass share: elements of whole rows in order, and
// compared as they are, two of 16 bits at once.
//
// An element's order is a whole number: its bits as sign and magnitude. So +0 and -0 are the same,
// and a NaN, whatever its bits, is above infinity. Words of elements are not converted: one
// instruction takes the larger of two pairs, and one says which elements of a pair reach a
// threshold.
#pragma once

#include "row_whole.cuh"

#include <limits.h>

template <typename T> constexpr int ORDER_NAN = sizeof(T) == 2 ? 0x7fff : 0x7fffffff;
template <typename T> constexpr int ORDER_INFINITE = (int)(INFINITE_BITS<T> &ORDER_NAN<T>);
template <typename T> constexpr int ORDER_LOWEST = -ORDER_INFINITE<T>;
// -infinity, in each element of a word.
template <typename T> constexpr uint32_t LOWEST_BITS = INFINITE_BITS<T> | SIGN_BITS<T>;

template <typename T> __device__ inline int order_of_bits(uint32_t bits) {
    const int magnitude = (int)(bits & ORDER_NAN<T>);
    if (magnitude > ORDER_INFINITE<T>) return ORDER_NAN<T>;
    return (bits & (ORDER_NAN<T> + 1u)) != 0 ? -magnitude : magnitude;
}
// A word of elements of this order.
template <typename T> __device__ inline uint32_t word_of_order(int order) {
    const uint32_t bits = order < 0 ? (uint32_t)-order | (ORDER_NAN<T> + 1u) : (uint32_t)order;
    return sizeof(T) == 2 ? bits * 0x10001u : bits;
}

// The larger elements of two words; a NaN is larger than every number.
__device__ inline uint32_t larger_word(uint32_t a, uint32_t b, float) {
    asm("max.NaN.f32 %0, %1, %2;" : "=r"(a) : "r"(a), "r"(b));
    return a;
}
__device__ inline uint32_t larger_word(uint32_t a, uint32_t b, __half) {
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(a) : "r"(a), "r"(b));
    return a;
}
__device__ inline uint32_t larger_word(uint32_t a, uint32_t b, __nv_bfloat16) {
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(a) : "r"(a), "r"(b));
    return a;
}

// Ones in the elements of a word that are at least those of another, or are no numbers.
__device__ inline uint32_t reaching(uint32_t x, uint32_t least, float) {
    return !(__uint_as_float(x) < __uint_as_float(least)) ? ~0u : 0;
}
__device__ inline uint32_t reaching(uint32_t x, uint32_t least, __half) {
    asm("set.geu.u32.f16x2 %0, %1, %2;" : "=r"(x) : "r"(x), "r"(least));
    return x;
}
__device__ inline uint32_t reaching(uint32_t x, uint32_t least, __nv_bfloat16) {
    asm("set.geu.u32.bf16x2 %0, %1, %2;" : "=r"(x) : "r"(x), "r"(least));
    return x;
}

// Ones in the elements that are no numbers.
__device__ inline uint32_t no_numbers(uint32_t x, float) {
    return isnan(__uint_as_float(x)) ? ~0u : 0;
}
__device__ inline uint32_t no_numbers(uint32_t x, __half) {
    asm("set.nan.u32.f16x2 %0, %1, %1;" : "=r"(x) : "r"(x));
    return x;
}
__device__ inline uint32_t no_numbers(uint32_t x, __nv_bfloat16) {
    asm("set.nan.u32.bf16x2 %0, %1, %1;" : "=r"(x) : "r"(x));
    return x;
}

// Which elements of PIECES pieces reach a threshold, as bits of masks. Mask m is of WORDS words:
// bit w is of its word w, and bit w + 16 of the upper element of a word of two.
template <typename T, int PIECES> struct reach_masks {
    static constexpr int WORDS = sizeof(T) == 2 ? 16 : 32;
    static constexpr int COUNT = (PIECES * 4 + WORDS - 1) / WORDS;
    static constexpr uint32_t FIRST = sizeof(T) == 2 ? 0x10001u : 1u;
    uint32_t masks[COUNT];

    // Of all elements whose order is at least this one; of those the first `count` pieces of a row
    // have. What follows them was filled with LOWEST_BITS.
    __device__ inline void find(const uint4 (&bits)[PIECES], int order, int first, int step,
                                int count) {
        if (order > ORDER_INFINITE<T>) {
            each_word(bits, [](uint32_t x) { return no_numbers(x, T()); });
        } else {
            const uint32_t least = word_of_order<T>(order);
            each_word(bits, [=](uint32_t x) { return reaching(x, least, T()); });
        }
        if (order == ORDER_LOWEST<T>) {
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                if (first + p * step >= count) {
                    masks[4 * p / WORDS] &= ~((0xfu * FIRST) << 4 * p % WORDS);
                }
            }
        }
    }

    __device__ inline int total() const {
        int sum = 0;
#pragma unroll
        for (int m = 0; m < COUNT; m++) sum += __popc(masks[m]);
        return sum;
    }

    // The column of a bit of mask m. The pieces are `first`, first + step, ...
    static __device__ inline int column_of(int m, unsigned bit, int first, int step) {
        const unsigned word = m * WORDS + bit % WORDS;
        return (first + (int)(word / 4) * step) * PIECE<T> + (int)(word % 4 * (PIECE<T> / 4)) +
               (int)(bit / WORDS);
    }

private:
    template <typename TEST>
    __device__ inline void each_word(const uint4 (&bits)[PIECES], TEST test) {
#pragma unroll
        for (int m = 0; m < COUNT; m++) masks[m] = 0;
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            const uint32_t words[4] = {bits[p].x, bits[p].y, bits[p].z, bits[p].w};
#pragma unroll
            for (int w = 0; w < 4; w++) {
                const int word = 4 * p + w;
                masks[word / WORDS] |= test(words[w]) & FIRST << word % WORDS;
            }
        }
    }
};

// The largest elements of the pieces of a thread, a word of them. PARTS of these words are each of
// every PARTS-th word.
template <typename T, int PIECES, int PARTS>
__device__ inline void largest_words(uint32_t (&largest)[PARTS], const uint4 (&bits)[PIECES]) {
#pragma unroll
    for (int i = 0; i < PARTS; i++) largest[i] = LOWEST_BITS<T>;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const uint32_t words[4] = {bits[p].x, bits[p].y, bits[p].z, bits[p].w};
#pragma unroll
        for (int w = 0; w < 4; w++) {
            largest[w % PARTS] = larger_word(largest[w % PARTS], words[w], T());
        }
    }
}
// The order of the largest element of a word.
template <typename T> __device__ inline int order_of_word(uint32_t word) {
    if (sizeof(T) == 4) return order_of_bits<T>(word);
    return max(order_of_bits<T>(word & 0xffff), order_of_bits<T>(word >> 16));
}

__device__ inline unsigned lowest_bit(uint32_t mask) {
    return (unsigned)__ffs((int)mask) - 1;
}

#if __CUDA_ARCH__ >= 800
__device__ inline int sum_of_warp(int x) {
    return __reduce_add_sync(~0u, x);
}
__device__ inline int largest_of_warp(int x) {
    return __reduce_max_sync(~0u, x);
}
__device__ inline int smallest_of_warp(int x) {
    return __reduce_min_sync(~0u, x);
}
#endif

// What top_k_1_block is made of, as its first comment says: a block finds the k largest of a row of
// any length and alignment. top_k_3_pass leaves rows to it that it was not made for.
#pragma once

#include "argmax_key.cuh"
#include "row.cuh"
#include "top_k_arguments.h"

struct top_k_shared {
    unsigned long long keys[TOP_K_CANDIDATES];
    int count; // of keys that reach the threshold, also those that found no room
};

// Calls use(values, column) for each of a thread's pieces, in order. column is the column of the
// piece's first element, and negative where the piece begins before the row; values has 0 for
// elements outside the row. A thread requests four pieces at once.
template <typename T, typename USE>
__device__ inline void for_each_piece(const T *in, int columns, USE use) {
    enum { AT_ONCE = 4 };
    const int step = (int)blockDim.x * PIECE<T>;
    int first = (int)threadIdx.x * PIECE<T> - elements_before(in);
    for (; first < columns; first += AT_ONCE * step) {
        float values[AT_ONCE][PIECE<T>];
        load_row<T, AT_ONCE>(values, in, first, columns);
#pragma unroll
        for (int p = 0; p < AT_ONCE; p++) use(values[p], first + p * step);
    }
}

// What decides between keys before the column does.
__device__ inline unsigned order_of(float value) {
    return (unsigned)(argmax_key(value, 0) >> 32);
}

// Sorts the first `count` keys, a power of two of them, the largest first, by a bitonic network.
__device__ inline void sort_keys(unsigned long long *keys, int count) {
    for (int size = 2; size <= count; size *= 2) {
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < count / 2; i += blockDim.x) {
                const int low = 2 * i - (i & (stride - 1)), high = low + stride;
                const unsigned long long a = keys[low], b = keys[high];
                if ((a < b) == ((low & size) == 0)) keys[low] = b, keys[high] = a;
            }
        }
    }
    __syncthreads();
}

// Sorts `count` keys, followed by zeros up to a power of two.
__device__ inline void sort_with_zeros(unsigned long long *keys, int count) {
    int padded = 1;
    while (padded < count) padded *= 2;
    for (int i = count + threadIdx.x; i < padded; i += blockDim.x) keys[i] = 0;
    sort_keys(keys, padded);
}

// A key that the k-th largest of the row reaches: 0, or the k-th largest of the threads' largest.
template <typename T>
__device__ inline unsigned long long first_threshold(const T *in, const top_k_arguments &x,
                                                     top_k_shared *s) {
    if (x.k > (int)blockDim.x) return 0;
    const int columns = (int)x.columns;
    unsigned long long best = 0; // below all keys
    for_each_piece(in, columns, [&](const float(&values)[PIECE<T>], int column) {
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) {
            const bool is_inside = column + i >= 0 && column + i < columns;
            if (is_inside) best = max(best, argmax_key(values[i], column + i));
        }
    });
    s->keys[threadIdx.x] = best;
    sort_keys(s->keys, blockDim.x);
    return s->keys[x.k - 1];
}

// Keeps the keys of a piece that reach the threshold. Few pieces have any, so their elements are
// read again, one by one: that code is small.
template <typename T>
__device__ inline void collect(const T *in, int first, int columns, unsigned long long threshold,
                               top_k_shared *s) {
#pragma unroll 1
    for (int column = max(first, 0); column < min(first + PIECE<T>, columns); column++) {
        const unsigned long long key = argmax_key(to_float(in[column]), column);
        if (key < threshold) continue;
        const int at = atomicAdd(&s->count, 1);
        if (at < TOP_K_CANDIDATES) s->keys[at] = key;
    }
}

// Stores the first k keys of the block's row.
template <typename T>
__device__ inline void store_keys(const top_k_arguments &x, const T *in,
                                  const unsigned long long *keys) {
    for (int i = threadIdx.x; i < x.k; i += blockDim.x) {
        const int column = column_of_key(keys[i]);
        if (x.indices != 0) ((int *)x.indices)[blockIdx.x * x.indices_stride + i] = column;
        if (x.values != 0) ((T *)x.values)[blockIdx.x * x.values_stride + i] = in[column];
    }
}

template <typename T>
__device__ inline void top_k_block(const top_k_arguments &x, top_k_shared *s) {
    const T *in = (const T *)x.in + blockIdx.x * x.in_stride;
    const int columns = (int)x.columns;
    unsigned long long threshold = first_threshold(in, x, s);
    int count;
    for (;;) {
        const unsigned least = (unsigned)(threshold >> 32);
        __syncthreads(); // the threshold has been read
        if (threadIdx.x == 0) s->count = 0;
        __syncthreads();
        for_each_piece(in, columns, [&](const float(&values)[PIECE<T>], int column) {
            bool reaches = false;
#pragma unroll
            for (int i = 0; i < PIECE<T>; i++) reaches |= order_of(values[i]) >= least;
            if (reaches) collect(in, column, columns, threshold, s);
        });
        __syncthreads();
        count = s->count;
        if (count <= TOP_K_CANDIDATES) break;
        sort_keys(s->keys, TOP_K_CANDIDATES);
        threshold = s->keys[x.k - 1];
    }
    sort_with_zeros(s->keys, count);
    store_keys<T>(x, in, s->keys);
}

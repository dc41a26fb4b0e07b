// The cache of keys and values in pages of 16 positions: where a row of a head is.
#pragma once

#include "../tile.cuh"

#include "decode_arguments.h"

enum { PAGE = 16, KEY_PIECE = 8, SCALED = 32 };

__device__ inline const uint64_t *pages_of(const paged_cache &c, int row) {
    return (const uint64_t *)c.tables + (uint64_t)((const int *)c.slots)[row] * c.pages_max;
}

// Element 0 of the piece of a key, and of a value.
__device__ inline __half *key_at(const paged_cache &c, uint64_t page, int head, int head_size,
                                 int position, int piece) {
    return (__half *)(page + c.keys_at) + (uint64_t)head * PAGE * head_size +
           (piece * PAGE + position % PAGE) * KEY_PIECE;
}
__device__ inline __half *value_at(const paged_cache &c, uint64_t page, int head, int head_size,
                                   int position) {
    return (__half *)(page + c.values_at) + ((uint64_t)head * PAGE + position % PAGE) * head_size;
}

// The same of a cache of bytes: element 0 of the piece of a key, and of a value; and the scale of
// the first 32 elements of either.
__device__ inline int8_t *key_bytes_at(const paged_cache &c, uint64_t page, int head, int head_size,
                                       int position, int piece) {
    return (int8_t *)(page + c.keys_at) + (uint64_t)head * PAGE * head_size +
           (piece * PAGE + position % PAGE) * KEY_PIECE;
}
__device__ inline int8_t *value_bytes_at(const paged_cache &c, uint64_t page, int head,
                                         int head_size, int position) {
    return (int8_t *)(page + c.values_at) + ((uint64_t)head * PAGE + position % PAGE) * head_size;
}
__device__ inline __half *scales_at(uint64_t page, uint64_t at, int head, int head_size,
                                    int position) {
    return (__half *)(page + at) + ((uint64_t)head * PAGE + position % PAGE) * (head_size / SCALED);
}

// An element of a row and its column as one number, whose maximum is the largest element, the first
// of equal ones.
#pragma once

#include "../tile.cuh"

// Orders floats as integers: NaN above all, +0 and -0 the same. The column decides equals.
__device__ inline unsigned long long argmax_key(float value, long long column) {
    const unsigned bits = __float_as_uint(value + 0.0f);
    const unsigned order = isnan(value) ? ~0u : bits >> 31 ? ~bits : bits | 0x80000000u;
    return (unsigned long long)order << 32 | (0xffffffffu - (unsigned)column);
}

__device__ inline unsigned long long largest_key(unsigned long long key) {
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        key = max(key, __shfl_xor_sync(~0u, key, lanes));
    }
    return key;
}
__device__ inline int column_of_key(unsigned long long key) {
    return (int)(0xffffffffu - (unsigned)key);
}

// x as bytes: how a warp rounds 256 elements of a column, and where it puts them.
//
// The largest magnitude of a chunk of 256 elements becomes 127, as llama.cpp does for x beside
// blocks of 256, except that the scale is not rounded to a half. The sum of 16 neighbours is
// 128 times one byte plus another. A chunk whose largest magnitude is below 2^-100 becomes
// zeros, and one with a NaN or an infinity has a scale that is NaN.
#pragma once

#include "../../tile.cuh"

#include "linear_arguments.h"

enum { OWN = LINEAR_CHUNK / WARP }; // elements of a lane

// Rounds the chunk of which lane l has elements 8 l to 8 l + 7. `tile` is the chunk of the tile of
// eight columns that the column, number `column` of it, belongs to. All lanes of a warp call it.
__device__ inline void put_rounded(uint8_t *tile, uint32_t column, const float (&x)[OWN]) {
    const uint32_t lane = threadIdx.x % WARP, sub = lane / 4, u = lane % 4;
    uint32_t most = 0; // as bits, which order magnitudes and have NaN above them
#pragma unroll
    for (int i = 0; i < OWN; i++) most = max(most, __float_as_uint(x[i]) & 0x7fffffffu);
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        most = max(most, __shfl_xor_sync(~0u, most, lanes));
    }
    const bool is_small = most < 0x0d800000u; // 2^-100
    const float scale = most >= 0x7f800000u ? __uint_as_float(0x7fffffff)
                        : is_small          ? 0.0f
                                            : __fdiv_rn(__uint_as_float(most), 127.0f);
    const float factor = is_small ? 0.0f : __fdiv_rn(127.0f, __uint_as_float(most));
    uint32_t words[2] = {};
    int sum = 0;
#pragma unroll
    for (int i = 0; i < OWN; i++) { // conversion of a NaN gives 0
        const int q = __float2int_rn(__fmul_rn(x[i], factor));
        sum += q;
        words[i / 4] |= (uint32_t)(q & 0xff) << i % 4 * 8;
    }
    sum += __shfl_xor_sync(~0u, sum, 1);
#pragma unroll
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t t = (2 * u + i) % 4;
        *(uint32_t *)(tile + sub / 2 * (WARP * 16) + (column * 4 + t) * 16 + sub % 2 * 8 +
                      u / 2 * 4) = words[i];
    }
    const int low = ((sum + 64) & 127) - 64, high = (sum - low) / 128;
    uint8_t *unit = tile + ROUNDED_UNITS_AT + column * 64; // 16 bytes for each t
    unit[lane / 8 * 16 + lane % 2 * 4 + lane / 2 % 4] = (uint8_t)(lane % 2 == 0 ? low : high);
    if (lane < 4) *(uint2 *)(unit + lane * 16 + 8) = {__float_as_uint(scale), 0};
}

// The chunk of the tile that a column belongs to.
__device__ inline uint8_t *rounded_tile(uint64_t out, uint32_t column, uint32_t chunk,
                                        uint32_t chunks) {
    return (uint8_t *)out + ((uint64_t)(column / ROUNDED_COLUMNS) * chunks + chunk) * ROUNDED_CHUNK;
}

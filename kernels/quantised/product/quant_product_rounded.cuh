// What the prologues of steps 3 and 10 of the quant product share, which round x to bytes.
#pragma once

#include "../../tile.cuh"

// A number of x as a byte q, with the scale d of the 32 neighbours that the warp has.
struct rounded_number {
    float d;
    int8_t q;
};

// All lanes of the warp call it together. A NaN or an infinity among them makes the scale NaN, and
// so all of y in this column.
__device__ inline rounded_number round_neighbour(float value) {
    uint32_t most = __float_as_uint(value) & 0x7fffffffu;
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        most = max(most, __shfl_xor_sync(~0u, most, lanes));
    }
    const float d = most >= 0x7f800000u ? __uint_as_float(0x7fffffff)
                                        : __fdiv_rn(__uint_as_float(most), 127.0f);
    // Where d is subnormal, value / d may exceed 127 by its rounding.
    const float q = d > 0 ? fminf(fmaxf(rintf(__fdiv_rn(value, d)), -127.0f), 127.0f) : 0.0f;
    return {d, (int8_t)(int)q};
}

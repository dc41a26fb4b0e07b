// Numbers of 8 bits: sign, 4 of exponent and 3 of fraction, without infinities.
#pragma once

#include "tile.cuh"

#include <cuda_fp16.h>

struct e4m3 {
    uint8_t bits;
};

// The same digits as a half are 2^8 times as small.
__device__ inline __half e4m3_half(e4m3 x) {
    const uint16_t sign = (uint16_t)((x.bits & 0x80) << 8), rest = x.bits & 0x7f;
    if (rest == 0x7f) return __ushort_as_half(sign | 0x7fff);
    return __hmul(__ushort_as_half((uint16_t)(sign | rest << 7)), __ushort_as_half(0x5c00));
}
__device__ inline float to_float(e4m3 x) {
    return __half2float(e4m3_half(x));
}

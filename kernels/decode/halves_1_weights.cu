// halves, step 1: weights of any format as halves times a power of two, for products of prompts.
//
// The idea: rows lie one after the other, so a matrix is one row of all its elements. A warp takes
// CHUNKS neighbouring chunks of 256, and a lane the eight elements of each that weights.cuh gives
// it; they leave as two stores of eight bytes, and those of eight lanes are 64 neighbouring bytes.
// The peak, the largest magnitude of a weight, decides the power of two, once per model: magnitudes
// of floats order as their bits do, and a NaN is above all of them.
// Owner: warp w of block b owns chunks CHUNKS (WARPS b + w) on.
// Bound by: writes, and reads of the weights.
// Requires: blockDim = (256, 1, 1); count in whole grains; the alignment of linear; out at a
// multiple of 8 bytes.
#include "../quantised/formats/weights.cuh"

#include "halves_arguments.h"

enum { WARPS = 8, CHUNKS = HALVES_BLOCK_CHUNKS / WARPS };

__device__ inline uint2 four_halves(const float *values, float scale) {
    const __half2 low = __floats2half2_rn(values[0] * scale, values[1] * scale);
    const __half2 high = __floats2half2_rn(values[2] * scale, values[3] * scale);
    return {*(const uint32_t *)&low, *(const uint32_t *)&high};
}

// The weights of a lane in the chunks of its warp; beyond the last chunk, zeros.
struct own_weights {
    uint32_t first; // chunk
    bool is_there[CHUNKS];
    eight chunk[CHUNKS];
};

template <typename Q> __device__ inline own_weights load_own(const halves_weights_arguments &a) {
    const int lane = threadIdx.x % WARP;
    own_weights own;
    own.first = (blockIdx.x * WARPS + threadIdx.x / WARP) * CHUNKS;
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) {
        const uint64_t at = (uint64_t)(own.first + i) * CHUNK;
        own.is_there[i] = at + (Q::GRAIN < CHUNK ? lane * 8 : 0) < a.count;
        own.chunk[i] = {};
        if (own.is_there[i]) {
            own.chunk[i] = Q::load((const uint8_t *)a.weights, own.first + i, lane);
        }
    }
    return own;
}

template <typename Q> __device__ inline void to_halves(const halves_weights_arguments &a) {
    const int lane = threadIdx.x % WARP;
    const own_weights own = load_own<Q>(a);
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) {
        if (!own.is_there[i]) continue;
        __half *out = (__half *)a.out + (uint64_t)(own.first + i) * CHUNK;
        *(uint2 *)(out + Q::run(lane, 0)) = four_halves(own.chunk[i].w, a.scale);
        *(uint2 *)(out + Q::run(lane, 1)) = four_halves(own.chunk[i].w + RUN, a.scale);
    }
}

template <typename Q> __device__ inline void peak(const halves_weights_arguments &a) {
    const own_weights own = load_own<Q>(a);
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) {
#pragma unroll
        for (int j = 0; j < 2 * RUN; j++) {
            most = max(most, __float_as_uint(own.chunk[i].w[j]) & 0x7fffffffu);
        }
    }
#pragma unroll
    for (int i = WARP / 2; i > 0; i /= 2) most = max(most, __shfl_xor_sync(~0u, most, i));
    if (threadIdx.x % WARP == 0 && most > 0) atomicMax((uint32_t *)a.out, most);
}

#define HALVES(format)                                                                             \
    extern "C" __global__ void __launch_bounds__(WARPS *WARP)                                      \
        halves_weights_##format(halves_weights_arguments a) {                                      \
        to_halves<of_##format>(a);                                                                 \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(WARPS *WARP)                                      \
        halves_peak_##format(halves_weights_arguments a) {                                         \
        peak<of_##format>(a);                                                                      \
    }
HALVES(f32)
HALVES(f16)
HALVES(bf16)
HALVES(q8_0)
HALVES(q4_k)
HALVES(q5_k)
HALVES(q6_k)

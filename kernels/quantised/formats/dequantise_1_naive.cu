// dequantise, step 1: one thread per element.
//
// values[i] = element i of the blocks, as quant_block.h defines it, rounded to the type.
//
// The idea: none; this is the definition. A thread reads the bytes of its element one by one.
// Owner: thread i of the grid owns values[i]. Bound by loads of single bytes.
// Requires: gridDim.x * blockDim.x at least count; any alignment.
#include "quant.cuh"

template <typename Q, typename T>
__device__ inline void naive(const uint8_t *blocks, T *values, uint64_t count) {
    const uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    values[i] = from_float<T>(Q::element(blocks + i / Q::ELEMENTS * Q::BYTES, i % Q::ELEMENTS));
}

#define NAIVE(quant, name, type)                                                                   \
    extern "C" __global__ void dequantise_naive_##quant##_##name(const uint8_t *blocks,            \
                                                                 type *values, uint64_t count) {   \
        naive<quant>(blocks, values, count);                                                       \
    }

NAIVE(q4_k, f32, float)
NAIVE(q6_k, f32, float)
NAIVE(q8_0, f32, float)
NAIVE(q4_k, f16, __half)
NAIVE(q6_k, f16, __half)
NAIVE(q8_0, f16, __half)

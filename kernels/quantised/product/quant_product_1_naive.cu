// quant product, step 1: one thread per element of y.
//
// y[n][m] = sum_k W[m][k] x[n][k], where W is of quantised blocks and x and y are floats.
//
// The idea: none; this is the definition. A thread walks along its row of W, element by element.
// Owner: thread m of the grid's row n owns y[n][m]. Bound by loads of single bytes.
// Requires: gridDim.x * blockDim.x at least rows, gridDim.y = columns; any alignment.
#include "../formats/quant.cuh"
#include "quant_product_arguments.h"

template <typename Q> __device__ inline void naive(const kn_quant_product_arguments &a) {
    const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= a.rows) return;
    const uint8_t *weights = (const uint8_t *)a.weights + (uint64_t)row * a.blocks * Q::BYTES;
    const float *x = (const float *)a.x + blockIdx.y * a.x_stride;
    float sum = 0;
    for (uint32_t k = 0; k < a.k; k++) {
        sum += Q::element(weights + (uint64_t)(k / Q::ELEMENTS) * Q::BYTES, k % Q::ELEMENTS) * x[k];
    }
    ((float *)a.y)[blockIdx.y * a.y_stride + row] = sum;
}

#define NAIVE(quant)                                                                               \
    extern "C" __global__ void quant_product_naive_##quant(kn_quant_product_arguments a) {         \
        naive<quant>(a);                                                                           \
    }

NAIVE(q4_k)
NAIVE(q6_k)
NAIVE(q8_0)

// Quicksort of a thread's own array, and a bitonic sort of a block's and of a grid's.
#include "sorting.h"

extern "C" __global__ void quicksort(int32_t *out) {
    uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
    int32_t values[SORTING_COUNT];
    sorting_fill(values, thread);
    sorting_quick(values, SORTING_COUNT);
    for (int i = 0; i < SORTING_COUNT; i++) out[thread * SORTING_COUNT + i] = values[i];
}

extern "C" __global__ void bitonic_block(uint64_t *values) {
    extern __shared__ uint64_t keys[];
    uint32_t i = threadIdx.x;
    keys[i] = values[blockIdx.x * blockDim.x + i];
    __syncthreads();
    for (uint32_t k = 2; k <= blockDim.x; k *= 2) {
        for (uint32_t j = k / 2; j > 0; j /= 2) {
            uint32_t other = i ^ j;
            if (other > i && (keys[i] > keys[other]) == ((i & k) == 0)) {
                uint64_t kept = keys[i];
                keys[i] = keys[other];
                keys[other] = kept;
            }
            __syncthreads();
        }
    }
    values[blockIdx.x * blockDim.x + i] = keys[i];
}

extern "C" __global__ void bitonic_step(float *values, uint32_t k, uint32_t j) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ j;
    if (other <= i) return;
    float a = values[i], b = values[other];
    if ((a > b) == ((i & k) == 0)) {
        values[i] = b;
        values[other] = a;
    }
}

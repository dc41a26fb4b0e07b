// histogram: counts[v] += how often v is among values[0] ... values[count - 1].
//
// The idea: a block counts in shared memory and adds its counts to the grid's once, so there is one
// slow atomic per block and value, and not one per element.
// Owner: thread t of the grid owns elements t, t + threads, ... Bound by shared-memory atomics.
// Requires: any grid and block.
enum { VALUES = 256 };

extern "C" __global__ void histogram(const unsigned char *values, unsigned *counts, int count) {
    __shared__ unsigned of_block[VALUES];
    for (int v = threadIdx.x; v < VALUES; v += blockDim.x) of_block[v] = 0;
    __syncthreads(); // all counters are zero before any thread counts
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        atomicAdd(&of_block[values[i]], 1u);
    }
    __syncthreads(); // all have counted before any counter is added up
    for (int v = threadIdx.x; v < VALUES; v += blockDim.x) {
        if (of_block[v] != 0) atomicAdd(&counts[v], of_block[v]);
    }
}

// Prefix sums: of a warp by shuffles, of a block through shared memory, and of a grid in one pass,
// in which each block waits for the one before it (decoupled look-back).
#include <stdint.h>

__device__ uint32_t warp_scan(uint32_t value) {
    uint32_t lane = threadIdx.x & 31;
    for (uint32_t offset = 1; offset < 32; offset *= 2) {
        uint32_t other = __shfl_up_sync(0xffffffffu, value, offset);
        if (lane >= offset) value += other;
    }
    return value;
}

__device__ uint32_t block_scan(uint32_t value) {
    __shared__ uint32_t sums[32];
    uint32_t warp = threadIdx.x / 32;
    value = warp_scan(value);
    if (threadIdx.x % 32 == 31) sums[warp] = value;
    __syncthreads();
    if (warp == 0)
        sums[threadIdx.x] = warp_scan(threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0);
    __syncthreads();
    return value + (warp > 0 ? sums[warp - 1] : 0);
}

// states[b] is 0, then 1 << 62 | the block's sum, then 2 << 62 | the sum up to its end.
extern "C" __global__ void prefix(const uint32_t *in, uint32_t *out, volatile uint64_t *states,
                                  uint32_t *next, uint32_t count) {
    __shared__ uint32_t block, before;
    if (threadIdx.x == 0) block = atomicAdd(next, 1);
    __syncthreads();
    uint32_t i = block * blockDim.x + threadIdx.x;
    uint32_t sum = block_scan(i < count ? in[i] : 0);
    if (threadIdx.x == blockDim.x - 1) {
        uint32_t earlier = 0;
        states[block] = 1ull << 62 | sum;
        __threadfence();
        for (int32_t b = (int32_t)block - 1; b >= 0;) {
            uint64_t state = states[b];
            if (state >> 62 == 0) continue;
            earlier += (uint32_t)state;
            if (state >> 62 == 2) break;
            b--;
        }
        states[block] = 2ull << 62 | (uint32_t)(earlier + sum);
        before = earlier;
    }
    __syncthreads();
    if (i < count) out[i] = before + sum;
}

// Work-efficient, up and down a tree in shared memory; exclusive.
extern "C" __global__ void tree_scan(const uint32_t *in, uint32_t *out) {
    extern __shared__ uint32_t tree[];
    uint32_t n = 2 * blockDim.x, i = threadIdx.x, offset = 1;
    tree[2 * i] = in[2 * i];
    tree[2 * i + 1] = in[2 * i + 1];
    for (uint32_t d = n / 2; d > 0; d /= 2, offset *= 2) {
        __syncthreads();
        if (i < d) tree[offset * (2 * i + 2) - 1] += tree[offset * (2 * i + 1) - 1];
    }
    if (i == 0) tree[n - 1] = 0;
    for (uint32_t d = 1; d < n; d *= 2) {
        offset /= 2;
        __syncthreads();
        if (i < d) {
            uint32_t left = offset * (2 * i + 1) - 1, right = offset * (2 * i + 2) - 1;
            uint32_t kept = tree[left];
            tree[left] = tree[right];
            tree[right] += kept;
        }
    }
    __syncthreads();
    out[2 * i] = tree[2 * i];
    out[2 * i + 1] = tree[2 * i + 1];
}

// read_words: sums[b] = the exclusive or of the words of 32 KiB, for block b. Measures what reading
// alone costs.
//
// The idea: each thread has eight loads of 16 bytes in flight and does almost nothing with them.
// Owner: block b owns pieces 2048 b to 2048 b + 2047, and sums[b]. Bound by reads.
// Requires: blockDim = (256, 1, 1), gridDim.x at least pieces of 16 bytes / 2048, rounded up.
#include <stdint.h>

constexpr int LOADS = 8, THREADS = 256, WARP = 32;

extern "C" __global__ void __launch_bounds__(THREADS)
    read_words(const uint4 *pieces, uint64_t count, uint32_t *sums) {
    __shared__ uint32_t parts[THREADS / WARP];
    const uint64_t first = (uint64_t)blockIdx.x * (LOADS * THREADS) + threadIdx.x;
    uint4 words[LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        const uint64_t at = first + i * THREADS;
        words[i] = at < count ? pieces[at] : uint4{};
    }
    uint32_t sum = 0;
#pragma unroll
    for (int i = 0; i < LOADS; i++) sum ^= words[i].x ^ words[i].y ^ words[i].z ^ words[i].w;
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) sum ^= __shfl_xor_sync(~0u, sum, lanes);
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int warp = 1; warp < THREADS / WARP; warp++) sum ^= parts[warp];
    sums[blockIdx.x] = sum;
}

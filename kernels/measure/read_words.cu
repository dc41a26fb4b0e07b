// What reading alone costs: a block reads its own 32 KiB, a thread eight pieces of 16 bytes of it,
// and writes the exclusive or of their words to sums[blockIdx.x].
// Launch: blocks of 256 threads, at least one for each 2048 pieces of 16 bytes.
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

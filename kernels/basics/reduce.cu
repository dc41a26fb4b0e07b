// reduce: *sum += in[0] + ... + in[count - 1], in whole numbers, so that order does not matter.
//
// The idea: each warp adds its lanes by shuffles, the block adds its warps through shared memory,
// and the grid adds its blocks with one atomic each.
// Owner: block b owns sum_b; thread t of the grid owns elements t, t + threads, ...
// Bound by reads: 4 bytes per element. Requires: blockDim.x a multiple of 32, at most 1024.
enum { WARP = 32 };

static __device__ unsigned long long warp_sum(unsigned long long x) {
    for (int by = WARP / 2; by > 0; by /= 2) x += __shfl_down_sync(0xffffffffu, x, by);
    return x;
}

extern "C" __global__ void reduce(const int *in, unsigned long long *sum, int count) {
    __shared__ unsigned long long of_warp[WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    unsigned long long mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        mine += (long long)in[i];
    }
    mine = warp_sum(mine);
    if (lane == 0) of_warp[warp] = mine;
    __syncthreads(); // the first warp reads what the others wrote
    if (warp == 0) {
        mine = lane < blockDim.x / WARP ? of_warp[lane] : 0;
        mine = warp_sum(mine);
        if (lane == 0) atomicAdd(sum, mine);
    }
}

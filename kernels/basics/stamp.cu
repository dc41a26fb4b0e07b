// stamp: out[block][thread] = hash(seed, the six indices of the thread); *total += threads.
//
// The idea: the results show that each thread ran exactly once and saw its own indices. Blocks and
// threads are numbered x first.
// Owner: thread t of block b owns out[b * threads + t]. Bound by writes and one atomic a thread.
// Requires: any grid and block of one to three dimensions.
static __device__ unsigned mix(unsigned hash, unsigned value) {
    hash = (hash ^ value) * 0x9e3779b1u;
    return hash ^ hash >> 15;
}

extern "C" __global__ void stamp(unsigned *out, unsigned *total, unsigned seed) {
    unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned long long block =
        blockIdx.x + gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
    unsigned hash = mix(seed, threadIdx.x);
    hash = mix(hash, threadIdx.y);
    hash = mix(hash, threadIdx.z);
    hash = mix(hash, blockIdx.x);
    hash = mix(hash, blockIdx.y);
    hash = mix(hash, blockIdx.z);
    out[block * threads + thread] = hash;
    atomicAdd(total, 1u);
}

// top_k: the k largest elements of each row and their columns, in order.
//
// The idea: as in argmax an element and its column are one 64-bit key, and no two keys of a row are
// equal. The k-th largest of any k keys of a row is at most its k-th largest key, so it is a
// threshold: the first comes from the largest key of each thread, and a second pass over the row,
// which is in the L2 cache by then, collects what reaches the threshold. Of a row that was drawn
// this is little more than k keys. Where they do not fit in shared memory, the k-th largest of
// those that did is the next threshold: it lies above at least as many keys as there is room beyond
// k, so this ends. What is kept is sorted; the result depends on no order of threads.
// Owner: block r owns row r; thread t its pieces t, t + blockDim.x, ...
// Bound by: reads. Requires: gridDim.x = rows, blockDim.x a power of two from 32 to TOP_K_THREADS;
// any alignment.
// Source: Gaihre et al., Dr. Top-k (SC 2021), where the largest of each part is its delegate;
// Batcher, Sorting networks and their applications (1968).
#include "top_k_block.cuh"

template <typename T> __device__ inline void top_k(const top_k_arguments &x) {
    __shared__ top_k_shared shared;
    top_k_block<T>(x, &shared);
}

extern "C" __global__ void __launch_bounds__(TOP_K_THREADS) top_k_f32(top_k_arguments x) {
    top_k<float>(x);
}
extern "C" __global__ void __launch_bounds__(TOP_K_THREADS) top_k_f16(top_k_arguments x) {
    top_k<__half>(x);
}
extern "C" __global__ void __launch_bounds__(TOP_K_THREADS) top_k_bf16(top_k_arguments x) {
    top_k<__nv_bfloat16>(x);
}

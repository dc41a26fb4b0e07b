// attention over packed sequences, step 1: a warp for each row of q.
//
// The idea: attention_1_naive, for the rows of one sequence.
// Owner: block (t, h, s) owns blockDim.y rows of one head of sequence s, one per warp.
// Bound by: reads of k and v, which are repeated for every row of q.
// Requires: blockDim = (32, rows, 1), gridDim = (rows of the longest sequence / rows, rounded up;
// heads; sequences); head_size at most 256; any alignment.
#include "../forward/attention_naive.cuh"
#include "attention_packed.cuh"

template <typename T>
__device__ inline void attention_packed_naive(const attention_packed_arguments &p) {
    const attention_arguments x = sequence_of<T>(p, blockIdx.z, blockIdx.y);
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row < x.q_length) attention_naive_row<T>(x, blockIdx.z, blockIdx.y, row);
}

extern "C" __global__ void attention_packed_naive_f32(attention_packed_arguments p) {
    attention_packed_naive<float>(p);
}
extern "C" __global__ void attention_packed_naive_f16(attention_packed_arguments p) {
    attention_packed_naive<__half>(p);
}
extern "C" __global__ void attention_packed_naive_bf16(attention_packed_arguments p) {
    attention_packed_naive<__nv_bfloat16>(p);
}

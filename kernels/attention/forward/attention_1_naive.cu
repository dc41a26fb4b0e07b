// attention, step 1: a warp for each row of q.
//
// out[b][h][i][d] = sum_j p[j] v[b][h / group][j][d], where p = softmax over j of s[j] and
// s[j] = scale * sum_d q[b][h][i][d] k[b][h / group][j][d]. With a causal mask, j ends at
// i + kv - q; with a window, it begins that number of keys before its end.
//
// The idea: the online softmax. One pass over the keys keeps the largest score so far, the sum of
// weights and the weighted sum of values. When the maximum grows, both sums are scaled down. The
// matrix of scores is never written to memory.
// Owner: a warp owns row i of out; lane l owns its elements l, l + 32, ... and the same of q.
// Bound by: reads of k and v, which are repeated for every row of q.
// Requires: blockDim = (32, rows, 1), gridDim.x = rows of q of all heads / rows, rounded up;
// head_size at most 256; any alignment.
#include "attention_naive.cuh"

template <typename T> __device__ inline void attention_naive(const attention_arguments &x) {
    const long long index = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    const int row = (int)(index % x.q_length);
    const int head = (int)(index / x.q_length % x.heads);
    const int batch = (int)(index / x.q_length / x.heads);
    if (batch < x.batch) attention_naive_row<T>(x, batch, head, row);
}

extern "C" __global__ void attention_naive_f32(attention_arguments x) {
    attention_naive<float>(x);
}
extern "C" __global__ void attention_naive_f16(attention_arguments x) {
    attention_naive<__half>(x);
}
extern "C" __global__ void attention_naive_bf16(attention_arguments x) {
    attention_naive<__nv_bfloat16>(x);
}

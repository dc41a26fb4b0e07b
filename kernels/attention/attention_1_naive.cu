// attention, step 1: a warp for each row of q.
//
// out[b][h][i][d] = sum_j p[j] v[b][h / group][j][d], where p = softmax over j of s[j] and
// s[j] = scale * sum_d q[b][h][i][d] k[b][h / group][j][d]. With causal j ends at i + kv - q,
// and with a window it begins so many keys before its end.
//
// The idea: the online softmax. One pass over the keys keeps the largest score so far, the sum of
// weights and the weighted sum of values, and scales both sums when the maximum grows. The matrix
// of scores is never in memory.
// Owner: a warp owns row i of out; lane l owns its elements l, l + 32, ... and the same of q.
// Bound by: reads of k and v, which every row of q repeats.
// Requires: blockDim = (32, rows, 1), gridDim.x = rows of q of all heads / rows, rounded up;
// head_size at most 256; any alignment.
#include "attention.cuh"

template <typename T> __device__ inline void attention_naive(const attention_arguments &x) {
    constexpr int MOST = 256 / WARP;
    const int lane = threadIdx.x;
    const long long index = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    const int row = (int)(index % x.q_length);
    const int head = (int)(index / x.q_length % x.heads);
    const int batch = (int)(index / x.q_length / x.heads);
    if (batch >= x.batch) return;
    const T *q = attention_row<T>(x.q, x.q_strides, batch, head, row);
    const T *k = attention_row<T>(x.k, x.k_strides, batch, head / x.group, 0);
    const T *v = attention_row<T>(x.v, x.v_strides, batch, head / x.group, 0);
    T *out = (T *)attention_row<T>(x.out, x.out_strides, batch, head, row);
    float query[MOST], sums[MOST], largest = -INFINITE, sum = 0;
#pragma unroll
    for (int i = 0; i < MOST; i++) {
        const int d = i * WARP + lane;
        query[i] = d < x.head_size ? to_float(q[d]) : 0;
        sums[i] = 0;
    }
    const int keys = keys_seen(x, row), from = first_key_seen(x, row);
    k += from * x.k_strides.row, v += from * x.v_strides.row;
    for (int key = from; key < keys; key++, k += x.k_strides.row, v += x.v_strides.row) {
        float score = 0;
#pragma unroll
        for (int i = 0; i < MOST; i++) {
            const int d = i * WARP + lane;
            if (d < x.head_size) score = fmaf(query[i], to_float(k[d]), score);
        }
        score = warp_sum(score) * x.scale_log2;
        const float before = largest;
        largest = fmaxf(largest, score);
        const float base = finite_base(largest);
        const float grown = exp2f(before - base), weight = exp2f(score - base);
        sum = fmaf(sum, grown, weight);
#pragma unroll
        for (int i = 0; i < MOST; i++) {
            const int d = i * WARP + lane;
            if (d < x.head_size) sums[i] = fmaf(weight, to_float(v[d]), sums[i] * grown);
        }
    }
#pragma unroll
    for (int i = 0; i < MOST; i++) {
        const int d = i * WARP + lane;
        if (d < x.head_size) out[d] = from_float<T>(sums[i] * share_of(sum));
    }
    if (lane == 0) store_lse(x, batch, head, row, largest, sum);
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

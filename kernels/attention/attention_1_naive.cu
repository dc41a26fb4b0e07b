// out = softmax(scale q k^T) v with the online softmax, and no matrix of scores: a warp has a row
// of q, lane i the elements i, i + 32, ... of it and of its row of out; it takes one key at a time.
// Any head size up to 256, any alignment.
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
    const int keys = keys_seen(x, row);
    for (int key = 0; key < keys; key++, k += x.k_strides.row, v += x.v_strides.row) {
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

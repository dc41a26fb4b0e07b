// A row of attention by a warp: what attention_1_naive, attention_packed_1_naive and
// attention_paged_1_naive share.
//
// The idea, and what bounds it: as attention_1_naive.cu says.
// Owner: the calling warp owns row `row` of out; lane threadIdx.x its elements lane, lane + 32, ...
// Requires: blockDim.x = 32; head_size at most 256; any alignment.
#pragma once

#include "attention.cuh"

// Keys and values that lie in rows of one stride: a walk over them, a key at a time.
template <typename T> struct attention_walk {
    const attention_arguments &x;
    const T *k, *v;

    __device__ inline attention_walk(const attention_arguments &x, int batch, int head)
        : x(x), k(attention_row<T>(x.k, x.k_strides, batch, head / x.group, 0)),
          v(attention_row<T>(x.v, x.v_strides, batch, head / x.group, 0)) {}
    __device__ inline void begin(int key) {
        k += key * x.k_strides.row, v += key * x.v_strides.row;
    }
    __device__ inline void arrive() {}
    __device__ inline void advance() { k += x.k_strides.row, v += x.v_strides.row; }
    __device__ inline float key(int d) const { return to_float(k[d]); }
    __device__ inline float value(int d) const { return to_float(v[d]); }
};

// Q: the elements of q. more: what another walk is made of.
template <typename T, typename WALK = attention_walk<T>, typename Q = T, typename... MORE>
__device__ inline void attention_naive_row(const attention_arguments &x, int batch, int head,
                                           int row, const MORE &...more) {
    constexpr int MOST = 256 / WARP;
    const int lane = threadIdx.x;
    const Q *q = attention_row<Q>(x.q, x.q_strides, batch, head, row);
    WALK walk(x, batch, head, more...);
    T *out = (T *)attention_row<T>(x.out, x.out_strides, batch, head, row);
    float query[MOST], sums[MOST], largest = -INFINITE, sum = 0;
#pragma unroll
    for (int i = 0; i < MOST; i++) {
        const int d = i * WARP + lane;
        query[i] = d < x.head_size ? to_float(q[d]) : 0;
        sums[i] = 0;
    }
    const int keys = keys_seen(x, row), from = first_key_seen(x, row);
    walk.begin(from);
    for (int key = from; key < keys; key++, walk.advance()) {
        walk.arrive();
        float score = 0;
#pragma unroll
        for (int i = 0; i < MOST; i++) {
            const int d = i * WARP + lane;
            if (d < x.head_size) score = fmaf(query[i], walk.key(d), score);
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
            if (d < x.head_size) sums[i] = fmaf(weight, walk.value(d), sums[i] * grown);
        }
    }
#pragma unroll
    for (int i = 0; i < MOST; i++) {
        const int d = i * WARP + lane;
        if (d < x.head_size) out[d] = from_float<T>(sums[i] * share_of(sum));
    }
    if (lane == 0) store_lse(x, batch, head, row, largest, sum);
}

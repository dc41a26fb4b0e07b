// What the kernels of attention share: rows, masks, and the arithmetic of the online softmax.
//
// Scores are powers of two: exp(x) = exp2(x log2 e), and the factor is part of the scale.
#pragma once

#include "../../tile.cuh"
#include "attention_arguments.h"

#include <limits>

constexpr float INFINITE = std::numeric_limits<float>::infinity();
constexpr float LN_2 = 0.693147180559945309f;

__device__ inline float exp2_approximate(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

template <typename T>
__device__ inline const T *attention_row(const void *base, const attention_strides &strides,
                                         int batch, int head, int row) {
    return (const T *)base + batch * strides.batch + head * strides.head + row * strides.row;
}

// The keys that a row of q sees end here. With causal the last row sees the last key.
__device__ inline int keys_seen(const attention_arguments &x, int row) {
    if (!x.causal) return x.kv_length;
    return max(0, min(x.kv_length, row + x.kv_length - x.q_length + 1));
}

// The first of them: with a window a row sees no more keys than that.
__device__ inline int first_key_seen(const attention_arguments &x, int row) {
    if (!x.causal) return 0;
    return max(0, row + 1 - x.q_length + (x.kv_length - x.window));
}

// What is subtracted for a maximum: 0 if no key was seen, since -inf - -inf is NaN.
__device__ inline float finite_base(float largest) {
    return largest == -INFINITE ? 0 : largest;
}

// The reciprocal of a sum of weights; 0 if no key was seen.
__device__ inline float share_of(float sum) {
    return sum == 0 ? 0 : 1 / sum;
}

__device__ inline void store_lse(const attention_arguments &x, int batch, int head, int row,
                                 float largest, float sum) {
    if (x.lse == nullptr) return;
    const long long at = ((long long)batch * x.heads + head) * x.q_length + row;
    ((float *)x.lse)[at] = sum == 0 ? -INFINITE : (largest + log2f(sum)) * LN_2;
}

// Merges the parts of WARPS warps into row `row` of out, or, where blocks split the keys, into the
// part of this block's share, which gets the logarithm of its sum of weights after the row. The
// part of warp w begins at parts[w * PITCH]: sums of D elements, their base, the sum of weights.
// Called by `threads` threads, of which this is number `thread`.
template <typename T, int D, int WARPS, int PITCH>
__device__ inline void merge_warps(const attention_arguments &x, const float *parts, int batch,
                                   int head, int row, int thread, int threads) {
    const int split = blockIdx.x;
    float base = -INFINITE, sum = 0, grown[WARPS];
#pragma unroll
    for (int w = 0; w < WARPS; w++) base = fmaxf(base, parts[w * PITCH + D]);
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        grown[w] = exp2f(parts[w * PITCH + D] - finite_base(base));
        sum = fmaf(parts[w * PITCH + D + 1], grown[w], sum);
    }
    const long long rows = (long long)x.batch * x.heads * x.q_length;
    const long long index = ((long long)batch * x.heads + head) * x.q_length + row;
    float *part = (float *)x.part + (split * rows + index) * (D + 1);
    T *out = (T *)attention_row<T>(x.out, x.out_strides, batch, head, row);
    for (int d = thread; d < D; d += threads) {
        float value = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) value = fmaf(parts[w * PITCH + d], grown[w], value);
        value *= share_of(sum);
        if (x.splits == 1) {
            out[d] = from_float<T>(value);
        } else {
            part[d] = value;
        }
    }
    if (thread != 0) return;
    if (x.splits == 1) {
        store_lse(x, batch, head, row, base, sum);
    } else {
        part[D] = sum == 0 ? -INFINITE : base + log2f(sum);
    }
}

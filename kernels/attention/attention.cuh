// What the kernels of attention share. Scores live as powers of two: exp(x) = exp2(x log2 e), and
// the factor is part of the scale.
#pragma once

#include "../tile.cuh"
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

// How many keys a row of q sees: they are the first so many. With causal the last row sees all.
__device__ inline int keys_seen(const attention_arguments &x, int row) {
    if (!x.causal) return x.kv_length;
    return max(0, min(x.kv_length, row + x.kv_length - x.q_length + 1));
}

// What a maximum so far is subtracted as: 0 where nothing was seen, as -inf - -inf is no number.
__device__ inline float finite_base(float largest) { return largest == -INFINITE ? 0 : largest; }

// The share of a row: 0 where nothing was seen.
__device__ inline float share_of(float sum) { return sum == 0 ? 0 : 1 / sum; }

__device__ inline void store_lse(const attention_arguments &x, int batch, int head, int row,
                                 float largest, float sum) {
    if (x.lse == nullptr) return;
    const long long at = ((long long)batch * x.heads + head) * x.q_length + row;
    ((float *)x.lse)[at] = sum == 0 ? -INFINITE : (largest + log2f(sum)) * LN_2;
}

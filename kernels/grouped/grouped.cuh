// What the kernels of grouped share: where groups begin, numbers of 8 bits, and what follows a
// product.
#pragma once

#include "../e4m3.cuh"
#include "../gemm/gemm.cuh"
#include "grouped_arguments.h"

// ---- numbers of 8 bits ----

struct s8 {
    int8_t number;
};

__device__ inline float to_float(s8 x) {
    return x.number;
}

template <> __device__ inline e4m3 from_float<e4m3>(float x) {
#if __CUDA_ARCH__ >= 890
    uint16_t two;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %1;" : "=h"(two) : "f"(x));
    return {(uint8_t)two};
#else
    const uint32_t sign = __float_as_uint(x) >> 24 & 0x80, least_normal = 0x3c800000; // 2^-6
    if (x != x) return {0x7f};
    const float size = fminf(fabsf(x), 448.0f);
    uint32_t bits = __float_as_uint(size);
    if (bits < least_normal) return {(uint8_t)(sign | __float2uint_rn(size * 512.0f))};
    bits += 0x7ffff + (bits >> 20 & 1); // to nearest, ties to even
    return {(uint8_t)(sign | (bits >> 20) - (120 << 3))};
#endif
}
template <> __device__ inline s8 from_float<s8>(float x) {
    return {(int8_t)__float2int_rn(fminf(fmaxf(x == x ? x : 0.0f, -127.0f), 127.0f))};
}

// ---- groups ----

// Walks tiles of all groups in their order: find(i) for rising i.
struct grouped_walk {
    int group, first; // its first tile
    int begin, end;   // its rows

    __device__ inline static int bound(const grouped_arguments &x, int i, int least) {
        if (x.begins == nullptr) return i == 0 ? 0 : x.m;
        return min(max(((const int *)x.begins)[i], least), x.m);
    }
    __device__ inline grouped_walk(const grouped_arguments &x) : group(0), first(0) {
        begin = bound(x, 0, 0);
        end = bound(x, 1, begin);
    }
    // Goes to the group of tile i. false: there are fewer tiles.
    __device__ inline bool find(const grouped_arguments &x, int i, int rows, int columns) {
        while (i >= first + ceil_div(end - begin, rows) * columns) {
            first += ceil_div(end - begin, rows) * columns;
            if (++group == x.groups) return false;
            begin = end;
            end = bound(x, group + 1, begin);
        }
        return true;
    }
};

// ---- what follows a product ----

__device__ inline float grouped_activate(int activation, float v) {
    if (activation == GROUPED_SILU) return v / (1.0f + expf(-v));
    if (activation == GROUPED_GELU) return 0.5f * v * (1.0f + erff(v * 0.707106781f));
    if (activation == GROUPED_GELU_TANH) {
        return 0.5f * v * (1.0f + tanhf(0.797884561f * fmaf(0.044715f * v * v, v, v)));
    }
    return v;
}

// Of COUNT neighbouring columns of a group: what their sums are multiplied by, and what is added.
template <int COUNT> struct grouped_columns {
    float scale[COUNT], bias[COUNT];

    __device__ inline grouped_columns(const grouped_arguments &x, int group, int column) {
        const float *scales = (const float *)x.b_scale + group * x.group_scale + column;
        const float *biases = (const float *)x.bias + group * x.group_bias + column;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const bool inside = column + i < x.n;
            scale[i] = x.b_scale != nullptr && inside ? x.alpha * scales[i] : x.alpha;
            bias[i] = x.bias != nullptr && inside ? biases[i] : 0;
        }
    }
};

// What one load or store moves.
template <typename T, int COUNT> struct alignas(COUNT * sizeof(T)) grouped_numbers {
    T numbers[COUNT];
};

// Adds what a residual has from an element on; `whole`: as one load.
template <typename T, int COUNT>
__device__ inline void grouped_add(const T *from, int left, bool whole, float (&v)[COUNT]) {
    if (COUNT > 1 && whole) {
        const grouped_numbers<T, COUNT> all = *(const grouped_numbers<T, COUNT> *)from;
#pragma unroll
        for (int i = 0; i < COUNT; i++) v[i] += to_float(all.numbers[i]);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            if (i < left) v[i] += to_float(from[i]);
        }
    }
}

template <typename T, int COUNT>
__device__ inline void grouped_put(T *to, int left, bool whole, const float (&v)[COUNT]) {
    grouped_numbers<T, COUNT> all;
#pragma unroll
    for (int i = 0; i < COUNT; i++) all.numbers[i] = from_float<T>(v[i]);
    if (COUNT > 1 && whole) {
        *(grouped_numbers<T, COUNT> *)to = all;
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            if (i < left) to[i] = all.numbers[i];
        }
    }
}

// Does what follows the product with the sums of COUNT neighbours of a row, and stores them.
template <int COUNT>
__device__ inline void grouped_finish(const grouped_arguments &x, const grouped_columns<COUNT> &of,
                                      int row, int column, const float (&sum)[COUNT]) {
    const float row_scale = x.a_scale != nullptr ? ((const float *)x.a_scale)[row] : 1.0f;
    const int left = x.n - column;
    const long long from = row * x.ld_residual + column, to = row * x.ldc + column;
    float v[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) v[i] = fmaf(sum[i], row_scale * of.scale[i], of.bias[i]);
    if (x.activation != GROUPED_PLAIN) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) v[i] = grouped_activate(x.activation, v[i]);
    }
    if (x.residual != nullptr) {
        const bool whole = x.residual_is_whole;
        if (x.residual_type == GROUPED_F32) {
            grouped_add((const float *)x.residual + from, left, whole, v);
        } else if (x.residual_type == GROUPED_F16) {
            grouped_add((const __half *)x.residual + from, left, whole, v);
        } else {
            grouped_add((const __nv_bfloat16 *)x.residual + from, left, whole, v);
        }
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++) v[i] *= x.c_inverse;
    if (x.c_type == GROUPED_F32) grouped_put((float *)x.c + to, left, x.c_is_whole, v);
    if (x.c_type == GROUPED_F16) grouped_put((__half *)x.c + to, left, x.c_is_whole, v);
    if (x.c_type == GROUPED_BF16) grouped_put((__nv_bfloat16 *)x.c + to, left, x.c_is_whole, v);
    if (x.c_type == GROUPED_E4M3) grouped_put((e4m3 *)x.c + to, left, x.c_is_whole, v);
    if (x.c_type == GROUPED_S8) grouped_put((s8 *)x.c + to, left, x.c_is_whole, v);
}

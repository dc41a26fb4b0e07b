// What the kernels of grouped share: where groups begin, numbers of 8 bits, and the epilogue.
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

// ---- the epilogue ----

// By ex2 and rcp of the hardware, whose errors are far inside what a result is rounded to. With .ftz
// each is one instruction; what it flushes is below 2^-126. Where exp overflows, the quotient is
// -0, which is the limit.
__device__ inline float grouped_silu(float v) {
    float power, quotient;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(-1.44269504f * v));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(quotient) : "f"(1.0f + power));
    return v * quotient;
}
__device__ inline float grouped_gelu(float v) {
    return 0.5f * v * (1.0f + erff(v * 0.707106781f));
}
__device__ inline float grouped_gelu_tanh(float v) {
    return 0.5f * v * (1.0f + tanhf(0.797884561f * fmaf(0.044715f * v * v, v, v)));
}

template <int ROWS, int COUNT, typename F>
__device__ inline void grouped_each(float (&v)[ROWS][COUNT], const F &f) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) v[r][i] = f(r, i);
    }
}

// Branches once for all numbers, so that their arithmetic overlaps.
template <int ROWS, int COUNT>
__device__ inline void grouped_activate(int activation, float (&v)[ROWS][COUNT]) {
    if (activation == GROUPED_SILU) {
        grouped_each(v, [&](int r, int i) { return grouped_silu(v[r][i]); });
    } else if (activation == GROUPED_GELU) {
        grouped_each(v, [&](int r, int i) { return grouped_gelu(v[r][i]); });
    } else if (activation == GROUPED_GELU_TANH) {
        grouped_each(v, [&](int r, int i) { return grouped_gelu_tanh(v[r][i]); });
    }
}

// Of COUNT neighbouring columns of a group: what their sums are multiplied by, and what is added.
template <int COUNT> struct grouped_columns {
    float scale[COUNT], bias[COUNT];

    __device__ inline grouped_columns(const grouped_arguments &x, int group, int column) {
        const float *scales = (const float *)x.b_scale + group * x.group_scale + column;
        const float *biases = (const float *)x.bias + group * x.group_bias + column;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            scale[i] = x.alpha;
            bias[i] = 0;
        }
        if (x.b_scale != nullptr) {
#pragma unroll
            for (int i = 0; i < COUNT; i++) {
                if (column + i < x.n) scale[i] = x.alpha * scales[i];
            }
        }
        if (x.bias != nullptr) {
#pragma unroll
            for (int i = 0; i < COUNT; i++) {
                if (column + i < x.n) bias[i] = biases[i];
            }
        }
    }
};

// What one load or store moves.
template <typename T, int COUNT> struct alignas(COUNT * sizeof(T)) grouped_numbers {
    T numbers[COUNT];
};

// ROWS rows of a residual that are STEP rows apart, COUNT neighbours of each, as the bits of memory:
// a load is waited for where its bits are used, which is after the loads of all rows.
template <int ROWS, int COUNT, int STEP> struct grouped_residual {
    uint32_t words[ROWS][COUNT]; // an element of 16 bits has half a word

    // Leaves rows from `end` on and columns from n on as they are.
    __device__ inline void load(const grouped_arguments &x, int row, int end, int column) {
        if (x.residual == nullptr) return;
        const long long from = row * x.ld_residual + column;
        if (x.residual_type == GROUPED_F32) {
            take(x, (const uint32_t *)x.residual + from, end - row, x.n - column);
        } else {
            take(x, (const uint16_t *)x.residual + from, end - row, x.n - column);
        }
    }
    __device__ inline void add(const grouped_arguments &x, float (&v)[ROWS][COUNT]) const {
        if (x.residual == nullptr) return;
        if (x.residual_type == GROUPED_F32) {
            grouped_each(v, [&](int r, int i) { return v[r][i] + __uint_as_float(words[r][i]); });
        } else if (x.residual_type == GROUPED_F16) {
            grouped_each(v, [&](int r, int i) {
                return v[r][i] + to_float(__ushort_as_half(half_word(r, i)));
            });
        } else {
            grouped_each(v, [&](int r, int i) {
                return v[r][i] + to_float(__ushort_as_bfloat16(half_word(r, i)));
            });
        }
    }

private:
    __device__ inline uint16_t half_word(int r, int i) const {
        return (uint16_t)(words[r][i / 2] >> i % 2 * 16);
    }
    template <typename BITS>
    __device__ inline void take(const grouped_arguments &x, const BITS *from, int rows, int left) {
        constexpr int PER = 4 / (int)sizeof(BITS), WORDS = COUNT < PER ? 1 : COUNT / PER;
        if (COUNT > 1 && x.residual_is_whole) {
#pragma unroll
            for (int r = 0; r < ROWS; r++, from += STEP * x.ld_residual) {
                if (r * STEP >= rows || left <= 0) continue;
                const auto all = *(const grouped_numbers<uint32_t, WORDS> *)from;
#pragma unroll
                for (int i = 0; i < WORDS; i++) words[r][i] = all.numbers[i];
            }
        } else {
#pragma unroll
            for (int r = 0; r < ROWS; r++, from += STEP * x.ld_residual) {
#pragma unroll
                for (int i = 0; i < COUNT; i++) {
                    const bool inside = r * STEP < rows && i < left;
                    const uint32_t bits = inside ? from[i] : 0;
                    words[r][i / PER] =
                        (i % PER == 0 ? 0 : words[r][i / PER]) | bits << i % PER * (32 / PER);
                }
            }
        }
    }
};

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

template <typename T, int STEP, int ROWS, int COUNT>
__device__ inline void grouped_put_rows(const grouped_arguments &x, int row, int end, int column,
                                        const float (&v)[ROWS][COUNT]) {
    T *to = (T *)x.c + row * x.ldc + column;
#pragma unroll
    for (int r = 0; r < ROWS; r++, to += STEP * x.ldc) {
        if (row + r * STEP < end) grouped_put(to, x.n - column, x.c_is_whole, v[r]);
    }
}

// The factors of rows that are STEP rows apart.
template <int STEP, int ROWS>
__device__ inline void grouped_row_scales(const grouped_arguments &x, int row, int end,
                                          float (&scales)[ROWS]) {
    const float *from = (const float *)x.a_scale + row;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        scales[r] = x.a_scale != nullptr && row + r * STEP < end ? from[r * STEP] : 1.0f;
    }
}

// The epilogue of ROWS rows that are STEP rows apart, COUNT neighbours of each: v has their sums.
// Rows from `end` on are not stored. It branches on what all threads share outside of its loops.
template <int STEP, int ROWS, int COUNT>
__device__ inline void grouped_finish(const grouped_arguments &x, const grouped_columns<COUNT> &of,
                                      const float (&row_scales)[ROWS],
                                      const grouped_residual<ROWS, COUNT, STEP> &residual, int row,
                                      int end, int column, float (&v)[ROWS][COUNT]) {
    if (x.a_scale != nullptr) {
        grouped_each(v, [&](int r, int i) {
            return fmaf(v[r][i], row_scales[r] * of.scale[i], of.bias[i]);
        });
    } else {
        grouped_each(v, [&](int r, int i) { return fmaf(v[r][i], of.scale[i], of.bias[i]); });
    }
    grouped_activate(x.activation, v);
    residual.add(x, v);
    if (x.c_inverse != 1.0f) {
        grouped_each(v, [&](int r, int i) { return v[r][i] * x.c_inverse; });
    }
    if (x.c_type == GROUPED_F32) grouped_put_rows<float, STEP>(x, row, end, column, v);
    if (x.c_type == GROUPED_F16) grouped_put_rows<__half, STEP>(x, row, end, column, v);
    if (x.c_type == GROUPED_BF16) grouped_put_rows<__nv_bfloat16, STEP>(x, row, end, column, v);
    if (x.c_type == GROUPED_E4M3) grouped_put_rows<e4m3, STEP>(x, row, end, column, v);
    if (x.c_type == GROUPED_S8) grouped_put_rows<s8, STEP>(x, row, end, column, v);
}

// The same for one row, whose residual is loaded here.
template <int COUNT>
__device__ inline void grouped_finish(const grouped_arguments &x, const grouped_columns<COUNT> &of,
                                      int row, int column, const float (&sum)[COUNT]) {
    grouped_residual<1, COUNT, 1> residual;
    float v[1][COUNT], row_scale[1];
    grouped_row_scales<1>(x, row, row + 1, row_scale);
    residual.load(x, row, row + 1, column);
#pragma unroll
    for (int i = 0; i < COUNT; i++) v[0][i] = sum[i];
    grouped_finish(x, of, row_scale, residual, row, row + 1, column, v);
}

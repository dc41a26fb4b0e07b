// quant product, step 2: floats; several rows use each load of x.
//
// The idea: a block owns a few rows and columns and its threads own pieces of the rows, so each
// load of x serves several rows. Weights are read by 16 bytes where blocks are aligned (Q4_K). A
// quant becomes a float without a conversion: as the low byte of the mantissa of 2^23 it is 2^23
// plus its value, and the subtraction of 2^23 is exact.
// Owner: as quant_product.cuh says.
// Requires: as quant_product.cuh; x and its columns at multiples of 16 bytes, Q4_K weights too.
#include "quant_product.cuh"

// Four bytes as floats, minus `less`.
__device__ inline void bytes_to_floats(float (&q)[4], uint32_t bytes, float less) {
    q[0] = __uint_as_float(__byte_perm(bytes, 0x4b000000, 0x7440)) - (8388608.0f + less);
    q[1] = __uint_as_float(__byte_perm(bytes, 0x4b000000, 0x7441)) - (8388608.0f + less);
    q[2] = __uint_as_float(__byte_perm(bytes, 0x4b000000, 0x7442)) - (8388608.0f + less);
    q[3] = __uint_as_float(__byte_perm(bytes, 0x4b000000, 0x7443)) - (8388608.0f + less);
}

__device__ inline float dot(const float (&q)[4], const float4 &x, float sum) {
    sum = fmaf(q[0], x.x, sum);
    sum = fmaf(q[1], x.y, sum);
    sum = fmaf(q[2], x.z, sum);
    return fmaf(q[3], x.w, sum);
}

__device__ inline uint32_t word_of(const uint4 &v, int i) {
    const uint32_t even = i & 2 ? v.z : v.x, odd = i & 2 ? v.w : v.y;
    return i & 1 ? odd : even;
}

// A piece is 16 bytes of quants: the low halves of one sub-block and the high halves of the next.
// The order of the words differs by lane, so that the lanes' x are in different banks.
struct rows_q4_k {
    enum { BYTES = Q4_K_BYTES, PIECES = 8 };
    template <int ROWS, int COLUMNS>
    static __device__ inline void add(float (&sums)[ROWS][COLUMNS],
                                      const weight_rows<ROWS> &weights,
                                      const float *const (&x)[COLUMNS], uint32_t piece) {
        const uint32_t block = piece / 8;
        const int c = piece % 8, g = c / 2;
        uint4 headers[ROWS], qs[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const uint4 *p = (const uint4 *)(weights.row[r] + (uint64_t)block * BYTES);
            headers[r] = __ldg(p);
            qs[r] = __ldg(p + 1 + c);
        }
        const uint32_t at = block * 256 + 64 * g + 16 * (c % 2);
        float low[ROWS][COLUMNS] = {}, high[ROWS][COLUMNS] = {};
        float x_low[COLUMNS] = {}, x_high[COLUMNS] = {};
#pragma unroll
        for (int turn = 0; turn < 4; turn++) {
            const int i = (turn + g) % 4;
            float4 a[COLUMNS], b[COLUMNS];
#pragma unroll
            for (int n = 0; n < COLUMNS; n++) {
                a[n] = __ldg((const float4 *)(x[n] + at) + i);
                b[n] = __ldg((const float4 *)(x[n] + at) + 8 + i);
                x_low[n] += a[n].x + a[n].y + (a[n].z + a[n].w);
                x_high[n] += b[n].x + b[n].y + (b[n].z + b[n].w);
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const uint32_t word = word_of(qs[r], i);
                float q[2][4];
                bytes_to_floats(q[0], word & 0x0f0f0f0fu, 0);
                bytes_to_floats(q[1], word >> 4 & 0x0f0f0f0fu, 0);
#pragma unroll
                for (int n = 0; n < COLUMNS; n++) {
                    low[r][n] = dot(q[0], a[n], low[r][n]);
                    high[r][n] = dot(q[1], b[n], high[r][n]);
                }
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const q4_k_scales s = q4_k_scales_of(headers[r], g);
            const float2 d = q4_k_d(headers[r]);
            float scales[4], minimums[4];
            bytes_to_floats(scales, s.scales, 0);
            bytes_to_floats(minimums, s.minimums, 0);
#pragma unroll
            for (int n = 0; n < COLUMNS; n++) {
                const float plus = scales[0] * low[r][n] + scales[1] * high[r][n];
                const float minus = minimums[0] * x_low[n] + minimums[1] * x_high[n];
                sums[r][n] += d.x * plus - d.y * minus;
            }
        }
    }
};

// A piece is eight neighbours in each quarter of half a block.
struct rows_q6_k {
    enum { BYTES = Q6_K_BYTES, PIECES = 8 };
    template <int ROWS, int COLUMNS>
    static __device__ inline void add(float (&sums)[ROWS][COLUMNS],
                                      const weight_rows<ROWS> &weights,
                                      const float *const (&x)[COLUMNS], uint32_t piece) {
        const uint32_t block = piece / 8;
        const int half = piece % 8 / 4, p = piece % 4;
        uint32_t ql[ROWS][2][2], qh[ROWS][2];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const uint8_t *b = weights.row[r] + (uint64_t)block * BYTES;
            const uint8_t *low = b + 64 * half + 8 * p, *high = b + 128 + 32 * half + 8 * p;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                ql[r][0][i] = load_4(low + 4 * i);
                ql[r][1][i] = load_4(low + 32 + 4 * i);
                qh[r][i] = load_4(high + 4 * i);
            }
        }
#pragma unroll
        for (int s = 0; s < 4; s++) {
            float4 v[COLUMNS][2];
#pragma unroll
            for (int n = 0; n < COLUMNS; n++) {
                const float4 *from =
                    (const float4 *)(x[n] + block * 256 + 128 * half + 32 * s + 8 * p);
                v[n][0] = __ldg(from);
                v[n][1] = __ldg(from + 1);
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const uint8_t *b = weights.row[r] + (uint64_t)block * BYTES;
                const float scale = half_value(load_2(b + 208)) *
                                    (float)(int8_t)__ldg(b + 192 + 8 * half + 2 * s + p / 2);
                float q[2][4];
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const uint32_t low = (s < 2 ? ql[r][s % 2][i] : ql[r][s % 2][i] >> 4);
                    const uint32_t high = qh[r][i] >> 2 * s & 0x03030303u;
                    bytes_to_floats(q[i], (low & 0x0f0f0f0fu) | high << 4, 32);
                }
#pragma unroll
                for (int n = 0; n < COLUMNS; n++) {
                    sums[r][n] = fmaf(scale, dot(q[1], v[n][1], dot(q[0], v[n][0], 0)), sums[r][n]);
                }
            }
        }
    }
};

// A piece is four neighbours, an eighth of a block.
struct rows_q8_0 {
    enum { BYTES = Q8_0_BYTES, PIECES = 8 };
    template <int ROWS, int COLUMNS>
    static __device__ inline void add(float (&sums)[ROWS][COLUMNS],
                                      const weight_rows<ROWS> &weights,
                                      const float *const (&x)[COLUMNS], uint32_t piece) {
        float4 v[COLUMNS];
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) v[n] = __ldg((const float4 *)x[n] + piece);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const uint8_t *b = weights.row[r] + (uint64_t)(piece / 8) * BYTES;
            const float d = half_value(load_2(b));
            float q[4];
            bytes_to_floats(q, load_4(b + 2 + 4 * (piece % 8)) ^ 0x80808080u, 128);
#pragma unroll
            for (int n = 0; n < COLUMNS; n++) {
                sums[r][n] = fmaf(d, dot(q, v[n], 0), sums[r][n]);
            }
        }
    }
};

template <typename Q, int ROWS, int COLUMNS>
__device__ inline void product(const kn_quant_product_arguments &a) {
    const weight_rows<ROWS> weights(a, Q::BYTES);
    const float *x[COLUMNS];
    float sums[ROWS][COLUMNS] = {};
#pragma unroll
    for (int n = 0; n < COLUMNS; n++) {
        x[n] = (const float *)a.x + min(blockIdx.y * COLUMNS + n, a.columns - 1) * a.x_stride;
    }
    for (uint32_t piece = threadIdx.x; piece < a.blocks * Q::PIECES; piece += PRODUCT_THREADS) {
        Q::add(sums, weights, x, piece);
    }
    product_write(a, sums);
}

// For one column four rows share x; for four columns, two.
#define ROWS(quant, columns, rows)                                                                 \
    extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS)                                  \
        quant_product_rows_##quant##_##columns(kn_quant_product_arguments a) {                     \
        product<rows_##quant, rows, columns>(a);                                                   \
    }

ROWS(q4_k, 1, 4)
ROWS(q6_k, 1, 4)
ROWS(q8_0, 1, 4)
ROWS(q4_k, 4, 2)
ROWS(q6_k, 4, 2)
ROWS(q8_0, 4, 2)

// quant product, step 3: x rounded to bytes, multiplied by dp4a.
//
// The idea: 32 neighbours of x become bytes with one scale, as in q8_1, except that the scale stays
// a float. dp4a then multiplies four quants at once, and only the sums of 16 or 32 products become
// floats. Two kernels: one rounds x, the other multiplies.
// Owner: a warp of quant_product_quantise owns 32 neighbours of a column of x; the product as
// quant_product.cuh says.
// Bound by: reads of the weights, and the launch of the prologue.
// Requires: as quant_product.cuh; Q4_K weights at a multiple of 16 bytes; k bytes and k / 32 floats
// of workspace for each column. quant_product_quantise: blockDim.x a multiple of 32, gridDim = (k /
// blockDim.x rounded up, columns).
#include "quant_product.cuh"
#include "quant_product_rounded.cuh"

// A warp owns 32 neighbours of a column.
extern "C" __global__ void quant_product_quantise(kn_quant_product_arguments a) {
    const uint64_t group = blockIdx.x * (uint64_t)(blockDim.x / WARP) + threadIdx.x / WARP;
    const uint32_t lane = threadIdx.x % WARP, groups = a.k / 32;
    if (group >= groups) return;
    const uint64_t column = blockIdx.y, k = group * 32 + lane;
    const float value = ((const float *)a.x)[column * a.x_stride + k];
    const rounded_number rounded = round_neighbour(value);
    ((int8_t *)a.quants)[column * a.k + k] = rounded.q;
    if (lane == 0) ((float *)a.scales)[column * groups + group] = rounded.d;
}

__device__ inline int dot_16(const uint4 &a, const int4 &b, int sum) {
    sum = __dp4a((int)a.x, b.x, sum);
    sum = __dp4a((int)a.y, b.y, sum);
    sum = __dp4a((int)a.z, b.z, sum);
    return __dp4a((int)a.w, b.w, sum);
}

__device__ inline uint4 nibbles(const uint4 &v, int shift) {
    return {v.x >> shift & 0x0f0f0f0fu, v.y >> shift & 0x0f0f0f0fu, v.z >> shift & 0x0f0f0f0fu,
            v.w >> shift & 0x0f0f0f0fu};
}

// A column as bytes and scales.
struct column {
    const int8_t *quants;
    const float *scales;
};

struct integers_q4_k {
    enum { BYTES = Q4_K_BYTES, PIECES = 8 };
    template <int ROWS, int COLUMNS>
    static __device__ inline void add(float (&sums)[ROWS][COLUMNS],
                                      const weight_rows<ROWS> &weights, const column (&x)[COLUMNS],
                                      uint32_t piece) {
        const uint32_t block = piece / 8;
        const int c = piece % 8, g = c / 2;
        const uint4 ones = {0x01010101u, 0x01010101u, 0x01010101u, 0x01010101u};
        uint4 headers[ROWS], qs[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const uint4 *p = (const uint4 *)(weights.row[r] + (uint64_t)block * BYTES);
            headers[r] = __ldg(p);
            qs[r] = __ldg(p + 1 + c);
        }
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
            const int4 *from = (const int4 *)(x[n].quants + block * 256 + 64 * g + 16 * (c % 2));
            const int4 low = __ldg(from), high = __ldg(from + 2);
            const float2 d_x = __ldg((const float2 *)(x[n].scales + block * 8) + g);
            const float x_low = d_x.x * (float)dot_16(ones, low, 0);
            const float x_high = d_x.y * (float)dot_16(ones, high, 0);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const q4_k_scales s = q4_k_scales_of(headers[r], g);
                const float2 d = q4_k_d(headers[r]);
                const int sum_low = dot_16(nibbles(qs[r], 0), low, 0) * (int)(s.scales & 0xff);
                const int sum_high = dot_16(nibbles(qs[r], 4), high, 0) * (int)(s.scales >> 8);
                const float plus = d_x.x * (float)sum_low + d_x.y * (float)sum_high;
                const float minus =
                    (float)(s.minimums & 0xff) * x_low + (float)(s.minimums >> 8) * x_high;
                sums[r][n] += d.x * plus - d.y * minus;
            }
        }
    }
};

struct integers_q6_k {
    enum { BYTES = Q6_K_BYTES, PIECES = 8 };
    template <int ROWS, int COLUMNS>
    static __device__ inline void add(float (&sums)[ROWS][COLUMNS],
                                      const weight_rows<ROWS> &weights, const column (&x)[COLUMNS],
                                      uint32_t piece) {
        const uint32_t block = piece / 8;
        const int half = piece % 8 / 4, p = piece % 4;
        uint32_t q[ROWS][4][2];
        float scales[ROWS][4];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const uint8_t *b = weights.row[r] + (uint64_t)block * BYTES;
            const float d = half_value(load_2(b + 208));
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const uint32_t first = load_4(b + 64 * half + 8 * p + 4 * i);
                const uint32_t second = load_4(b + 64 * half + 32 + 8 * p + 4 * i);
                const uint32_t high = load_4(b + 128 + 32 * half + 8 * p + 4 * i);
#pragma unroll
                for (int s = 0; s < 4; s++) {
                    q[r][s][i] = q6_k_four(s % 2 == 0 ? first : second, high, s);
                }
            }
#pragma unroll
            for (int s = 0; s < 4; s++) {
                scales[r][s] = d * (float)(int8_t)__ldg(b + 192 + 8 * half + 2 * s + p / 2);
            }
        }
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
            const float4 d_x = __ldg((const float4 *)(x[n].scales + block * 8) + half);
            const float d[4] = {d_x.x, d_x.y, d_x.z, d_x.w};
#pragma unroll
            for (int s = 0; s < 4; s++) {
                const int2 v =
                    __ldg((const int2 *)(x[n].quants + block * 256 + 128 * half + 32 * s + 8 * p));
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    const int sum = __dp4a((int)q[r][s][1], v.y, __dp4a((int)q[r][s][0], v.x, 0));
                    sums[r][n] = fmaf(scales[r][s] * d[s], (float)sum, sums[r][n]);
                }
            }
        }
    }
};

struct integers_q8_0 {
    enum { BYTES = Q8_0_BYTES, PIECES = 2 };
    template <int ROWS, int COLUMNS>
    static __device__ inline void add(float (&sums)[ROWS][COLUMNS],
                                      const weight_rows<ROWS> &weights, const column (&x)[COLUMNS],
                                      uint32_t piece) {
        uint4 q[ROWS];
        float d[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const uint8_t *b = weights.row[r] + (uint64_t)(piece / 2) * BYTES;
            const uint8_t *quants = b + 2 + 16 * (piece % 2);
            q[r] = {load_4(quants), load_4(quants + 4), load_4(quants + 8), load_4(quants + 12)};
            d[r] = half_value(load_2(b));
        }
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
            const int4 v = __ldg((const int4 *)x[n].quants + piece);
            const float d_x = __ldg(x[n].scales + piece / 2);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                sums[r][n] = fmaf(d[r] * d_x, (float)dot_16(q[r], v, 0), sums[r][n]);
            }
        }
    }
};

template <typename Q, int ROWS, int COLUMNS>
__device__ inline void product(const kn_quant_product_arguments &a) {
    const weight_rows<ROWS> weights(a, Q::BYTES);
    column x[COLUMNS];
    float sums[ROWS][COLUMNS] = {};
#pragma unroll
    for (int n = 0; n < COLUMNS; n++) {
        const uint64_t index = min(blockIdx.y * COLUMNS + n, a.columns - 1);
        x[n] = {(const int8_t *)a.quants + index * a.k,
                (const float *)a.scales + index * (a.k / 32)};
    }
    for (uint32_t piece = threadIdx.x; piece < a.blocks * Q::PIECES; piece += PRODUCT_THREADS) {
        Q::add(sums, weights, x, piece);
    }
    product_write(a, sums);
}

#define INTEGERS(quant, columns, rows)                                                             \
    extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS)                                  \
        quant_product_integers_##quant##_##columns(kn_quant_product_arguments a) {                 \
        product<integers_##quant, rows, columns>(a);                                               \
    }

INTEGERS(q4_k, 1, 4)
INTEGERS(q6_k, 1, 4)
INTEGERS(q8_0, 1, 4)
INTEGERS(q4_k, 8, 2)
INTEGERS(q6_k, 8, 2)
INTEGERS(q8_0, 8, 2)

// quant product, step 4: several columns on tensor cores.
// Target: compute_80
//
// The idea: a block dequantises a tile of W to halves in shared memory, once for all of its
// columns, rounds x to halves beside it, and multiplies with mma.sync; sums are floats. The loads
// of the next tile are in flight meanwhile. Few columns: 16 rows per block, and its warps split k.
// Many columns: 64 rows and 64 columns per block.
// Owner: block (i, j) owns tile i of rows and tile j of columns of y.
// Requires: blockDim = (128, 1, 1), gridDim = (rows / 16, columns / 8) or (rows / 64, columns /
// 64), rounded up; x and its columns at multiples of 16 bytes, Q4_K weights too.
#include "../formats/quant.cuh"
#include "quant_product_arguments.h"

enum { THREADS = 128 };

// Sixteen neighbours from k on, a multiple of 16: as stored, and as halves.
struct sixteen_q4_k {
    enum { BYTES = Q4_K_BYTES, ELEMENTS = 256 };
    uint4 header, qs;

    __device__ inline void load(const uint8_t *block, int i) {
        header = __ldg((const uint4 *)block);
        qs = __ldg((const uint4 *)(block + 16 + i / 64 * 32 + i % 32));
    }
    __device__ inline void store(__half *out, int i) const {
        const int high = i / 32 % 2;
        const q4_k_scales s = q4_k_scales_of(header, i / 64);
        const float2 d = q4_k_d(header);
        const float scale = d.x * (float)(s.scales >> 8 * high & 0xff);
        const float minimum = d.y * (float)(s.minimums >> 8 * high & 0xff);
        const uint32_t words[4] = {qs.x, qs.y, qs.z, qs.w};
        alignas(16) __half made[16];
#pragma unroll
        for (int e = 0; e < 16; e++) {
            const uint32_t q = words[e / 4] >> (8 * (e % 4) + 4 * high) & 15;
            made[e] = __float2half_rn(scale * (float)q - minimum);
        }
        ((uint4 *)out)[0] = ((const uint4 *)made)[0];
        ((uint4 *)out)[1] = ((const uint4 *)made)[1];
    }
};

struct sixteen_q6_k {
    enum { BYTES = Q6_K_BYTES, ELEMENTS = 256 };
    uint32_t ql[4], qh[4], d, scale;

    __device__ inline void load(const uint8_t *block, int i) {
        const int half = i / 128, s = i % 128 / 32, l = i % 32;
#pragma unroll
        for (int w = 0; w < 4; w++) {
            ql[w] = load_4(block + 64 * half + s % 2 * 32 + l + 4 * w);
            qh[w] = load_4(block + 128 + 32 * half + l + 4 * w);
        }
        scale = __ldg(block + 192 + i / 16);
        d = load_2(block + 208);
    }
    __device__ inline void store(__half *out, int i) const {
        const float by = half_value(d) * (float)(int8_t)scale;
        alignas(16) __half made[16];
#pragma unroll
        for (int e = 0; e < 16; e++) {
            const uint32_t four = q6_k_four(ql[e / 4], qh[e / 4], i % 128 / 32);
            made[e] = __float2half_rn(by * byte_value(four, e % 4));
        }
        ((uint4 *)out)[0] = ((const uint4 *)made)[0];
        ((uint4 *)out)[1] = ((const uint4 *)made)[1];
    }
};

struct sixteen_q8_0 {
    enum { BYTES = Q8_0_BYTES, ELEMENTS = 32 };
    uint32_t qs[4], d;

    __device__ inline void load(const uint8_t *block, int i) {
#pragma unroll
        for (int w = 0; w < 4; w++) qs[w] = load_4(block + 2 + i + 4 * w);
        d = load_2(block);
    }
    __device__ inline void store(__half *out, int) const {
        const float by = half_value(d);
        alignas(16) __half made[16];
#pragma unroll
        for (int e = 0; e < 16; e++) made[e] = __float2half_rn(by * byte_value(qs[e / 4], e % 4));
        ((uint4 *)out)[0] = ((const uint4 *)made)[0];
        ((uint4 *)out)[1] = ((const uint4 *)made)[1];
    }
};

// A warp computes a tile of WARP_M x WARP_N over one of WARPS_K parts of each step.
template <typename Q, int BM, int BN, int BK, int WARPS_M, int WARPS_N, int WARPS_K>
__device__ inline void product(const kn_quant_product_arguments &a) {
    enum {
        PITCH = BK + 8,                   // in halves: rows begin in different banks
        PARTS_W = BM * BK / 16 / THREADS, // of sixteen weights per thread
        PARTS_X = BN * BK / 4 / THREADS,  // of four x
        WARP_M = BM / WARPS_M,
        WARP_N = BN / WARPS_N,
        WARP_K = BK / WARPS_K,
        TILES_M = WARP_M / 16,
        TILES_N = WARP_N / 8
    };
    static_assert(WARPS_M * WARPS_N * WARPS_K * WARP == THREADS && PARTS_W > 0 && PARTS_X > 0, "");
    __shared__ __align__(16) __half weights[BM * PITCH];
    __shared__ __align__(16) __half xs[BN * PITCH];
    __shared__ float partial[WARPS_K > 1 ? WARPS_K * BM * BN : 1];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    const int warp_m = warp % WARPS_M * WARP_M, warp_n = warp / WARPS_M % WARPS_N * WARP_N;
    const int warp_k = warp / (WARPS_M * WARPS_N) * WARP_K;
    const uint32_t row = blockIdx.x * BM, column = blockIdx.y * BN;
    float sums[TILES_M][TILES_N][4] = {};
    Q parts[PARTS_W];
    float4 values[PARTS_X];

    const auto load = [&](uint32_t from) {
#pragma unroll
        for (int i = 0; i < PARTS_W; i++) {
            const int part = threadIdx.x + i * THREADS;
            const uint32_t k = min(from + part % (BK / 16) * 16, a.k - 16);
            const uint64_t r = min(row + part / (BK / 16), a.rows - 1);
            parts[i].load((const uint8_t *)a.weights + (r * a.blocks + k / Q::ELEMENTS) * Q::BYTES,
                          k % Q::ELEMENTS);
        }
#pragma unroll
        for (int i = 0; i < PARTS_X; i++) {
            const int part = threadIdx.x + i * THREADS;
            const uint32_t k = from + part % (BK / 4) * 4;
            const uint32_t n = column + part / (BK / 4);
            values[i] = make_float4(0, 0, 0, 0);
            if (k < a.k && n < a.columns) {
                values[i] = __ldg((const float4 *)((const float *)a.x + n * a.x_stride + k));
            }
        }
    };
    // Past the end of k weights are zeros too, since 0 times an infinite weight is NaN.
    const auto store = [&](uint32_t from) {
#pragma unroll
        for (int i = 0; i < PARTS_W; i++) {
            const int part = threadIdx.x + i * THREADS, at = part % (BK / 16) * 16;
            __half *out = weights + part / (BK / 16) * PITCH + at;
            if (from + at < a.k) {
                parts[i].store(out, (from + at) % Q::ELEMENTS);
            } else {
                ((uint4 *)out)[0] = ((uint4 *)out)[1] = make_uint4(0, 0, 0, 0);
            }
        }
#pragma unroll
        for (int i = 0; i < PARTS_X; i++) {
            const int part = threadIdx.x + i * THREADS;
            __half2 *out = (__half2 *)(xs + part / (BK / 4) * PITCH + part % (BK / 4) * 4);
            out[0] = __floats2half2_rn(values[i].x, values[i].y);
            out[1] = __floats2half2_rn(values[i].z, values[i].w);
        }
    };

    if (a.k > 0) load(0);
    for (uint32_t from = 0; from < a.k; from += BK) {
        store(from);
        __syncthreads();
        if (from + BK < a.k) load(from + BK);
#pragma unroll
        for (int k = 0; k < WARP_K; k += 16) {
            uint32_t b[TILES_N][2];
#pragma unroll
            for (int n = 0; n < TILES_N; n++) {
                const __half *p = xs + (warp_n + 8 * n + g) * PITCH + warp_k + k + 2 * t;
                b[n][0] = *(const uint32_t *)p;
                b[n][1] = *(const uint32_t *)(p + 8);
            }
#pragma unroll
            for (int m = 0; m < TILES_M; m++) {
                uint32_t f[4];
                const int r = warp_m + 16 * m + lane % 16, at = warp_k + k + lane / 16 * 8;
                load_matrix_4(f, shared_address(weights + r * PITCH + at));
#pragma unroll
                for (int n = 0; n < TILES_N; n++) mma_16<__half>(sums[m][n], f, b[n][0], b[n][1]);
            }
        }
        __syncthreads();
    }

    const auto write = [&](int m, int n, float value) {
        if (row + m < a.rows && column + n < a.columns) {
            ((float *)a.y)[(column + n) * a.y_stride + row + m] = value;
        }
    };
#pragma unroll
    for (int i = 0; i < TILES_M * TILES_N * 4; i++) {
        const int m = warp_m + i / 4 / TILES_N * 16 + g + i % 4 / 2 * 8;
        const int n = warp_n + i / 4 % TILES_N * 8 + 2 * t + i % 2;
        const float sum = sums[i / 4 / TILES_N][i / 4 % TILES_N][i % 4];
        if (WARPS_K == 1) {
            write(m, n, sum);
        } else {
            partial[(warp / (WARPS_M * WARPS_N) * BN + n) * BM + m] = sum;
        }
    }
    if (WARPS_K == 1) return;
    __syncthreads();
    for (int i = threadIdx.x; i < BM * BN; i += THREADS) {
        float sum = 0;
        for (int w = 0; w < WARPS_K; w++) sum += partial[w * BM * BN + i];
        write(i % BM, i / BM, sum);
    }
}

#define TENSOR(quant)                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        quant_product_tensor_##quant##_8(kn_quant_product_arguments a) {                           \
        product<sixteen_##quant, 16, 8, 128, 1, 1, 4>(a);                                          \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        quant_product_tensor_##quant##_64(kn_quant_product_arguments a) {                          \
        product<sixteen_##quant, 64, 64, 64, 2, 2, 1>(a);                                          \
    }

TENSOR(q4_k)
TENSOR(q6_k)
TENSOR(q8_0)

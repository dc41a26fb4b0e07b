// Attention on tensor cores: what attention_3_tensor is, and what its planted defects are made of.
//
// A block has QUERIES rows of q in shared memory, and walks over tiles of KEYS keys, two of which
// are there at a time: while one is multiplied the next comes by cp.async. A warp has 16 BANDS rows,
// so that a fragment of keys that was loaded once is used BANDS times. Scores, and then weights,
// stay in registers: the accumulators of q k^T are, regrouped, the operand of the product with v.
// Rows in shared memory are swizzled, or padded where a row is no multiple of 128 bytes, so that
// ldmatrix meets no bank twice.
#pragma once

#include "attention.cuh"

#include <cuda_fp16.h>

// Mistakes made on purpose, which claims must notice. SOUND is none.
enum attention_defect {
    SOUND,
    NO_RESCALE,      // sums keep the scale of an older maximum
    NO_MAXIMUM,      // nothing is subtracted before the exponential
    CAUSAL_PLUS_ONE, // a row sees one key more
    KEYS_UNMASKED,   // keys behind the last count as zeros
    TAIL_UNWRITTEN   // the last row of q is not written
};

template <int D> struct attention_tile {
    static constexpr int CHUNKS = D / 8; // of 16 bytes
    static constexpr bool SWIZZLED = CHUNKS % 8 == 0;
    static constexpr int PITCH = SWIZZLED ? CHUNKS : CHUNKS + 1;
    static_assert(SWIZZLED || PITCH % 2 == 1, "eight rows must lie in different banks");
    // The byte at which a chunk of a row lies.
    __device__ static int at(int row, int chunk) {
        return (row * PITCH + (SWIZZLED ? chunk ^ (row & 7) : chunk)) * 16;
    }
};

constexpr int attention_shared_bytes(int d, int queries, int keys) {
    return (queries + 4 * keys) * (d / 8 + (d / 8 % 8 == 0 ? 0 : 1)) * 16;
}

template <typename T> __device__ inline uint32_t pack(float low, float high);
template <> __device__ inline uint32_t pack<__half>(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return *(const uint32_t *)&pair;
}
template <> __device__ inline uint32_t pack<__nv_bfloat16>(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *(const uint32_t *)&pair;
}

// Rows of 16-bit elements on their way to shared memory; those behind the last become zeros.
template <typename T, int D, int ROWS, int THREADS>
__device__ inline void copy_rows(uint32_t tile, const T *from, long long stride, int rows) {
    constexpr int CHUNKS = attention_tile<D>::CHUNKS;
#pragma unroll 4
    for (int i = threadIdx.x; i < ROWS * CHUNKS; i += THREADS) {
        const int row = i / CHUNKS, chunk = i % CHUNKS;
        const bool there = row < rows;
        copy_async_16(tile + attention_tile<D>::at(row, chunk),
                      from + (there ? row * stride + chunk * 8 : 0), there ? 16 : 0);
    }
}

template <typename T, int D, int BANDS, int KEYS, int WARPS, attention_defect DEFECT>
__device__ inline void attention_tensor(const attention_arguments &x) {
    using tile_of = attention_tile<D>;
    constexpr int THREADS = WARPS * WARP, QUERIES = WARPS * 16 * BANDS;
    constexpr int COLUMNS = KEYS / 8, PARTS = D / 8;
    constexpr int ROW_BYTES = tile_of::PITCH * 16, TILE_BYTES = KEYS * ROW_BYTES;
    extern __shared__ uint4 shared[];
    const uint32_t queries = shared_address(shared), keys = queries + QUERIES * ROW_BYTES;
    const uint32_t values = keys + 2 * TILE_BYTES;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int tile = x.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x; // the longest first
    const int first = tile * QUERIES, head = blockIdx.y, batch = blockIdx.z;
    const int band = warp * 16 * BANDS; // the warp's first row in the tile
    const int past = x.kv_length - x.q_length + (DEFECT == CAUSAL_PLUS_ONE ? 1 : 0);
    const T *k = attention_row<T>(x.k, x.k_strides, batch, head / x.group, 0);
    const T *v = attention_row<T>(x.v, x.v_strides, batch, head / x.group, 0);

    int seen = x.kv_length;
    if (x.causal) seen = min(seen, max(0, min(first + QUERIES, x.q_length) + past));
    const int tiles = ceil_div(seen, KEYS);
    auto copy_tile = [&](uint32_t to, const T *from, long long stride, int i) {
        if (i < tiles) {
            copy_rows<T, D, KEYS, THREADS>(to + i % 2 * TILE_BYTES, from + i * KEYS * stride,
                                           stride, x.kv_length - i * KEYS);
        }
        copy_async_commit(); // a group each, empty or not, so that they can be counted
    };
    copy_rows<T, D, QUERIES, THREADS>(queries,
                                      attention_row<T>(x.q, x.q_strides, batch, head, first),
                                      x.q_strides.row, x.q_length - first);
    copy_tile(keys, k, x.k_strides.row, 0);
    copy_tile(values, v, x.v_strides.row, 0);

    // Of each band a lane has rows lane / 4 and 8 below; what it holds of them has index 0 and 1.
    float sums[BANDS][PARTS][4] = {}, largest[BANDS][2], sum[BANDS][2] = {};
#pragma unroll
    for (int b = 0; b < BANDS; b++) largest[b][0] = largest[b][1] = -INFINITE;

    for (int i = 0; i < tiles; i++) {
        copy_tile(keys, k, x.k_strides.row, i + 1);
        copy_async_wait<2>(); // keys i are there, and the queries
        __syncthreads();      // for all; and values i - 1 have been used
        const uint32_t key_tile = keys + i % 2 * TILE_BYTES;
        float scores[BANDS][COLUMNS][4] = {};
#pragma unroll
        for (int d = 0; d < D / 16; d++) {
            uint32_t a[BANDS][4];
#pragma unroll
            for (int b = 0; b < BANDS; b++) {
                load_matrix_4(a[b], queries + tile_of::at(band + b * 16 + lane % 16,
                                                          2 * d + lane / 16));
            }
#pragma unroll
            for (int c = 0; c < COLUMNS; c += 2) {
                uint32_t y[4];
                load_matrix_4(y, key_tile + tile_of::at(c * 8 + lane / 16 * 8 + lane % 8,
                                                        2 * d + lane / 8 % 2));
#pragma unroll
                for (int b = 0; b < BANDS; b++) {
                    mma_16<T>(scores[b][c], a[b], y[0], y[1]);
                    mma_16<T>(scores[b][c + 1], a[b], y[2], y[3]);
                }
            }
        }
        copy_tile(values, v, x.v_strides.row, i + 1);

        // Tiles in which a row of the warp does not see all keys; most have none.
        const int row_first = first + band;
        const bool cut = (i + 1) * KEYS > x.kv_length ||
                         (x.causal && (i + 1) * KEYS > row_first + past + 1);
        if (cut) {
#pragma unroll
            for (int b = 0; b < BANDS; b++) {
#pragma unroll
                for (int e = 0; e < 4 * COLUMNS; e++) {
                    const int key = i * KEYS + e / 4 * 8 + lane % 4 * 2 + e % 2;
                    const int row = row_first + b * 16 + lane / 4 + e % 4 / 2 * 8;
                    const bool sees = (DEFECT == KEYS_UNMASKED || key < x.kv_length) &&
                                      (!x.causal || key <= row + past);
                    if (!sees) scores[b][e / 4][e % 4] = -INFINITE;
                }
            }
        }
#pragma unroll
        for (int b = 0; b < BANDS; b++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float most = -INFINITE;
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    most = fmaxf(most, fmaxf(scores[b][c][2 * h], scores[b][c][2 * h + 1]));
                }
                most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
                most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
                // Scaled and rounded once, and then used by all: what the rounding adds to one
                // exponent it adds to all of the row, and the quotient does not see it.
                most = fmaxf(largest[b][h], most * x.scale_log2);
                if (DEFECT == NO_MAXIMUM) most = 0;
                const float base = finite_base(most);
                const bool stays = DEFECT == NO_RESCALE || DEFECT == NO_MAXIMUM;
                const float grown = stays ? 1.0f : exp2_approximate(largest[b][h] - base);
                largest[b][h] = most;
                sum[b][h] *= grown;
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
#pragma unroll
                    for (int e = 2 * h; e < 2 * h + 2; e++) {
                        const float power = fmaf(scores[b][c][e], x.scale_log2, -base);
                        scores[b][c][e] = exp2_approximate(power);
                        sum[b][h] += scores[b][c][e];
                    }
                }
#pragma unroll
                for (int p = 0; p < PARTS; p++) {
                    sums[b][p][2 * h] *= grown, sums[b][p][2 * h + 1] *= grown;
                }
            }
        }

        copy_async_wait<2>(); // values i are there
        __syncthreads();      // for all; and keys i have been used
        const uint32_t value_tile = values + i % 2 * TILE_BYTES;
#pragma unroll
        for (int c = 0; c < COLUMNS; c += 2) {
            uint32_t a[BANDS][4];
#pragma unroll
            for (int b = 0; b < BANDS; b++) {
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const float *pair = &scores[b][c + e / 2][e % 2 * 2];
                    a[b][e] = pack<T>(pair[0], pair[1]);
                }
            }
#pragma unroll
            for (int p = 0; p < PARTS; p += 2) {
                uint32_t y[4];
                load_matrix_4_transposed(
                    y, value_tile + tile_of::at(c * 8 + lane % 16, p + lane / 16));
#pragma unroll
                for (int b = 0; b < BANDS; b++) {
                    mma_16<T>(sums[b][p], a[b], y[0], y[1]);
                    mma_16<T>(sums[b][p + 1], a[b], y[2], y[3]);
                }
            }
        }
    }
    copy_async_wait<0>(); // a block that ends must have no copies on the way
    __syncthreads();      // the queries of a tile without keys are there, too

    // Through the warp's own rows of the queries, so that 16 bytes are stored at a time.
#pragma unroll
    for (int b = 0; b < BANDS; b++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float total = sum[b][h];
            total += __shfl_xor_sync(~0u, total, 1);
            total += __shfl_xor_sync(~0u, total, 2);
            const float share = share_of(total);
            const int inside = band + b * 16 + h * 8 + lane / 4, row = first + inside;
            if (lane % 4 == 0 && row < x.q_length) {
                store_lse(x, batch, head, row, largest[b][h], total);
            }
#pragma unroll
            for (int p = 0; p < PARTS; p++) {
                const uint32_t pair =
                    pack<T>(sums[b][p][2 * h] * share, sums[b][p][2 * h + 1] * share);
                *(uint32_t *)((char *)shared + tile_of::at(inside, p) + lane % 4 * 4) = pair;
            }
        }
    }
    __syncwarp();
    const int rows = min(16 * BANDS, x.q_length - (DEFECT == TAIL_UNWRITTEN) - first - band);
    T *out = (T *)attention_row<T>(x.out, x.out_strides, batch, head, first + band);
    for (int i = lane; i < rows * PARTS; i += WARP) {
        const int row = i / PARTS, chunk = i % PARTS;
        *(uint4 *)(out + row * x.out_strides.row + chunk * 8) =
            *(const uint4 *)((const char *)shared + tile_of::at(band + row, chunk));
    }
}

// Attention on tensor cores: the pipeline of attention_3_tensor and of its planted defects.
//
// The idea: a block keeps QUERIES rows of q in shared memory and iterates over tiles of KEYS keys
// and their values. Two tiles are in shared memory: cp.async fills one while the other is
// multiplied, so one barrier per tile suffices. A warp owns 16 BANDS rows, so each fragment of
// keys is loaded once for BANDS mma. Scores and weights stay in registers: the accumulators of q
// k^T are, regrouped, the operand of the product with v.
//
// The base of a row, which is subtracted from its scores, is the maximum of an earlier tile. It
// follows the maximum only when that exceeds it by GROWTH_MAX powers of two. So weights are at most
// 256, which fp16 represents as exactly as 1, and few tiles rescale the accumulators. The base
// cancels in the quotient at the end.
//
// Owner: block (t, h, b) owns tile t of the rows of out of one head, with causal the last tile
// first; each warp owns 16 BANDS of its rows.
// Bound by: mma.sync, and the instructions around it.
// Requires: blockDim = (32 WARPS, 1, 1), gridDim = (tiles of rows, heads, batch),
// attention_shared_bytes of dynamic shared memory; each row of q, k, v and out begins at a multiple
// of 16 bytes.
#pragma once

#include "attention_tile.cuh"

// Planted defects, which claims must notice. SOUND is none.
enum attention_defect {
    SOUND,
    NO_RESCALE,      // sums keep the scale of an older base
    NO_MAXIMUM,      // nothing is subtracted before the exponential
    CAUSAL_PLUS_ONE, // a row sees one key more
    KEYS_UNMASKED,   // keys past the last count, as zeros
    TAIL_UNWRITTEN,  // the last row of q is not written
    WINDOW_PLUS_ONE, // with a window a row sees one key more
    WINDOW_TILE_LOST // with a window the first tile of keys is left out
};

constexpr float GROWTH_MAX = 8;

// The state of a warp: the scores of a tile, and the sums of all tiles so far. Of each band a lane
// holds rows lane / 4 and lane / 4 + 8, under index 0 and 1. The functions below are the steps of a
// tile.
template <int D, int BANDS, int KEYS> struct attention_warp {
    static constexpr int COLUMNS = KEYS / 8, PARTS = D / 8;
    float scores[BANDS][COLUMNS][4];
    float sums[BANDS][PARTS][4], base[BANDS][2], sum[BANDS][2];
};

// scores = q k^T. Both addresses are those of the lane's first piece of a fragment.
template <typename T, int D, int BANDS, int KEYS>
__device__ inline void multiply_keys(attention_warp<D, BANDS, KEYS> &warp, uint32_t queries,
                                     uint32_t keys) {
    using tile_of = attention_tile<D>;
#pragma unroll
    for (int d = 0; d < D / 16; d++) {
        uint32_t a[BANDS][4];
#pragma unroll
        for (int b = 0; b < BANDS; b++) {
            load_matrix_4(a[b], tile_of::beside(queries, 2 * d) + b * 16 * tile_of::ROW_BYTES);
        }
#pragma unroll
        for (int c = 0; c < KEYS / 8; c += 2) {
            uint32_t y[4];
            load_matrix_4(y, tile_of::beside(keys, 2 * d) + c * 8 * tile_of::ROW_BYTES);
#pragma unroll
            for (int b = 0; b < BANDS; b++) {
                mma_16<T>(warp.scores[b][c], a[b], y[0], y[1]);
                mma_16<T>(warp.scores[b][c + 1], a[b], y[2], y[3]);
            }
        }
    }
}

// Masks the scores of keys that a row does not see. `row` is the lane's first row and `key` the
// tile's first key.
template <attention_defect DEFECT, int D, int BANDS, int KEYS>
__device__ inline void mask_scores(attention_warp<D, BANDS, KEYS> &warp,
                                   const attention_arguments &x, int row, int key, int past) {
    const unsigned window = x.window + (DEFECT == WINDOW_PLUS_ONE || DEFECT == CAUSAL_PLUS_ONE);
#pragma unroll
    for (int b = 0; b < BANDS; b++) {
#pragma unroll
        for (int e = 0; e < KEYS / 2; e++) {
            const int of_key = key + e / 4 * 8 + threadIdx.x % 4 * 2 + e % 2;
            const int of_row = row + b * 16 + e % 4 / 2 * 8;
            // One comparison: as an unsigned number, the distance of a key after the row's last
            // is huge.
            const unsigned back = of_row + past - of_key;
            const bool sees =
                (DEFECT == KEYS_UNMASKED || of_key < x.kv_length) && (!x.causal || back < window);
            if (!sees) warp.scores[b][e / 4][e % 4] = -INFINITE;
        }
    }
}

// Lets the bases follow the maxima, and scales the sums to the new bases.
template <attention_defect DEFECT, int D, int BANDS, int KEYS>
__device__ inline void follow_maxima(attention_warp<D, BANDS, KEYS> &warp, float scale_log2) {
    float most[BANDS][2];
    bool grows = false;
#pragma unroll
    for (int b = 0; b < BANDS; b++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float m = -INFINITE;
#pragma unroll
            for (int c = 0; c < KEYS / 8; c++) {
                m = fmaxf(m, fmaxf(warp.scores[b][c][2 * h], warp.scores[b][c][2 * h + 1]));
            }
            m = fmaxf(m, __shfl_xor_sync(~0u, m, 1));
            m = fmaxf(m, __shfl_xor_sync(~0u, m, 2));
            // Scaled and rounded once for the whole row: the rounding then changes all exponents
            // of the row alike, and cancels in the quotient.
            most[b][h] = fmaxf(warp.base[b][h], m * scale_log2);
            grows = grows || most[b][h] > warp.base[b][h] + GROWTH_MAX;
        }
    }
    if (!__any_sync(~0u, grows)) return;
#pragma unroll
    for (int b = 0; b < BANDS; b++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            // Each row by itself: its bits do not depend on the rows beside it.
            if (!(most[b][h] > warp.base[b][h] + GROWTH_MAX)) most[b][h] = warp.base[b][h];
            if (DEFECT == NO_MAXIMUM) most[b][h] = 0;
            float grown = exp2_approximate(warp.base[b][h] - finite_base(most[b][h]));
            if (DEFECT == NO_RESCALE || DEFECT == NO_MAXIMUM) grown = 1;
            warp.base[b][h] = most[b][h];
            warp.sum[b][h] *= grown;
#pragma unroll
            for (int p = 0; p < D / 8; p++) {
                warp.sums[b][p][2 * h] *= grown, warp.sums[b][p][2 * h + 1] *= grown;
            }
        }
    }
}

// Turns scores into weights, and adds them up in fp32.
template <int D, int BANDS, int KEYS>
__device__ inline void weigh_scores(attention_warp<D, BANDS, KEYS> &warp, float scale_log2) {
#pragma unroll
    for (int b = 0; b < BANDS; b++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float base = finite_base(warp.base[b][h]);
#pragma unroll
            for (int c = 0; c < KEYS / 8; c++) {
#pragma unroll
                for (int e = 2 * h; e < 2 * h + 2; e++) {
                    float &score = warp.scores[b][c][e];
                    score = exp2_approximate(fmaf(score, scale_log2, -base));
                    warp.sum[b][h] += score;
                }
            }
        }
    }
}

// sums += weights v. The address is that of the lane's first piece of a fragment.
template <typename T, int D, int BANDS, int KEYS>
__device__ inline void add_values(attention_warp<D, BANDS, KEYS> &warp, uint32_t values) {
    using tile_of = attention_tile<D>;
#pragma unroll
    for (int c = 0; c < KEYS / 8; c += 2) {
        uint32_t a[BANDS][4];
#pragma unroll
        for (int b = 0; b < BANDS; b++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const float *pair = &warp.scores[b][c + e / 2][e % 2 * 2];
                a[b][e] = pack<T>(pair[0], pair[1]);
            }
        }
#pragma unroll
        for (int p = 0; p < D / 8; p += 2) {
            uint32_t y[4];
            load_matrix_4_transposed(y, tile_of::beside(values, p) + c * 8 * tile_of::ROW_BYTES);
#pragma unroll
            for (int b = 0; b < BANDS; b++) {
                mma_16<T>(warp.sums[b][p], a[b], y[0], y[1]);
                mma_16<T>(warp.sums[b][p + 1], a[b], y[2], y[3]);
            }
        }
    }
}

// Stores the warp's rows of out by 16 bytes, through its own rows of the queries in shared memory.
template <typename T, attention_defect DEFECT, int D, int BANDS, int KEYS>
__device__ inline void store_rows(const attention_warp<D, BANDS, KEYS> &warp,
                                  const attention_arguments &x, char *queries, int band,
                                  int first) {
    using tile_of = attention_tile<D>;
    const int lane = threadIdx.x % WARP, head = blockIdx.y, batch = blockIdx.z;
#pragma unroll
    for (int b = 0; b < BANDS; b++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float total = warp.sum[b][h];
            total += __shfl_xor_sync(~0u, total, 1);
            total += __shfl_xor_sync(~0u, total, 2);
            const float share = share_of(total);
            const int inside = band + b * 16 + h * 8 + lane / 4, row = first + inside;
            if (lane % 4 == 0 && row < x.q_length) {
                store_lse(x, batch, head, row, warp.base[b][h], total);
            }
#pragma unroll
            for (int p = 0; p < D / 8; p++) {
                const float *pair = &warp.sums[b][p][2 * h];
                *(uint32_t *)(queries + tile_of::at(inside, p) + lane % 4 * 4) =
                    pack<T>(pair[0] * share, pair[1] * share);
            }
        }
    }
    __syncwarp();
    const int rows = min(16 * BANDS, x.q_length - (DEFECT == TAIL_UNWRITTEN) - first - band);
    T *out = (T *)attention_row<T>(x.out, x.out_strides, batch, head, first + band);
    for (int i = lane; i < rows * tile_of::CHUNKS; i += WARP) {
        const int row = i / tile_of::CHUNKS, chunk = i % tile_of::CHUNKS;
        *(uint4 *)(out + row * x.out_strides.row + chunk * 8) =
            *(const uint4 *)(queries + tile_of::at(band + row, chunk));
    }
}

// Keys and values that lie in rows of one stride: a thread's copies of their tiles, in order.
template <typename T, int D, int KEYS, int THREADS> struct attention_tiles_in_rows {
    const attention_arguments &x;
    attention_copier<T, D, KEYS, THREADS> keys, values;

    __device__ inline attention_tiles_in_rows(const attention_arguments &x, int batch, int head)
        : x(x), keys(attention_row<T>(x.k, x.k_strides, batch, head / x.group, 0), x.k_strides.row),
          values(attention_row<T>(x.v, x.v_strides, batch, head / x.group, 0), x.v_strides.row) {}
    __device__ inline void begin(int tile) {
        keys.advance(tile * KEYS), values.advance(tile * KEYS);
    }
    // Tile i: its keys, then its values. Keys that do not exist become zeros.
    __device__ inline void copy(int i, uint32_t to) {
        constexpr int TILE_BYTES = KEYS * attention_tile<D>::ROW_BYTES;
        const int there = x.kv_length - i * KEYS;
        if (there >= KEYS) {
            keys.whole(to), values.whole(to + TILE_BYTES);
        } else {
            keys.some(to, there), values.some(to + TILE_BYTES, there);
        }
        keys.advance(), values.advance();
    }
};

// TILES copies keys and values; more: what it is made of, beside the problem.
template <typename T, int D, int BANDS, int KEYS, int WARPS, attention_defect DEFECT,
          typename TILES = attention_tiles_in_rows<T, D, KEYS, WARPS * WARP>, typename... MORE>
__device__ inline void attention_tensor(const attention_arguments &x, const MORE &...more) {
    using tile_of = attention_tile<D>;
    constexpr int THREADS = WARPS * WARP, QUERIES = WARPS * 16 * BANDS;
    constexpr int TILE_BYTES = KEYS * tile_of::ROW_BYTES;
    extern __shared__ __align__(ATTENTION_ALIGNMENT) uint4 shared[];
    const uint32_t queries = shared_address(shared);
    const uint32_t tiles_at = queries + QUERIES * tile_of::ROW_BYTES;
    const int lane = threadIdx.x % WARP, head = blockIdx.y, batch = blockIdx.z;
    const int tile = x.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x; // the longest tiles first
    const int first = tile * QUERIES;
    const int band = threadIdx.x / WARP * 16 * BANDS; // the warp's first row in the tile
    const int past = x.kv_length - x.q_length + (DEFECT == CAUSAL_PLUS_ONE ? 1 : 0);

    int seen = x.kv_length;
    if (x.causal) seen = min(seen, max(0, min(first + QUERIES, x.q_length) + past));
    const int tiles = ceil_div(seen, KEYS);
    int tile_from = x.causal ? max(0, first + 1 + past - x.window) / KEYS : 0;
    if (DEFECT == WINDOW_TILE_LOST && tile_from > 0) tile_from++;
    TILES source(x, batch, head, more...);
    source.begin(tile_from);
    auto copy_tile = [&](int i) {
        if (i >= tiles) return;
        const uint32_t to = tiles_at + i % 2 * 2 * TILE_BYTES;
        source.copy(i, to);
    };
    attention_copier<T, D, QUERIES, THREADS>(attention_row<T>(x.q, x.q_strides, batch, head, first),
                                             x.q_strides.row)
        .some(queries, x.q_length - first);
    copy_tile(tile_from);

    // The lane's first piece of a fragment.
    const uint32_t of_queries = queries + tile_of::at(band + lane % 16, lane / 16);
    const uint32_t of_keys = tile_of::at(lane / 16 * 8 + lane % 8, lane / 8 % 2);
    const uint32_t of_values = TILE_BYTES + tile_of::at(lane % 16, lane / 16);
    attention_warp<D, BANDS, KEYS> warp = {};
#pragma unroll
    for (int b = 0; b < BANDS; b++) warp.base[b][0] = warp.base[b][1] = -INFINITE;

    for (int i = tile_from; i < tiles; i++) {
        copy_async_wait_all();
        __syncthreads(); // all see tile i, and have read tile i - 1
        copy_tile(i + 1);
        const uint32_t place = tiles_at + i % 2 * 2 * TILE_BYTES;
#pragma unroll
        for (int b = 0; b < BANDS; b++) {
#pragma unroll
            for (int e = 0; e < KEYS / 2; e++) warp.scores[b][e / 4][e % 4] = 0;
        }
        multiply_keys<T>(warp, of_queries, place + of_keys);
        // Only in tiles with a key that a row of the warp does not see; most tiles have none.
        const int next = (i + 1) * KEYS;
        const bool is_edge = next > first + band + past + 1 ||
                             i * KEYS < first + band + 16 * BANDS + past - x.window;
        if (next > x.kv_length || (x.causal && is_edge)) {
            mask_scores<DEFECT>(warp, x, first + band + lane / 4, i * KEYS, past);
        }
        follow_maxima<DEFECT>(warp, x.scale_log2);
        weigh_scores(warp, x.scale_log2);
        add_values<T>(warp, place + of_values);
    }
    copy_async_wait_all(); // also the queries of a tile that sees no keys
    __syncthreads();
    store_rows<T, DEFECT>(warp, x, (char *)shared, band, first);
}

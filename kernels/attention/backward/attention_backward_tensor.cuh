// Attention's backward pass on tensor cores: the pipeline of attention_backward_2_tensor and of its
// planted defects.
//
// The idea: the formulas of attention_backward.cuh have the same form for keys as for rows of q. A
// block keeps tiles of two matrices, A and B, in shared memory, and streams tiles of two others, C
// and E: scores = A C^T and d_p = B E^T, then sums += d_s C, and for keys also sums_e += P E.
//     a block of keys      A = k, B = v, C = q, E = d_out: d_k and d_v; the scores are transposed
//     a block of q's rows  A = q, B = d_out, C = k, E = v: d_q
// That takes seven products where the formulas have five, but no block adds to what another owns:
// no atomics, and one order of sums. As in attention_tensor.cuh, cp.async fills one of two stages
// while the other is multiplied, and the accumulators of a product are, regrouped and rounded to
// the type, the operand of the next.
// Owner: the first batch x kv_heads x k_tiles blocks own tiles of keys, the first ones, which more
// rows see, first; the others own tiles of the rows of q, the last ones first. A warp owns 16 BANDS
// rows of A.
// Bound by: mma.sync, and the loads of fragments.
// Requires: blockDim = (32 WARPS, 1, 1), gridDim = (those blocks, 1, 1), gradient_shared_bytes of
// dynamic shared memory; each row of all matrices begins at a multiple of 16 bytes; figures made.
#pragma once

#include "attention_backward.cuh"
#include "../forward/attention_tile.cuh"

// Planted defects, which tests must notice. SOUND_BACKWARD is none.
enum backward_defect {
    SOUND_BACKWARD,
    NO_DELTA,          // d_s = P d_p
    LOST_HEAD,         // the last head of those that share a key is left out
    UNMASKED_GRADIENT, // causal keeps whole tiles: pairs that do not see each other count
    LAST_TILE_LOST,    // the last tile of C and E is left out
    SWAPPED_FIGURES,   // eight rows get the figures of the eight beside them
    UNSCALED           // d_k without the scale
};

constexpr int gradient_shared_bytes(int d, int fixed, int moving) {
    return (2 * fixed + 4 * moving) * (d / 8 + (d / 8 % 8 == 0 ? 0 : 1)) * 16 + 2 * moving * 8;
}

template <int BANDS, int COLUMNS> using gradient_tile = float[BANDS][COLUMNS / 8][4];

// c = rows columns^T. Both addresses are those of the lane's first piece of a fragment.
template <typename T, int D, int BANDS, int MOVING>
__device__ inline void multiply_rows(gradient_tile<BANDS, MOVING> &c, uint32_t rows,
                                     uint32_t columns) {
    using tile_of = attention_tile<D>;
#pragma unroll
    for (int b = 0; b < BANDS; b++) {
#pragma unroll
        for (int e = 0; e < MOVING / 2; e++) c[b][e / 4][e % 4] = 0;
    }
#pragma unroll
    for (int d = 0; d < D / 16; d++) {
        uint32_t a[BANDS][4];
#pragma unroll
        for (int b = 0; b < BANDS; b++) {
            load_matrix_4(a[b], tile_of::beside(rows, 2 * d) + b * 16 * tile_of::ROW_BYTES);
        }
#pragma unroll
        for (int m = 0; m < MOVING / 8; m += 2) {
            uint32_t y[4];
            load_matrix_4(y, tile_of::beside(columns, 2 * d) + m * 8 * tile_of::ROW_BYTES);
#pragma unroll
            for (int b = 0; b < BANDS; b++) {
                mma_16<T>(c[b][m], a[b], y[0], y[1]);
                mma_16<T>(c[b][m + 1], a[b], y[2], y[3]);
            }
        }
    }
}

// sums += factors rows, with the factors rounded to the type.
template <typename T, int D, int BANDS, int MOVING>
__device__ inline void add_rows(gradient_tile<BANDS, D> &sums,
                                const gradient_tile<BANDS, MOVING> &factors, uint32_t rows) {
    using tile_of = attention_tile<D>;
#pragma unroll
    for (int m = 0; m < MOVING / 8; m += 2) {
        uint32_t a[BANDS][4];
#pragma unroll
        for (int b = 0; b < BANDS; b++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const float *pair = &factors[b][m + e / 2][e % 2 * 2];
                a[b][e] = pack<T>(pair[0], pair[1]);
            }
        }
#pragma unroll
        for (int p = 0; p < D / 8; p += 2) {
            uint32_t y[4];
            load_matrix_4_transposed(y, tile_of::beside(rows, p) + m * 8 * tile_of::ROW_BYTES);
#pragma unroll
            for (int b = 0; b < BANDS; b++) {
                mma_16<T>(sums[b][p], a[b], y[0], y[1]);
                mma_16<T>(sums[b][p + 1], a[b], y[2], y[3]);
            }
        }
    }
}

// Stores the warp's sums by 16 bytes, through its own rows of a tile in shared memory, which no
// other warp reads. `band` is the first of these rows, and `rows` how many exist.
template <typename T, int D, int BANDS>
__device__ inline void store_sums(const gradient_tile<BANDS, D> &sums, float scale, char *tile,
                                  int band, T *to, long long stride, int rows) {
    using tile_of = attention_tile<D>;
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int b = 0; b < BANDS; b++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
#pragma unroll
            for (int p = 0; p < D / 8; p++) {
                const float *pair = &sums[b][p][2 * h];
                *(uint32_t *)(tile + tile_of::at(band + b * 16 + h * 8 + lane / 4, p) +
                              lane % 4 * 4) = pack<T>(pair[0] * scale, pair[1] * scale);
            }
        }
    }
    __syncwarp();
    for (int i = lane; i < rows * tile_of::CHUNKS; i += WARP) {
        const int row = i / tile_of::CHUNKS, chunk = i % tile_of::CHUNKS;
        *(uint4 *)(to + row * stride + chunk * 8) =
            *(const uint4 *)(tile + tile_of::at(band + row, chunk));
    }
}

// Takes the weight from pairs that do not see each other: `fixed` is the warp's first row of A, and
// `moving` the first of C. Most tiles have none. Rows of q after the last one have no weight.
template <bool OF_KEYS, int BANDS, int MOVING>
__device__ inline void mask_pairs(gradient_tile<BANDS, MOVING> &scores,
                                  const attention_arguments &x, int fixed, int moving) {
    const int rows = OF_KEYS ? MOVING : 16 * BANDS, keys = OF_KEYS ? 16 * BANDS : MOVING;
    const int row_at = OF_KEYS ? moving : fixed, key_at = OF_KEYS ? fixed : moving;
    const int lane = threadIdx.x % WARP;
    if (pairs_are_seen<OF_KEYS>(x, row_at, rows, key_at, keys)) return;
#pragma unroll
    for (int b = 0; b < BANDS; b++) {
#pragma unroll
        for (int i = 0; i < MOVING / 2; i++) {
            const int of_fixed = fixed + b * 16 + i % 4 / 2 * 8 + lane / 4;
            const int of_moving = moving + i / 4 * 8 + lane % 4 * 2 + i % 2;
            const int row = OF_KEYS ? of_moving : of_fixed, key = OF_KEYS ? of_fixed : of_moving;
            if (!pair_is_seen<OF_KEYS>(x, row, key)) scores[b][i / 4][i % 4] = -INFINITE;
        }
    }
}

template <typename T, int D, int BANDS, int MOVING, int WARPS, bool OF_KEYS, backward_defect DEFECT>
__device__ inline void attention_gradient(const attention_backward_arguments &g, int tile,
                                          int own_head, int batch) {
    using tile_of = attention_tile<D>;
    constexpr int THREADS = WARPS * WARP, FIXED = WARPS * 16 * BANDS;
    constexpr int FIXED_BYTES = FIXED * tile_of::ROW_BYTES;
    constexpr int TILE_BYTES = MOVING * tile_of::ROW_BYTES;
    extern __shared__ __align__(ATTENTION_ALIGNMENT) uint4 shared[];
    const attention_arguments &x = g.x;
    const uint32_t fixed_at = shared_address(shared), tiles_at = fixed_at + 2 * FIXED_BYTES;
    const uint32_t figures_at = tiles_at + 4 * TILE_BYTES;
    const int lane = threadIdx.x % WARP, first = tile * FIXED;
    const int band = threadIdx.x / WARP * 16 * BANDS; // the warp's first row of A
    const int fixed_length = OF_KEYS ? x.kv_length : x.q_length;
    const int moving_length = OF_KEYS ? x.q_length : x.kv_length;

    gradient_walk walk = gradient_walk_of<OF_KEYS, FIXED, MOVING>(x, first);
    if (DEFECT == LOST_HEAD && walk.heads > 1) walk.heads--;
    if (DEFECT == LAST_TILE_LOST && walk.count > 1) walk.count--;
    const int steps = walk.count * walk.heads;
    auto row_of = [&](bool is_second, bool of_keys, int head, int row) {
        return of_keys     ? is_second ? attention_row<T>(x.v, x.v_strides, batch, head, row)
                                       : attention_row<T>(x.k, x.k_strides, batch, head, row)
                   : is_second ? attention_row<T>(g.d_out, g.d_out_strides, batch, head, row)
                           : attention_row<T>(x.q, x.q_strides, batch, head, row);
    };
    auto stride_of = [&](bool is_second, bool of_keys) {
        return of_keys     ? is_second ? x.v_strides.row : x.k_strides.row
               : is_second ? g.d_out_strides.row
                           : x.q_strides.row;
    };
    auto head_of = [&](int step) { // of C and E
        return OF_KEYS ? own_head * x.group + step / walk.count : own_head / x.group;
    };
    using copier = attention_copier<T, D, MOVING, THREADS>;
    copier of_c(nullptr, 0), of_e(nullptr, 0);
    const char *figures = nullptr; // of the tile that is copied next
    auto copy_step = [&](int step) {
        if (step >= steps) return;
        const int at = (walk.begin + step % walk.count) * MOVING;
        if (step % walk.count == 0) {
            const int head = head_of(step);
            of_c = copier(row_of(false, !OF_KEYS, head, at), stride_of(false, !OF_KEYS));
            of_e = copier(row_of(true, !OF_KEYS, head, at), stride_of(true, !OF_KEYS));
            figures = (const char *)((const float2 *)g.figures +
                                     ((long long)batch * x.heads + head) * g.figures_pitch + at);
        }
        const uint32_t to = tiles_at + step % 2 * 2 * TILE_BYTES;
        const int there = moving_length - at;
        if (there >= MOVING) {
            of_c.whole(to), of_e.whole(to + TILE_BYTES);
        } else {
            of_c.some(to, there), of_e.some(to + TILE_BYTES, there);
        }
        of_c.advance(), of_e.advance();
        if (OF_KEYS && threadIdx.x < MOVING / 2) {
            copy_async_16(figures_at + step % 2 * MOVING * 8 + threadIdx.x * 16,
                          figures + threadIdx.x * 16, 16);
            figures += MOVING * 8;
        }
    };
    attention_copier<T, D, FIXED, THREADS>(row_of(false, OF_KEYS, own_head, first),
                                           stride_of(false, OF_KEYS))
        .some(fixed_at, fixed_length - first);
    attention_copier<T, D, FIXED, THREADS>(row_of(true, OF_KEYS, own_head, first),
                                           stride_of(true, OF_KEYS))
        .some(fixed_at + FIXED_BYTES, fixed_length - first);
    copy_step(0);

    // The lane's first piece of a fragment.
    const uint32_t of_rows = fixed_at + tile_of::at(band + lane % 16, lane / 16);
    const uint32_t of_columns = tile_of::at(lane / 16 * 8 + lane % 8, lane / 8 % 2);
    const uint32_t of_values = tile_of::at(lane % 16, lane / 16);
    gradient_tile<BANDS, D> sums = {}, sums_e = {}; // sums_e: of keys alone
    gradient_tile<BANDS, MOVING> scores, products;
    float2 own[BANDS][2]; // the figures of rows of q
    if (!OF_KEYS) {
#pragma unroll
        for (int i = 0; i < 2 * BANDS; i++) {
            const int row = first + band + i / 2 * 16 + i % 2 * 8 + lane / 4;
            own[i / 2][i % 2] =
                ((const float2 *)
                     g.figures)[((long long)batch * x.heads + own_head) * g.figures_pitch +
                                min(row, x.q_length - 1)];
        }
    }

    for (int step = 0; step < steps; step++) {
        copy_async_wait_all();
        __syncthreads(); // all see this step's tiles, and have read those of the step in front
        copy_step(step + 1);
        const uint32_t place = tiles_at + step % 2 * 2 * TILE_BYTES;
        const int at = (walk.begin + step % walk.count) * MOVING;
        multiply_rows<T, D, BANDS, MOVING>(scores, of_rows, place + of_columns);
        multiply_rows<T, D, BANDS, MOVING>(products, of_rows + FIXED_BYTES,
                                           place + TILE_BYTES + of_columns);
        if (DEFECT != UNMASKED_GRADIENT) {
            mask_pairs<OF_KEYS, BANDS, MOVING>(scores, x, first + band, at);
        }
        const uint32_t figures_of = figures_at + step % 2 * MOVING * 8 + lane % 4 * 16;
#pragma unroll
        for (int m = 0; m < MOVING / 8; m++) {
            float2 of[2]; // of the lane's two columns, where those are rows of q
            if (OF_KEYS) {
                asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                             : "=f"(of[0].x), "=f"(of[0].y), "=f"(of[1].x), "=f"(of[1].y)
                             : "r"(figures_of + (DEFECT == SWAPPED_FIGURES ? m ^ 1 : m) * 64)
                             : "memory");
            }
#pragma unroll
            for (int i = 0; i < 4 * BANDS; i++) {
                const int b = i / 4, e = i % 4;
                const float2 figure = OF_KEYS ? of[e % 2] : own[b][e / 2];
                const float weight =
                    exp2_approximate(fmaf(scores[b][m][e], x.scale_log2, -figure.x));
                scores[b][m][e] = weight;
                products[b][m][e] =
                    weight * (products[b][m][e] - (DEFECT == NO_DELTA ? 0 : figure.y));
            }
        }
        if (OF_KEYS) add_rows<T, D, BANDS, MOVING>(sums_e, scores, place + TILE_BYTES + of_values);
        add_rows<T, D, BANDS, MOVING>(sums, products, place + of_values);
    }
    copy_async_wait_all(); // also the fixed tiles of a block without steps
    __syncthreads();
    const int rows = min(16 * BANDS, fixed_length - first - band);
    char *tiles = (char *)shared;
    if (OF_KEYS) {
        T *d_k = (T *)attention_row<T>(g.d_k, g.d_k_strides, batch, own_head, first + band);
        T *d_v = (T *)attention_row<T>(g.d_v, g.d_v_strides, batch, own_head, first + band);
        store_sums<T, D, BANDS>(sums, DEFECT == UNSCALED ? 1 : g.scale, tiles, band, d_k,
                                g.d_k_strides.row, rows);
        store_sums<T, D, BANDS>(sums_e, 1, tiles + FIXED_BYTES, band, d_v, g.d_v_strides.row, rows);
    } else {
        T *d_q = (T *)attention_row<T>(g.d_q, g.d_q_strides, batch, own_head, first + band);
        store_sums<T, D, BANDS>(sums, g.scale, tiles, band, d_q, g.d_q_strides.row, rows);
    }
}

template <typename T, int D, int BANDS, int MOVING, int WARPS, backward_defect DEFECT>
__device__ inline void attention_backward_tensor(const attention_backward_arguments &g) {
    const int kv_heads = g.x.heads / g.x.group, of_keys = g.x.batch * kv_heads * g.k_tiles;
    int block = blockIdx.x;
    if (block < of_keys) {
        // Tile by tile, so that the long ones of all heads come first.
        const int heads = g.x.batch * kv_heads, tile = block / heads, head = block % heads;
        attention_gradient<T, D, BANDS, MOVING, WARPS, true, DEFECT>(g, tile, head % kv_heads,
                                                                     head / kv_heads);
    } else {
        block -= of_keys;
        const int heads = g.x.batch * g.x.heads, tile = g.q_tiles - 1 - block / heads;
        const int head = block % heads;
        attention_gradient<T, D, BANDS, MOVING, WARPS, false, DEFECT>(g, tile, head % g.x.heads,
                                                                      head / g.x.heads);
    }
}

// The products of bytes (int8 mma): quants as they are stored, by x rounded to bytes.
//
// The idea: mma.m16n8k32 multiplies 16 rows of 32 quants by eight columns of bytes, and its sums
// are whole numbers, so they are exact in any tile. A sub-block's sum is multiplied by its scale,
// also a whole number; only the sum of a chunk of 256 elements becomes a float. Minimums multiply
// the sums of x in the same way. That leaves few instructions per byte, and cp.async fills a ring
// in shared memory, chunks ahead, without registers. Rows and columns beyond the last repeat the
// last ones, and are not written.
// An element of y: of chunk c let s be the sum of scales by products and m that of minimums by sums
// of x, as floats; v = fma(d, s, -(dmin m)); the chunk adds fma(scale of x, v, sum) to the sum of
// share c % 8 of k, from the first chunk on. Shares are added in order.
// Owner: block (i, j) owns TILES x 16 rows from there on (16 of each matrix for the gated ones) and
// 8 NT columns; warp w has share w.
// Bound by: reads of W.
#pragma once

#include "bytes_formats.cuh"
#include "../../pdl.cuh"
#include "../formats/rounded.cuh"
#include "split.cuh"

#if __CUDA_ARCH__ >= 800
// Tiles of 16 rows of W, or one of W and one of G, by the pieces of 16 bytes that a lane copies.
template <typename Q, bool GATED, int TILES> struct bytes_rows {
    enum {
        ALL = 16 * Q::PIECES,
        COPIES = ceil_div(ALL, WARP),
        OWN_TILES = GATED ? 1 : TILES, // of one matrix
        IN_LINE = Q::STRIDE == 16 * Q::PIECES
    };
    const uint8_t *first[GATED ? 2 : 1], *end[GATED ? 2 : 1]; // the first row; the matrix's end
    uint32_t at[OWN_TILES][COPIES], to[COPIES];               // a lane's pieces from there on
    uint32_t begin[OWN_TILES][2];                             // rows g and g + 8

    __device__ inline bytes_rows(const linear_arguments &a, uint32_t row) {
        const uint32_t lane = threadIdx.x % WARP, row_bytes = a.k / CHUNK * Q::BYTES;
#pragma unroll
        for (int m = 0; m < (GATED ? 2 : 1); m++) {
            const uint8_t *matrix = (const uint8_t *)(m == 0 ? a.weights : a.gate);
            first[m] = matrix + (uint64_t)row * row_bytes;
            end[m] = matrix + (uint64_t)a.rows * row_bytes;
        }
#pragma unroll
        for (uint32_t m = 0; m < OWN_TILES; m++) {
#pragma unroll
            for (uint32_t j = 0; j < COPIES; j++) {
                const uint32_t i = lane + j * WARP, r = i / Q::PIECES;
                at[m][j] =
                    (min(row + 16 * m + r, a.rows - 1) - row) * row_bytes + i % Q::PIECES * 16;
                to[j] = r * Q::STRIDE + i % Q::PIECES * 16;
            }
#pragma unroll
            for (uint32_t r = 0; r < 2; r++) {
                begin[m][r] = (min(row + 16 * m + lane / 4 + 8 * r, a.rows - 1) - row) * row_bytes;
            }
        }
    }
    // What surrounds a block of Q6_K is copied too, but nothing after the matrix: CLIPS.
    template <bool CLIPS> __device__ inline void copy_tiles(uint32_t slot, uint32_t chunk) const {
        const uint32_t lane = threadIdx.x % WARP;
#pragma unroll
        for (int m = 0; m < TILES; m++) {
            const uint8_t *from = first[GATED ? m : 0] + chunk * Q::BYTES;
            const uint32_t tile = slot + m * 16 * Q::STRIDE;
#pragma unroll
            for (uint32_t j = 0; j < COPIES; j++) {
                if (ALL % WARP != 0 && j == COPIES - 1 && lane + j * WARP >= ALL) continue;
                const uint8_t *piece = from + at[GATED ? 0 : m][j];
                const uint32_t there = tile + (IN_LINE ? (lane + j * WARP) * 16 : to[j]);
                if (!Q::IS_EVEN) piece = (const uint8_t *)((uint64_t)piece & ~15ull);
                int bytes = 16;
                if (CLIPS) {
                    const int64_t left = end[GATED ? m : 0] - piece;
                    bytes = left < 16 ? (left > 0 ? (int)left : 0) : 16;
                    if (bytes == 0) piece = (const uint8_t *)((uint64_t)from & ~15ull);
                }
                copy_async_16(there, piece, bytes);
            }
        }
    }
    __device__ inline void copy(uint32_t slot, uint32_t chunk, bool is_last) const {
        if (!Q::IS_EVEN && is_last) {
            copy_tiles<true>(slot, chunk);
        } else {
            copy_tiles<false>(slot, chunk);
        }
    }
    // Where the blocks of rows g and g + 8 of a tile begin in what was copied.
    __device__ inline void begins(uint32_t (&from)[2], int m, uint32_t chunk) const {
#pragma unroll
        for (uint32_t r = 0; r < 2; r++) {
            from[r] = Q::IS_EVEN ? 0
                                 : ((uint32_t)(uint64_t)first[GATED ? m : 0] + chunk * Q::BYTES +
                                    begin[GATED ? 0 : m][r]) %
                                       16;
        }
    }
};

// Where a lane's parts of x are: of chunk 0 of tile n of columns.
__device__ inline const uint8_t *x_of_lane(const linear_arguments &a, uint32_t column, int n) {
    const uint32_t lane = threadIdx.x % WARP, chunks = a.k / CHUNK;
    const uint32_t own = min(column + n * ROUNDED_COLUMNS + lane / 4, a.columns - 1);
    return rounded_tile(a.split, own, 0, chunks) + (own % ROUNDED_COLUMNS * 4 + lane % 4) * 16;
}

// x of one tile of columns, in registers: as soon as a part was used, that of the lane's next chunk
// is loaded there.
struct x_in_registers {
    const uint8_t *next;
    uint4 all[4], own;

    __device__ inline void advance(int p) { all[p] = *(const uint4 *)(next + p * (WARP * 16)); }
    __device__ inline void advance_units() { own = *(const uint4 *)(next + ROUNDED_UNITS_AT); }
    __device__ inline void advance_all() {
#pragma unroll
        for (int p = 0; p < 4; p++) advance(p);
        advance_units();
    }
    __device__ inline uint4 numbers(int, int p) const {
        return all[p];
    }
    __device__ inline uint4 unit(int) const {
        return own;
    }
};

// x of several tiles: the numbers in shared memory after the weights of the slot.
template <int NT> struct x_in_shared {
    const uint8_t *tiles;
    uint4 own[NT];

    __device__ inline void advance(int) {}
    __device__ inline void advance_units() {}
    __device__ inline uint4 numbers(int n, int p) const {
        return *(const uint4 *)(tiles + n * ROUNDED_UNITS_AT + p * (WARP * 16) +
                                threadIdx.x % WARP * 16);
    }
    __device__ inline uint4 unit(int n) const { return own[n]; }
};

template <bool GATED, int TILES, int NT>
__device__ inline void put_block(const linear_arguments &a, uint32_t row, uint32_t column,
                                 const float (&totals)[TILES][NT][4], float *shared) {
    enum { ROWS = TILES * 16, COLUMNS = NT * 8, OUT = GATED ? 16 : (int)ROWS };
    const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
    for (int m = 0; m < TILES; m++) {
#pragma unroll
        for (int n = 0; n < NT; n++) {
#pragma unroll
            for (int i = 0; i < 4; i++) { // [warp][column][row]
                const uint32_t c = n * 8 + lane % 4 * 2 + i % 2;
                const uint32_t r = m * 16 + lane / 4 + i / 2 * 8;
                shared[(warp * COLUMNS + c) * ROWS + r] = totals[m][n][i];
            }
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < OUT * COLUMNS; i += LINEAR_BYTES_WARPS * WARP) {
        const uint32_t r = i % OUT, c = i / OUT;
        if (row + r >= a.rows || column + c >= a.columns) continue;
        float sums[2] = {};
#pragma unroll
        for (int w = 0; w < LINEAR_BYTES_WARPS; w++) {
            sums[0] += shared[(w * COLUMNS + c) * ROWS + r];
            if (GATED) sums[1] += shared[(w * COLUMNS + c) * ROWS + 16 + r];
        }
        put_element<GATED>(a, row + r, column + c, sums[0], sums[1]);
    }
}

// Rounds the chunk of 256 rows of y that this block belongs to, if it is the last of its blocks.
__device__ inline void round_chunk(const linear_bytes_arguments &all, uint32_t row, uint32_t column,
                                   uint32_t columns) {
    __shared__ bool is_last;
    const linear_arguments &a = all.linear;
    const uint32_t chunks = a.rows / CHUNK, chunk = row / CHUNK, lane = threadIdx.x % WARP;
    __threadfence(); // y is seen by who takes a later ticket
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t *ticket = (uint32_t *)all.tickets + blockIdx.y * chunks + chunk;
        is_last = atomicAdd(ticket, 1) == CHUNK / 16 - 1;
        if (is_last) *ticket = 0;
    }
    __syncthreads(); // is_last is there
    if (!is_last) return;
    __threadfence();
    for (uint32_t c = column + threadIdx.x / WARP; c < min(column + columns, a.columns);
         c += LINEAR_BYTES_WARPS) {
        const float *y = (const float *)a.y + c * a.y_stride + chunk * CHUNK + lane * OWN;
        float own[OWN];
#pragma unroll
        for (int i = 0; i < OWN; i++) own[i] = __ldcg(y + i);
        put_rounded(rounded_tile(all.rounded, c, chunk, chunks), c % ROUNDED_COLUMNS, own);
    }
}

// What a warp copies of x: the numbers of chunk `chunk` of NT tiles.
template <int NT>
__device__ inline void copy_x(uint32_t to, const uint8_t *const (&x)[NT], uint32_t chunk) {
#pragma unroll
    for (int n = 0; n < NT; n++) {
#pragma unroll
        for (int p = 0; p < 4; p++) {
            copy_async_16(to + n * ROUNDED_UNITS_AT + p * (WARP * 16) + threadIdx.x % WARP * 16,
                          x[n] + (uint64_t)chunk * ROUNDED_CHUNK + p * (WARP * 16), 16);
        }
    }
}

template <typename Q, bool GATED, int TILES, int NT, int STAGES>
__device__ inline void linear_bytes(const linear_bytes_arguments &all) {
    const linear_arguments &a = all.linear;
    enum {
        WEIGHTS = TILES * 16 * Q::STRIDE,
        SLOT = WEIGHTS + (NT > 1 ? NT * (int)ROUNDED_UNITS_AT : 0),
        SHARES = LINEAR_BYTES_WARPS
    };
    extern __shared__ uint4 shared[];
    const uint32_t warp = threadIdx.x / WARP, chunks = a.k / CHUNK;
    const uint32_t row = blockIdx.x * (GATED ? 16 : TILES * 16), column = blockIdx.y * NT * 8;
    const bytes_rows<Q, GATED, TILES> rows(a, row);
    uint8_t *const ring = (uint8_t *)shared + warp * STAGES * SLOT;
    const uint32_t ring_at = shared_address(ring);
    const uint8_t *x_at[NT];
    x_in_registers x;
    float totals[TILES][NT][4] = {};
#pragma unroll
    for (int n = 0; n < NT; n++) x_at[n] = x_of_lane(a, column, n);
    // Only the last block of the last row has no other one after it.
    const uint32_t clips = row + (GATED ? 16 : TILES * 16) >= a.rows ? chunks - 1 : chunks;
    pdl_release();
#pragma unroll 1
    for (uint32_t s = 0; s < STAGES; s++) {
        const uint32_t chunk = warp + s * SHARES;
        if (chunk < chunks) rows.copy(ring_at + s * SLOT, chunk, chunk == clips);
        if (NT == 1) copy_async_commit();
    }
    pdl_wait();
    if (NT > 1) {
        copy_async_commit();
#pragma unroll 1
        for (uint32_t s = 0; s < STAGES; s++) {
            const uint32_t chunk = warp + s * SHARES;
            if (chunk < chunks) copy_x<NT>(ring_at + s * SLOT + WEIGHTS, x_at, chunk);
            copy_async_commit();
        }
    } else if (warp < chunks) {
        x.next = x_at[0] + (uint64_t)warp * ROUNDED_CHUNK;
        x.advance_all();
    }
    uint32_t slot = 0;
#pragma unroll 1
    for (uint32_t chunk = warp; chunk < chunks; chunk += SHARES) {
        const uint8_t *tile = ring + slot * SLOT;
        x_in_shared<NT> tiles;
        if constexpr (NT > 1) {
            tiles.tiles = tile + WEIGHTS;
#pragma unroll
            for (int n = 0; n < NT; n++) {
                tiles.own[n] =
                    *(const uint4 *)(x_at[n] + (uint64_t)chunk * ROUNDED_CHUNK + ROUNDED_UNITS_AT);
            }
        } else if (chunk + SHARES < chunks) { // the last one is loaded again
            x.next += SHARES * ROUNDED_CHUNK;
        }
        copy_async_wait<STAGES - 1>();
        __syncwarp(); // what other lanes copied is there
#pragma unroll
        for (int m = 0; m < TILES; m++) {
            uint32_t from[2];
            rows.begins(from, m, chunk);
            const uint8_t *own = tile + m * 16 * Q::STRIDE;
            if constexpr (NT > 1) {
                Q::template add<NT, false>(totals[m], own, tiles, from);
            } else if (m == TILES - 1) {
                Q::template add<NT, true>(totals[m], own, x, from);
            } else {
                Q::template add<NT, false>(totals[m], own, x, from);
            }
        }
        __syncwarp(); // all lanes have read the slot
        const uint32_t ahead = chunk + STAGES * SHARES;
        if (ahead < chunks) {
            rows.copy(ring_at + slot * SLOT, ahead, ahead == clips);
            if constexpr (NT > 1) copy_x<NT>(ring_at + slot * SLOT + WEIGHTS, x_at, ahead);
        }
        copy_async_commit();
        slot = slot + 1 == STAGES ? 0 : slot + 1;
    }
    copy_async_wait_all();
    __syncthreads(); // the rings are not needed any more
    put_block<GATED, TILES, NT>(a, row, column, totals, (float *)shared);
    if (GATED && all.rounded != 0) round_chunk(all, row, column, NT * 8);
}
#else
template <typename Q, bool GATED, int TILES, int NT, int STAGES>
__device__ inline void linear_bytes(const linear_bytes_arguments &) {}
#endif

// Beside one tile of columns, and beside four.
#define LINEAR_BYTES(ending, format, Q)                                                            \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 2)                      \
        linear_bytes_##format##_1##ending(linear_bytes_arguments a) {                              \
        linear_bytes<Q, false, 1, 1, LINEAR_BYTES_STAGES(Q::STRIDE)>(a);                           \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 2)                      \
        linear_bytes_gated_##format##_1##ending(linear_bytes_arguments a) {                        \
        linear_bytes<Q, true, 2, 1, 2>(a);                                                         \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 1)                      \
        linear_bytes_##format##_4##ending(linear_bytes_arguments a) {                              \
        linear_bytes<Q, false, LINEAR_BYTES_TILES(Q::STRIDE), 4, 2>(a);                            \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 1)                      \
        linear_bytes_gated_##format##_2##ending(linear_bytes_arguments a) {                        \
        linear_bytes<Q, true, 2, 2, 2>(a);                                                         \
    }

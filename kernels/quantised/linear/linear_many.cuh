// Products of bytes for four tiles of columns, by persistent thread blocks.
#pragma once

#include "linear_stay.cuh"
#include "../product/many_shape.h"

#if __CUDA_ARCH__ >= 800
enum { MANY_NT = LINEAR_MANY_COLUMNS / ROUNDED_COLUMNS };

// x of the chunks of a warp, all in registers for the whole kernel; the units in shared
// memory, where a lane reads what it wrote.
struct x_kept {
    uint4 all[LINEAR_KEPT_CHUNKS][MANY_NT][4];
    uint4 *units; // [chunk][tile][lane]

    __device__ inline void load(const linear_arguments &a, uint32_t column, uint32_t chunks) {
        const uint32_t warp = threadIdx.x / WARP;
#pragma unroll
        for (int c = 0; c < LINEAR_KEPT_CHUNKS; c++) {
            const uint32_t chunk = min(warp + c * LINEAR_BYTES_WARPS, chunks - 1);
            uint4 own[MANY_NT];
#pragma unroll
            for (int n = 0; n < MANY_NT; n++) {
                const uint8_t *from = x_of_lane(a, column, n) + (uint64_t)chunk * ROUNDED_CHUNK;
#pragma unroll
                for (int p = 0; p < 4; p++) all[c][n][p] = *(const uint4 *)(from + p * (WARP * 16));
                own[n] = *(const uint4 *)(from + ROUNDED_UNITS_AT);
            }
#pragma unroll
            for (int n = 0; n < MANY_NT; n++) units[(c * MANY_NT + n) * WARP] = own[n];
        }
    }
};

// One of its chunks.
struct x_kept_chunk {
    const uint4 (&all)[MANY_NT][4];
    const uint4 *units;

    __device__ inline void advance(int) {}
    __device__ inline void advance_units() {}
    __device__ inline uint4 numbers(int n, int p) const { return all[n][p]; }
    __device__ inline uint4 unit(int n) const { return units[n * WARP]; }
};

// x of one chunk in registers: as soon as a part was used, that of the next chunk is loaded there.
struct x_ahead {
    const uint8_t *from[MANY_NT];
    uint64_t next;
    uint4 all[MANY_NT][4], own[MANY_NT];

    __device__ inline void advance(int p) {
#pragma unroll
        for (int n = 0; n < MANY_NT; n++)
            all[n][p] = *(const uint4 *)(from[n] + next + p * (WARP * 16));
    }
    __device__ inline void advance_units() {
#pragma unroll
        for (int n = 0; n < MANY_NT; n++)
            own[n] = *(const uint4 *)(from[n] + next + ROUNDED_UNITS_AT);
    }
    __device__ inline void advance_all() {
#pragma unroll
        for (int p = 0; p < 4; p++) advance(p);
        advance_units();
    }
    __device__ inline uint4 numbers(int n, int p) const {
        return all[n][p];
    }
    __device__ inline uint4 unit(int n) const {
        return own[n];
    }
};

// Totals of a tile of M times 16 rows, [warp][column][row]; LINE: such that lanes of a fragment
// write to different banks.
template <bool GATED, int M> struct many_totals {
    enum {
        LINE = 16 * M + 4,
        SHARE = LINEAR_MANY_COLUMNS * LINE,
        ALL = LINEAR_BYTES_WARPS * SHARE,
        OWN = tile_rows<GATED>::OWN,
        OUT = OWN * M
    };
    static __device__ inline void put(float *own, const float (&totals)[M][MANY_NT][4]) {
        const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
        for (int m = 0; m < M; m++) {
#pragma unroll
            for (int n = 0; n < MANY_NT; n++) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const uint32_t c = n * 8 + lane % 4 * 2 + i % 2;
                    const uint32_t r = m * 16 + lane / 4 + i / 2 * 8;
                    own[warp * SHARE + c * LINE + r] = totals[m][n][i];
                }
            }
        }
    }
    // Adds the shares in order, and writes the tile's elements of y.
    static __device__ inline void write(const linear_arguments &a, uint32_t tile, uint32_t column,
                                        const float *all) {
#pragma unroll
        for (uint32_t j = 0; j < OUT * LINEAR_MANY_COLUMNS / (LINEAR_BYTES_WARPS * WARP); j++) {
            const uint32_t i = threadIdx.x + j * LINEAR_BYTES_WARPS * WARP;
            const uint32_t r = i % OUT, c = i / OUT;
            if (c >= a.columns - column) break;
            const float *own = all + c * LINE + r / OWN * 16 + r % OWN;
            float sums[2] = {};
#pragma unroll
            for (int w = 0; w < LINEAR_BYTES_WARPS; w++) {
                sums[0] += own[w * SHARE];
                if (GATED) sums[1] += own[w * SHARE + 8];
            }
            put_element<GATED>(a, tile * OUT + r, column + c, sums[0], sums[1]);
        }
    }
};

// k of at most LINEAR_KEPT_CHUNKS chunks per warp: a block reads x once.
template <typename Q, bool GATED>
__device__ inline void linear_kept(const linear_arguments &a, const stayers &blocks) {
    enum {
        SLOT = 16 * Q::STRIDE,
        STAGES = LINEAR_KEPT_STAGES(Q::STRIDE),
        SHARES = LINEAR_BYTES_WARPS
    };
    using block_totals = many_totals<GATED, 1>;
    extern __shared__ uint4 shared[];
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t chunks = a.k / CHUNK, row_bytes = chunks * Q::BYTES;
    const uint32_t tiles = a.rows / tile_rows<GATED>::OWN;
    const uint32_t column = blockIdx.y * LINEAR_MANY_COLUMNS;
    uint8_t *const ring = (uint8_t *)shared + warp * STAGES * SLOT;
    float *const totals_of = (float *)((uint8_t *)shared + SHARES * STAGES * SLOT);
    const uint32_t ring_at = shared_address(ring);
    stay_copies<Q, GATED> copies(a, blocks, row_bytes);
    pdl_release();
    if (warp >= chunks) copies.tile = tiles; // there is no share for this warp
#pragma unroll 1
    for (uint32_t s = 0; s < STAGES; s++) {
        copies.next(a, ring_at + s * SLOT, tiles, chunks, row_bytes);
        copy_async_commit();
    }
    x_kept x;
    x.units = (uint4 *)(totals_of + 2 * block_totals::ALL) +
              warp * (LINEAR_KEPT_CHUNKS * MANY_NT * WARP) + lane;
    pdl_wait();
    x.load(a, column, chunks);
    uint32_t slot = 0, turn = 0;
#pragma unroll 1
    for (uint32_t tile = blocks.own; tile < tiles; tile += blocks.all, turn++) {
        float totals[1][MANY_NT][4] = {};
#pragma unroll
        for (int c = 0; c < LINEAR_KEPT_CHUNKS; c++) {
            const uint32_t chunk = warp + c * SHARES;
            if (chunk >= chunks) break;
            x_kept_chunk own = {x.all[c], x.units + c * MANY_NT * WARP};
            uint32_t from[2];
            begins_of<Q, GATED>(from, a, tile, chunk, row_bytes);
            copy_async_wait<STAGES - 1>();
            __syncwarp(); // what other lanes copied is there
            Q::template add<MANY_NT, false>(totals[0], ring + slot * SLOT, own, from);
            __syncwarp(); // all lanes have read the slot
            copies.next(a, ring_at + slot * SLOT, tiles, chunks, row_bytes);
            copy_async_commit();
            slot = slot + 1 == STAGES ? 0 : slot + 1;
        }
        float *const own = totals_of + turn % 2 * block_totals::ALL;
        block_totals::put(own, totals);
        __syncthreads(); // totals are there, and those of the tile before have been read
        block_totals::write(a, tile, column, own);
    }
    copy_async_wait_all();
}

// Any k: tiles of twice the rows, since x is read again for each tile.
template <typename Q, bool GATED>
__device__ inline void linear_long(const linear_arguments &a, const stayers &blocks) {
    enum {
        M = LINEAR_LONG_TILES,
        SLOT = M * 16 * Q::STRIDE,
        STAGES = LINEAR_LONG_STAGES(Q::STRIDE),
        SHARES = LINEAR_BYTES_WARPS
    };
    using block_totals = many_totals<GATED, M>;
    extern __shared__ uint4 shared[];
    const uint32_t warp = threadIdx.x / WARP;
    const uint32_t chunks = a.k / CHUNK, row_bytes = chunks * Q::BYTES;
    const uint32_t tiles = a.rows / block_totals::OUT;
    const uint32_t column = blockIdx.y * LINEAR_MANY_COLUMNS;
    uint8_t *const ring = (uint8_t *)shared + warp * STAGES * SLOT;
    float *const totals_of = (float *)((uint8_t *)shared + SHARES * STAGES * SLOT);
    const uint32_t ring_at = shared_address(ring);
    stay_copies<Q, GATED, M> copies(a, blocks, row_bytes);
    pdl_release();
    if (warp >= chunks) copies.tile = tiles; // there is no share for this warp
#pragma unroll 1
    for (uint32_t s = 0; s < STAGES; s++) {
        copies.next(a, ring_at + s * SLOT, tiles, chunks, row_bytes);
        copy_async_commit();
    }
    pdl_wait();
    x_ahead x;
#pragma unroll
    for (int n = 0; n < MANY_NT; n++) x.from[n] = x_of_lane(a, column, n);
    x.next = (uint64_t)min(warp, chunks - 1) * ROUNDED_CHUNK;
    x.advance_all();
    uint32_t slot = 0;
#pragma unroll 1
    for (uint32_t tile = blocks.own; tile < tiles; tile += blocks.all) {
        float totals[M][MANY_NT][4] = {};
#pragma unroll 1
        for (uint32_t chunk = warp; chunk < chunks; chunk += SHARES) {
            x.next = (uint64_t)(chunk + SHARES < chunks ? chunk + SHARES : warp) * ROUNDED_CHUNK;
            copy_async_wait<STAGES - 1>();
            __syncwarp(); // what other lanes copied is there
#pragma unroll
            for (int m = 0; m < M; m++) {
                uint32_t from[2];
                const uint8_t *const own = ring + slot * SLOT + m * 16 * Q::STRIDE;
                begins_of<Q, GATED>(from, a, tile * M + m, chunk, row_bytes);
                if (m == M - 1) {
                    Q::template add<MANY_NT, true>(totals[m], own, x, from);
                } else {
                    Q::template add<MANY_NT, false>(totals[m], own, x, from);
                }
            }
            __syncwarp(); // all lanes have read the slot
            copies.next(a, ring_at + slot * SLOT, tiles, chunks, row_bytes);
            copy_async_commit();
            slot = slot + 1 == STAGES ? 0 : slot + 1;
        }
        if (tile != blocks.own) __syncthreads(); // totals of the tile before have been read
        block_totals::put(totals_of, totals);
        __syncthreads(); // totals are there
        block_totals::write(a, tile, column, totals_of);
    }
    copy_async_wait_all();
}
#else
template <typename Q, bool GATED>
__device__ inline void linear_kept(const linear_arguments &, const stayers &) {}
template <typename Q, bool GATED>
__device__ inline void linear_long(const linear_arguments &, const stayers &) {}
#endif

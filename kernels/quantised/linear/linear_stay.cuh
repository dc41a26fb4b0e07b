// Products of bytes by persistent thread blocks: the rings continue from one tile to the next.
#pragma once

#include "linear_bytes.cuh"

#if __CUDA_ARCH__ >= 800
// Rows of a tile of 16: of W, or eight of W and the same eight of G.
template <bool GATED> struct tile_rows {
    enum { OWN = GATED ? 8 : 16 };

    static __device__ inline uint64_t address(const linear_arguments &a, uint32_t tile, uint32_t r,
                                              uint32_t row_bytes) {
        const uint64_t matrix = GATED && r >= OWN ? a.gate : a.weights;
        return matrix + (uint64_t)(tile * OWN + r % OWN) * row_bytes;
    }
};

// The blocks that share a product, and which of them this one is.
struct stayers {
    uint32_t own, all;
};

// What a warp copies to its ring, chunk after chunk of its share, tile after tile of the block. A
// tile of M times 16 rows is M tiles of 16 that are neighbours.
template <typename Q, bool GATED, int M = 1> struct stay_copies {
    enum {
        ALL = 16 * Q::PIECES,
        COPIES = ceil_div(ALL, WARP),
        IN_LINE = Q::STRIDE == 16 * Q::PIECES
    };
    uint64_t piece[COPIES]; // a lane's, of chunk 0 of the tile
    uint32_t to[COPIES];
    uint32_t tile, chunk, step; // step: between the tiles of a block

    __device__ inline stay_copies(const linear_arguments &a, const stayers &blocks,
                                  uint32_t row_bytes) {
        tile = blocks.own, step = blocks.all, chunk = threadIdx.x / WARP;
#pragma unroll
        for (uint32_t j = 0; j < COPIES; j++) {
            const uint32_t i = min(threadIdx.x % WARP + j * WARP, (uint32_t)ALL - 1);
            piece[j] = tile_rows<GATED>::address(a, tile * M, i / Q::PIECES, row_bytes) +
                       i % Q::PIECES * 16;
            to[j] = i / Q::PIECES * Q::STRIDE + i % Q::PIECES * 16;
        }
    }
    // Nothing after the matrix is read: only its last rows end there.
    template <bool CLIPS>
    __device__ inline void copy_pieces(const linear_arguments &a, uint32_t slot,
                                       uint32_t row_bytes) const {
#pragma unroll
        for (uint32_t m = 0; m < M; m++) {
            const uint32_t offset = m * tile_rows<GATED>::OWN * row_bytes + chunk * Q::BYTES;
#pragma unroll
            for (uint32_t j = 0; j < COPIES; j++) {
                const uint32_t i = threadIdx.x % WARP + j * WARP;
                if (ALL % WARP != 0 && j == COPIES - 1 && i >= ALL) continue;
                uint64_t from = piece[j] + offset;
                int bytes = 16;
                if (!Q::IS_EVEN) from &= ~15ull;
                if (CLIPS) {
                    const uint64_t matrix =
                        GATED && i / Q::PIECES >= tile_rows<GATED>::OWN ? a.gate : a.weights;
                    const int64_t left = (int64_t)(matrix + (uint64_t)a.rows * row_bytes - from);
                    bytes = left < 16 ? (left > 0 ? (int)left : 0) : 16;
                    if (bytes == 0) from = matrix & ~15ull;
                }
                copy_async_16(slot + m * 16 * Q::STRIDE + (IN_LINE ? i * 16 : to[j]),
                              (const void *)from, bytes);
            }
        }
    }
    // Queues the next chunk, if there is one.
    __device__ inline void next(const linear_arguments &a, uint32_t slot, uint32_t tiles,
                                uint32_t chunks, uint32_t row_bytes) {
        if (tile >= tiles) return;
        if (!Q::IS_EVEN && tile == tiles - 1 && chunk == chunks - 1) {
            copy_pieces<true>(a, slot, row_bytes);
        } else {
            copy_pieces<false>(a, slot, row_bytes);
        }
        chunk += LINEAR_BYTES_WARPS;
        if (chunk < chunks) return;
        chunk = threadIdx.x / WARP;
        tile += step;
        const uint64_t far = (uint64_t)step * M * tile_rows<GATED>::OWN * row_bytes;
#pragma unroll
        for (uint32_t j = 0; j < COPIES; j++) piece[j] += far;
    }
};

// Where a chunk of rows g and g + 8 of a tile of 16 begins in what was copied.
template <typename Q, bool GATED>
__device__ inline void begins_of(uint32_t (&from)[2], const linear_arguments &a, uint32_t tile,
                                 uint32_t chunk, uint32_t row_bytes) {
#pragma unroll
    for (uint32_t r = 0; r < 2; r++) {
        from[r] = Q::IS_EVEN ? 0
                             : (uint32_t)(tile_rows<GATED>::address(
                                              a, tile, threadIdx.x % WARP / 4 + 8 * r, row_bytes) +
                                          chunk * Q::BYTES) %
                                   16;
    }
}

// The totals of a tile, [warp][column][row], are added and written, an element a thread.
template <bool GATED>
__device__ inline void put_tile(const linear_arguments &a, uint32_t tile, const float *totals) {
    enum { OWN_ROWS = tile_rows<GATED>::OWN };
    const uint32_t column = blockIdx.y * ROUNDED_COLUMNS;
    const uint32_t r = threadIdx.x % OWN_ROWS, c = threadIdx.x / OWN_ROWS;
    if (c >= min((uint32_t)ROUNDED_COLUMNS, a.columns - column)) return;
    float sums[2] = {};
#pragma unroll
    for (int w = 0; w < LINEAR_BYTES_WARPS; w++) {
        const float *own = totals + (w * ROUNDED_COLUMNS + c) * 16;
        sums[0] += own[r];
        if (GATED) sums[1] += own[8 + r];
    }
    put_element<GATED>(a, tile * OWN_ROWS + r, column + c, sums[0], sums[1]);
}

// Rounds the chunks of 256 rows of y whose last tile was this block's. Once per block, since it
// waits for what was written.
__device__ inline void round_chunks(const linear_bytes_arguments &all, const stayers &blocks,
                                    uint32_t tiles) {
    enum { OF_CHUNK = CHUNK / tile_rows<true>::OWN };
    const linear_arguments &a = all.linear;
    const uint32_t lane = threadIdx.x % WARP, chunks = a.rows / CHUNK;
    const uint32_t column = blockIdx.y * ROUNDED_COLUMNS;
    const uint32_t columns = min((uint32_t)ROUNDED_COLUMNS, a.columns - column);
    __threadfence(); // y is seen by who takes a later ticket
    __syncthreads();
    for (uint32_t tile = blocks.own + threadIdx.x / WARP * blocks.all; tile < tiles;
         tile += LINEAR_BYTES_WARPS * blocks.all) {
        const uint32_t chunk = tile / OF_CHUNK;
        uint32_t *ticket = (uint32_t *)all.tickets + blockIdx.y * chunks + chunk, before = 0;
        if (lane == 0) before = atomicAdd(ticket, 1);
        if (__shfl_sync(~0u, before, 0) != OF_CHUNK - 1) continue;
        if (lane == 0) *ticket = 0;
        __threadfence();
        for (uint32_t c = column; c < column + columns; c++) {
            const float *y = (const float *)a.y + c * a.y_stride + chunk * CHUNK + lane * OWN;
            float own[OWN];
#pragma unroll
            for (int i = 0; i < OWN; i++) own[i] = __ldcg(y + i);
            put_rounded(rounded_tile(all.rounded, c, chunk, chunks), c % ROUNDED_COLUMNS, own);
        }
    }
}

template <typename Q, bool GATED, int STAGES>
__device__ inline void linear_stay(const linear_bytes_arguments &all, const stayers &blocks) {
    enum { SLOT = 16 * Q::STRIDE, SHARES = LINEAR_BYTES_WARPS };
    extern __shared__ uint4 shared[];
    const linear_arguments &a = all.linear;
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t chunks = a.k / CHUNK, row_bytes = chunks * Q::BYTES;
    const uint32_t tiles = a.rows / tile_rows<GATED>::OWN;
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
    pdl_wait();
    const uint8_t *const x_at = x_of_lane(a, blockIdx.y * ROUNDED_COLUMNS, 0);
    x_in_registers x;
    if (warp < chunks) {
        x.next = x_at + (uint64_t)warp * ROUNDED_CHUNK;
        x.advance_all();
    }
    uint32_t slot = 0, turn = 0;
#pragma unroll 1
    for (uint32_t tile = blocks.own; tile < tiles; tile += blocks.all, turn++) {
        float totals[1][4] = {};
#pragma unroll 1
        for (uint32_t chunk = warp; chunk < chunks; chunk += SHARES) {
            const uint32_t after = chunk + SHARES < chunks ? chunk + SHARES : warp;
            uint32_t from[2];
            x.next = x_at + (uint64_t)after * ROUNDED_CHUNK;
            begins_of<Q, GATED>(from, a, tile, chunk, row_bytes);
            copy_async_wait<STAGES - 1>();
            __syncwarp(); // what other lanes copied is there
            Q::template add<1, true>(totals, ring + slot * SLOT, x, from);
            __syncwarp(); // all lanes have read the slot
            copies.next(a, ring_at + slot * SLOT, tiles, chunks, row_bytes);
            copy_async_commit();
            slot = slot + 1 == STAGES ? 0 : slot + 1;
        }
        float *const own = totals_of + turn % 2 * (SHARES * ROUNDED_COLUMNS * 16);
#pragma unroll
        for (int i = 0; i < 4; i++) { // [warp][column][row]
            const uint32_t c = lane % 4 * 2 + i % 2, r = lane / 4 + i / 2 * 8;
            own[(warp * ROUNDED_COLUMNS + c) * 16 + r] = totals[0][i];
        }
        __syncthreads(); // totals are there, and those of the tile before have been read
        put_tile<GATED>(a, tile, own);
    }
    copy_async_wait_all();
    if (GATED && all.rounded != 0) round_chunks(all, blocks, tiles);
}
#else
template <typename Q, bool GATED, int STAGES>
__device__ inline void linear_stay(const linear_bytes_arguments &, const stayers &) {}
#endif

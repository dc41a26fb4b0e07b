// Tiles of rows of 16-bit elements in shared memory: where a piece of 16 bytes is, how rows are
// copied there, and how pairs of floats become fragments.
//
// The idea: a thread copies the same piece of every STEP-th row, so between two copies it adds
// only a constant to one address and a stride to the other: attention_tensor is bound by
// instructions. The swizzle, or a padding of 16 bytes if a row is no multiple of 128 bytes, puts
// eight rows of a column into different banks, so that loads of fragments have no bank conflicts.
#pragma once

#include "attention.cuh"

#include <cuda_fp16.h>

template <int D> struct attention_tile {
    static constexpr int CHUNKS = D / 8; // of 16 bytes
    static constexpr bool SWIZZLED = CHUNKS % 8 == 0;
    static constexpr int PITCH = SWIZZLED ? CHUNKS : CHUNKS + 1, ROW_BYTES = PITCH * 16;
    static_assert(SWIZZLED || PITCH % 2 == 1, "eight rows must be in different banks");
    // The offset of a chunk of a row, from a multiple of ATTENTION_ALIGNMENT.
    __device__ static uint32_t at(int row, int chunk) {
        return row * ROW_BYTES + (SWIZZLED ? chunk ^ (row & 7) : chunk) * 16;
    }
    // The place an even number of chunks further in the same row; `place` is that of chunk 0 or 1.
    __device__ static uint32_t beside(uint32_t place, int chunks) {
        return SWIZZLED ? place ^ (chunks * 16) : place + chunks * 16;
    }
    // The place a multiple of STEP rows further in the same column; `place` is in the first STEP
    // rows.
    template <int STEP> __device__ static uint32_t below(uint32_t place, int rows) {
        static_assert(!SWIZZLED || (STEP & (STEP - 1)) == 0,
                      "the swizzle depends on the low bits of a row");
        return (SWIZZLED ? place ^ ((rows & 7) * 16) : place) + rows * ROW_BYTES;
    }
};

// The alignment of a tile: at least its longest row.
constexpr int ATTENTION_ALIGNMENT = 512;

constexpr int attention_shared_bytes(int d, int queries, int keys) {
    return (queries + 4 * keys) * (d / 8 + (d / 8 % 8 == 0 ? 0 : 1)) * 16;
}

// A thread's part of copying ROWS rows at a time from global memory to a tile, by THREADS threads:
// those of a block or of a warp.
template <typename T, int D, int ROWS, int THREADS> struct attention_copier {
    using tile_of = attention_tile<D>;
    static constexpr int STEP = THREADS / tile_of::CHUNKS; // from a thread's row to its next
    static constexpr bool ALL_WORK = THREADS % tile_of::CHUNKS == 0;
    long long stride;
    const T *from;  // the thread's chunk of its first row
    uint32_t place; // and in the tile

    __device__ static int thread() { return threadIdx.x % THREADS; }

    __device__ attention_copier(const T *rows, long long stride) : stride(stride) {
        const int row = thread() / tile_of::CHUNKS, chunk = thread() % tile_of::CHUNKS;
        from = rows + row * stride + chunk * 8;
        place = tile_of::at(row, chunk);
    }
    // Copies ROWS rows that all exist.
    __device__ void whole(uint32_t tile) const {
        const T *next = from;
        if (!ALL_WORK && thread() >= STEP * tile_of::CHUNKS) return;
#pragma unroll
        for (int row = 0; row < ROWS; row += STEP) {
            if (row + STEP <= ROWS || row + thread() / tile_of::CHUNKS < ROWS) {
                copy_async_16(tile_of::template below<STEP>(tile + place, row), next, 16);
            }
            next += STEP * stride;
        }
    }
    // Copies this many rows; the others become zeros.
    __device__ void some(uint32_t tile, int rows) const {
        const int first = thread() / tile_of::CHUNKS;
        if (!ALL_WORK && thread() >= STEP * tile_of::CHUNKS) return;
#pragma unroll 1
        for (int row = 0; first + row < ROWS; row += STEP) {
            const bool there = first + row < rows;
            copy_async_16(tile_of::template below<STEP>(tile + place, row),
                          from + (there ? row * stride : -(first * stride)), there ? 16 : 0);
        }
    }
    __device__ void advance(int rows = ROWS) {
        from += rows * stride;
    }
};

template <typename T> __device__ inline uint32_t pack(float low, float high);
template <> __device__ inline uint32_t pack<__half>(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return *(const uint32_t *)&pair;
}
template <> __device__ inline uint32_t pack<__nv_bfloat16>(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *(const uint32_t *)&pair;
}

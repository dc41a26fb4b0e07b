// How tiles of a matrix get to shared memory: by cp.async, 16 bytes at a time.
//
// A tile is kept in rows of 128 bytes: the steps of one row of op(A) or one column of op(B), or
// neighbours of one step. The 16-byte chunks of a row are permuted by the row's number, so that
// those of a fragment are in different banks.
#pragma once

#include "gemm.cuh"

enum { ROW_BYTES = 128 };

// Chunk i of row r of a tile is at i ^ turn_of(r). ldmatrix reads a chunk of eight rows at once;
// words across the steps are read from two chunks of four rows.
template <typename T, bool BY_STEP> __device__ inline int turn_of(int r) {
    return sizeof(T) == 4 && !BY_STEP ? r % 4 * 2 : r % 8;
}

// A thread's chunks of a tile of ROWS rows of shared memory, APART rows apart. BY_STEP: a row is
// the STEPS steps of one row of op(matrix); else it is one step of STEPS of them, and STEPS such
// rows are a slab.
template <typename T, bool BY_STEP, int ROWS, int THREADS> struct carrier {
    enum {
        STEPS = ROW_BYTES / sizeof(T),
        CHUNK = 16 / sizeof(T),
        APART = THREADS / 8,
        PASSES = ROWS / APART
    };
    static_assert(STEPS % APART == 0 && APART % 8 == 0 && ROWS % APART == 0, "see below");
    const T *at; // the thread's first chunk of the tile at step 0
    long long leading;
    int left;       // rows of op(matrix) from the chunk's first on
    bool is_inside; // all rows of the tile are rows of op(matrix)
    int own_step;   // of the thread's first chunk, in the tile
    uint32_t place; // in a stage; all rows of a thread have the same r % 8

    __device__ carrier(const T *matrix, long long leading, int first, int count, bool)
        : leading(leading) {
        const int r = threadIdx.x / 8, chunk = threadIdx.x % 8;
        const int other = first + (BY_STEP ? r : chunk * CHUNK);
        own_step = BY_STEP ? chunk * CHUNK : r;
        left = count - other;
        is_inside = first + ROWS <= count;
        at = matrix + (BY_STEP ? other * leading + own_step : own_step * leading + other);
        place = r * ROW_BYTES + (chunk ^ turn_of<T, BY_STEP>(r)) * 16;
    }
    // Starts the copies of the tile at `step` to a stage. What is outside the matrix becomes 0.
    __device__ void load(uint32_t stage, int step, int steps) const {
        const T *source = at + (BY_STEP ? step : step * leading);
        if (is_inside && step + STEPS <= steps) {
            load_whole(stage + place, source);
        } else {
            load_some(stage + place, source, steps - step - own_step);
        }
    }

private:
    // No tests, and only a stride to add: the instructions of load_some for each chunk would keep
    // the tensor cores waiting.
    __device__ void load_whole(uint32_t to, const T *source) const {
        constexpr int DOWN = BY_STEP ? ROWS : STEPS, SLABS = ROWS / DOWN;
#pragma unroll
        for (int r = 0; r < DOWN; r += APART) {
#pragma unroll
            for (int i = 0; i < SLABS; i++) {
                copy_async_16(to + (i * DOWN + r) * ROW_BYTES, source + i * DOWN, 16);
            }
            source += APART * leading;
        }
    }
    // Not unrolled: that would make the pipeline around it a tenth slower.
    __device__ void load_some(uint32_t to, const T *source, int steps_left) const {
#pragma unroll 1
        for (int pass = 0; pass < PASSES; pass++) {
            const int r = pass * APART, down = BY_STEP ? r : r % STEPS, slab = r - down;
            const int inside =
                BY_STEP ? (r < left ? steps_left : 0) : (down < steps_left ? left - slab : 0);
            copy_async_16(to + r * ROW_BYTES, source + down * leading + slab,
                          max(0, min(inside, (int)CHUNK)) * (int)sizeof(T));
        }
    }
};

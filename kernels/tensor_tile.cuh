// A tile of 64 x 64 of a product by mma.sync, out of matrices of any alignment: what step 5 of gemm
// and step 2 of grouped share.
//
// A block of four warps owns the tile, each warp 32 x 32: fragments as in tile.cuh. The factors are
// in shared memory with k contiguous, as fragments need them, so that two neighbours of 16 bits, or
// one number of 32, are one word; rows are four words longer than needed, so that the eight rows
// and four words of a fragment are in 32 banks.
// Requires: blockDim = (128, 1, 1).
#pragma once

#include "tile.cuh"

enum { TILE = 64, THREADS = 128, WORDS = 16, PITCH = WORDS + 4, SUMS = TILE + 8 };

// How a type is stored in a word of shared memory, and how many elements a word holds.
template <typename T> struct element {
    enum { PER_WORD = 2 };
    typedef T stored;
    static __device__ T zero() { return from_float<T>(0.0f); }
    static __device__ T take(T x) { return x; }
};
template <> struct element<float> {
    enum { PER_WORD = 1 };
    typedef uint32_t stored;
    static __device__ uint32_t zero() { return 0; }
    static __device__ uint32_t take(float x) { return to_tf32(x); }
};

// The factors of a step, then the sums.
union tensor_tile {
    uint32_t factors[2][TILE][PITCH];
    float sums[TILE][SUMS];
};

// tile[i][l] = op(matrix)(first + i, step + l), 0 from row `end` and from `steps` on; by_step says
// that steps are contiguous in memory, so that neighbours in a warp read neighbours.
template <typename T>
__device__ inline void load_tile(uint32_t (&tile)[TILE][PITCH], const T *matrix, long long leading,
                                 int first, int end, int step, int steps, bool by_step) {
    enum { STEP = WORDS * element<T>::PER_WORD };
#pragma unroll 4
    for (int i = threadIdx.x; i < TILE * STEP; i += THREADS) {
        const int l = by_step ? i % STEP : i / TILE, other = by_step ? i / STEP : i % TILE;
        const bool inside = first + other < end && step + l < steps;
        const long long at =
            by_step ? (first + other) * leading + step + l : (step + l) * leading + first + other;
        ((typename element<T>::stored *)tile[other])[l] =
            inside ? element<T>::take(matrix[at]) : element<T>::zero();
    }
}

// Where the calling warp's 32 x 32 begin, and the calling lane's place in a fragment.
struct warp_place {
    int row, column, g, t;
    __device__ warp_place()
        : row(threadIdx.x / WARP / 2 * 32), column(threadIdx.x / WARP % 2 * 32),
          g(threadIdx.x % WARP / 4), t(threadIdx.x % 4) {}
};

// Adds the product of the factors to the warp's sums. T: what is multiplied, float as tf32.
template <typename T>
__device__ inline void multiply_tiles(float (&sum)[2][4][4], const uint32_t (&a)[TILE][PITCH],
                                      const uint32_t (&b)[TILE][PITCH]) {
    const warp_place place;
#pragma unroll
    for (int word = 0; word < WORDS; word += 8) { // the words of one mma
        uint32_t part[2][4];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int r = place.row + 16 * i + place.g;
            part[i][0] = a[r][word + place.t];
            part[i][1] = a[r + 8][word + place.t];
            part[i][2] = a[r][word + place.t + 4];
            part[i][3] = a[r + 8][word + place.t + 4];
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const uint32_t *at = &b[place.column + 8 * j + place.g][word + place.t];
#pragma unroll
            for (int i = 0; i < 2; i++) mma_32_bytes<T>(sum[i][j], part[i], at[0], at[4]);
        }
    }
}

// Puts the warp's sums at their places in the tile.
__device__ inline void store_sums(float (&sums)[TILE][SUMS], const float (&sum)[2][4][4]) {
    const warp_place place;
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float *at = &sums[place.row + 16 * i + place.g][place.column + 8 * j + 2 * place.t];
            *(float2 *)at = make_float2(sum[i][j][0], sum[i][j][1]);
            *(float2 *)(at + 8 * SUMS) = make_float2(sum[i][j][2], sum[i][j][3]);
        }
    }
}

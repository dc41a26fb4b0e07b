// What the kernels of rows share: pieces of 16 bytes, and reductions over the threads of a row.
//
// The idea: a row is cut at addresses that are multiples of 16, wherever it begins. So piece 0 may
// begin before the row and the last piece may end after it. A piece inside the row moves as one,
// the others element by element, and rows of any width and alignment take the same code.
#pragma once

#include "../tile.cuh"
#include "row_arguments.h"

#include <limits>

constexpr float INFINITE = std::numeric_limits<float>::infinity();

template <typename T> constexpr int PIECE = 16 / (int)sizeof(T);

// The elements by which piece 0 begins before the row.
template <typename T> __device__ inline int elements_before(const T *row) {
    return (int)((uintptr_t)row % 16 / sizeof(T));
}

// An element's bits.
template <int BYTES> struct bits_of_bytes;
template <> struct bits_of_bytes<2> { using type = uint16_t; };
template <> struct bits_of_bytes<4> { using type = uint32_t; };
template <typename T> using bits_of = typename bits_of_bytes<sizeof(T)>::type;

template <typename T> __device__ inline T element_of(bits_of<T> bits);
template <> __device__ inline float element_of<float>(uint32_t bits) {
    return __uint_as_float(bits);
}
template <> __device__ inline __half element_of<__half>(uint16_t bits) {
    return __ushort_as_half(bits);
}
template <> __device__ inline __nv_bfloat16 element_of<__nv_bfloat16>(uint16_t bits) {
    return __ushort_as_bfloat16(bits);
}
__device__ inline uint32_t bits_of_element(float x) {
    return __float_as_uint(x);
}
__device__ inline uint16_t bits_of_element(__half x) {
    return __half_as_ushort(x);
}
__device__ inline uint16_t bits_of_element(__nv_bfloat16 x) {
    return __bfloat16_as_ushort(x);
}

template <typename T> union piece_bytes {
    uint4 whole;
    uint64_t words[2];
    bits_of<T> elements[PIECE<T>];
    __device__ piece_bytes() {}
};

// Whether the piece that begins at column `first` can move as one.
template <typename T, typename COLUMN>
__device__ inline bool is_inside(const T *row, COLUMN first, COLUMN columns) {
    return first >= 0 && first + PIECE<T> <= columns && (uintptr_t)(row + first) % 16 == 0;
}

// Loads a piece that can move as one. Any other piece becomes 0, and load_end fills it in. load_end
// needs branches; issuing the loads of all pieces before them keeps all loads in flight.
template <typename T, typename COLUMN>
__device__ inline void load_inside(piece_bytes<T> &bytes, const T *row, COLUMN first,
                                   COLUMN columns) {
    bytes.whole = is_inside(row, first, columns) ? *(const uint4 *)(row + first) : uint4{};
}

// Loads the elements that a piece which cannot move as one has in the row, and reads nothing
// outside the row. The loop is not unrolled: such pieces are few, and their code would be most of a
// kernel.
template <typename T, typename COLUMN>
__device__ inline void load_end(piece_bytes<T> &bytes, const T *row, COLUMN first, COLUMN columns) {
    if (is_inside(row, first, columns) || first + PIECE<T> <= 0 || first >= columns) return;
#pragma unroll 1
    for (int i = 0; i < PIECE<T>; i++) {
        if (first + i < 0 || first + i >= columns) continue;
        const uint64_t element = ((const bits_of<T> *)row)[first + i];
        const int shift = i * (int)sizeof(T) * 8;
        if (shift < 64) bytes.words[0] |= element << shift;
        if (shift >= 64) bytes.words[1] |= element << (shift - 64);
    }
}

template <typename T>
__device__ inline void unpack(float (&x)[PIECE<T>], const piece_bytes<T> &bytes) {
#pragma unroll
    for (int i = 0; i < PIECE<T>; i++) x[i] = to_float(element_of<T>(bytes.elements[i]));
}

// Loads the piece that begins at column `first`, which may be negative. What is outside the row is
// not read and becomes 0.
template <typename T, typename COLUMN>
__device__ inline void load_piece(float (&x)[PIECE<T>], const T *row, COLUMN first,
                                  COLUMN columns) {
    piece_bytes<T> bytes;
    load_inside(bytes, row, first, columns);
    load_end(bytes, row, first, columns);
    unpack<T>(x, bytes);
}

// Loads the pieces of a thread: every blockDim.x-th piece of the row, from column `first` on.
template <typename T, int PIECES>
__device__ inline void load_row(float (&x)[PIECES][PIECE<T>], const T *row, int first,
                                int columns) {
    piece_bytes<T> bytes[PIECES];
    const int step = (int)blockDim.x * PIECE<T>;
#pragma unroll
    for (int p = 0; p < PIECES; p++) load_inside(bytes[p], row, first + p * step, columns);
#pragma unroll
    for (int p = 0; p < PIECES; p++) load_end(bytes[p], row, first + p * step, columns);
#pragma unroll
    for (int p = 0; p < PIECES; p++) unpack<T>(x[p], bytes[p]);
}

template <typename T, typename COLUMN>
__device__ inline void store_piece(const float (&x)[PIECE<T>], T *row, COLUMN first,
                                   COLUMN columns) {
    piece_bytes<T> bytes;
#pragma unroll
    for (int i = 0; i < PIECE<T>; i++) bytes.elements[i] = bits_of_element(from_float<T>(x[i]));
    if (is_inside(row, first, columns)) {
        *(uint4 *)(row + first) = bytes.whole;
    } else {
#pragma unroll 1
        for (int i = 0; i < PIECE<T>; i++) {
            if (first + i < 0 || first + i >= columns) continue;
            const int shift = i * (int)sizeof(T) * 8;
            const uint64_t word = shift < 64 ? bytes.words[0] : bytes.words[1];
            ((bits_of<T> *)row)[first + i] = (bits_of<T>)(word >> shift % 64);
        }
    }
}

// Reduces over the threads of a row; all of them get the result. blockDim.x threads own a row. If
// that is one warp, there is no barrier, and a block may have several rows.
template <typename COMBINE>
__device__ inline float row_reduce(float x, float neutral, COMBINE combine) {
    __shared__ float parts[WARP];
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        x = combine(x, __shfl_xor_sync(~0u, x, lanes));
    }
    if (blockDim.x == WARP) return x;
    const int warps = blockDim.x / WARP, warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    __syncthreads(); // all have read the parts of the previous reduction
    if (lane == 0) parts[warp] = x;
    __syncthreads();
    x = lane < warps ? parts[lane] : neutral;
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        x = combine(x, __shfl_xor_sync(~0u, x, lanes));
    }
    return x;
}
__device__ inline float row_sum(float x) {
    return row_reduce(x, 0, [](float a, float b) { return a + b; });
}
__device__ inline float row_max(float x) {
    return row_reduce(x, -INFINITE, [](float a, float b) { return fmaxf(a, b); });
}

// The row of a thread in a grid of blocks of blockDim.y rows.
__device__ inline long long row_of_thread() {
    return (long long)blockIdx.x * blockDim.y + threadIdx.y;
}

// gemm, step 11: brings the rows of a matrix to multiples of 16 bytes, or its columns to rows, for
// steps 10 and 13, or splits its floats into parts, for step 14.
//
// The idea: to read 33 MB once and write them costs little beside a product that is several times
// as fast for it.
// Owner: a thread owns 16 bytes of neighbouring elements of a row of the copy at a time; of a
// transpose, four elements of a tile of 32 x 32, which is turned in shared memory.
// Bound by: memory.
// Requires: blockDim = (256, 1, 1), gridDim.y = matrices; the copy's rows at multiples of 16 bytes.
#include <cuda_bf16.h>
#include <stdint.h>

#include "gemm_pack_arguments.h"

enum { THREADS = 256, TURN = 32, DOWN = THREADS / TURN };

template <typename T> __device__ inline void pack(const gemm_pack_arguments &x) {
    enum { PIECE = 16 / sizeof(T) };
    const T *from = (const T *)x.from + blockIdx.y * x.from_stride;
    T *to = (T *)x.to + blockIdx.y * x.to_stride;
    const long long pieces = x.to_leading / PIECE, all = pieces * x.rows;
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < all; i += gridDim.x * 256LL) {
        const long long row = i / pieces, column = i % pieces * PIECE;
        const T *at = from + row * x.from_leading + column;
        union {
            T elements[PIECE];
            uint4 whole;
        } piece;
#pragma unroll
        for (int j = 0; j < PIECE; j++) piece.elements[j] = column + j < x.columns ? at[j] : 0;
        *(uint4 *)(to + row * x.to_leading + column) = piece.whole;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) gemm_pack_16(gemm_pack_arguments x) {
    pack<uint16_t>(x);
}

extern "C" __global__ void __launch_bounds__(THREADS) gemm_pack_32(gemm_pack_arguments x) {
    pack<uint32_t>(x);
}

// A float as a sum of three numbers of bf16, each the nearest to what is left: exactly, but for
// multiples of less than 2^-133. Third parts lie first, then second parts, then first ones.
extern "C" __global__ void __launch_bounds__(THREADS) gemm_pack_parts(gemm_pack_arguments x) {
    enum { PIECE = 8, PARTS = 3 };
    const float *from = (const float *)x.from + blockIdx.y * x.from_stride;
    __nv_bfloat16 *to = (__nv_bfloat16 *)x.to + blockIdx.y * x.to_stride;
    const long long pieces = x.to_leading / PIECE, all = pieces * x.rows;
    const bool is_aligned = (uintptr_t)from % 16 == 0 && x.from_leading % 4 == 0;
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < all; i += gridDim.x * 256LL) {
        const long long row = i / pieces, column = i % pieces * PIECE;
        const float *at = from + row * x.from_leading + column;
        union {
            float values[PIECE];
            float4 quarters[PIECE / 4];
        } piece;
        if (is_aligned && column + PIECE <= x.columns) {
            for (int j = 0; j < PIECE / 4; j++) piece.quarters[j] = ((const float4 *)at)[j];
        } else {
#pragma unroll
            for (int j = 0; j < PIECE; j++) piece.values[j] = column + j < x.columns ? at[j] : 0;
        }
#pragma unroll
        for (int part = PARTS - 1; part >= 0; part--) {
            union {
                __nv_bfloat16 elements[PIECE];
                uint4 whole;
            } parts;
#pragma unroll
            for (int j = 0; j < PIECE; j++) {
                parts.elements[j] = __float2bfloat16_rn(piece.values[j]);
                piece.values[j] -= __bfloat162float(parts.elements[j]);
            }
            *(uint4 *)(to + part * gridDim.y * x.to_stride + row * x.to_leading + column) =
                parts.whole;
        }
    }
}

// Rows and columns are those of the copy, whose rows are columns of what it is made of.
extern "C" __global__ void __launch_bounds__(THREADS) gemm_pack_turned_32(gemm_pack_arguments x) {
    __shared__ uint32_t tile[TURN][TURN + 1];
    const uint32_t *from = (const uint32_t *)x.from + blockIdx.y * x.from_stride;
    uint32_t *to = (uint32_t *)x.to + blockIdx.y * x.to_stride;
    const int across = threadIdx.x % TURN, down = threadIdx.x / TURN;
    const long long wide = (x.columns + TURN - 1) / TURN, high = (x.rows + TURN - 1) / TURN;
#pragma unroll 1
    for (long long i = blockIdx.x; i < wide * high; i += gridDim.x) {
        const long long row = i % high * TURN, column = i / high * TURN;
#pragma unroll
        for (int j = down; j < TURN; j += DOWN) {
            if (column + j < x.columns && row + across < x.rows) {
                tile[j][across] = from[(column + j) * x.from_leading + row + across];
            }
        }
        __syncthreads();
#pragma unroll
        for (int j = down; j < TURN; j += DOWN) {
            if (row + j < x.rows && column + across < x.columns) {
                to[(row + j) * x.to_leading + column + across] = tile[across][j];
            }
        }
        __syncthreads();
    }
}

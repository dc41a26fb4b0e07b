// gemm, step 11: brings the rows of a matrix to multiples of 16 bytes, for step 10.
//
// The idea: to read 33 MB once and write them costs little beside a product that is several times
// as fast for it.
// Owner: a thread owns 8 neighbouring elements of 16 bits of a row of the copy at a time.
// Bound by: memory.
// Requires: blockDim = (256, 1, 1), gridDim.y = matrices; the copy's rows at multiples of 16 bytes.
#include <stdint.h>

#include "gemm_pack_arguments.h"

enum { PIECE = 8 };

extern "C" __global__ void __launch_bounds__(256) gemm_pack_16(gemm_pack_arguments x) {
    const uint16_t *from = (const uint16_t *)x.from + blockIdx.y * x.from_stride;
    uint16_t *to = (uint16_t *)x.to + blockIdx.y * x.to_stride;
    const long long pieces = x.to_leading / PIECE, all = pieces * x.rows;
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < all; i += gridDim.x * 256LL) {
        const long long row = i / pieces, column = i % pieces * PIECE;
        const uint16_t *at = from + row * x.from_leading + column;
        union {
            uint16_t elements[PIECE];
            uint4 whole;
        } piece;
#pragma unroll
        for (int j = 0; j < PIECE; j++) piece.elements[j] = column + j < x.columns ? at[j] : 0;
        *(uint4 *)(to + row * x.to_leading + column) = piece.whole;
    }
}

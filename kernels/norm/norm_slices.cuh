// What steps 9 and 10 of norm share: weights in registers, and a piece of results.
#pragma once

#include "../row/row_slices.cuh"
#include "norm_whole.cuh"

#if __CUDA_ARCH__ >= 900
// The weights of a thread's pieces, packed, for all rows.
template <int PIECES, typename SLICES>
__device__ inline void norm_weights_of_slice(uint4 (&weight)[PIECES], const SLICES &slices,
                                             const norm_arguments &x) {
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (x.weight == nullptr || !slices.has(p)) continue;
        weight[p] = ((const uint4 *)x.weight)[slices.first + slices.piece(p)];
    }
}

// The results of a piece of a row. The bias is read where it is needed.
template <typename T>
__device__ inline void norm_piece(float (&y)[PIECE<T>], uint4 &bits, uint4 &weight, int piece,
                                  float mean, float share, const norm_arguments &x) {
    float z[PIECE<T>];
    keep_packed(bits);
    unpack_piece<T>(y, bits);
    if (x.centred) {
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) y[i] -= mean;
    }
    if (x.weight != nullptr) {
        keep_packed(weight);
        unpack_piece<T>(z, weight);
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) y[i] *= share * z[i];
    } else {
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) y[i] *= share;
    }
    if (x.bias == nullptr) return;
    unpack_piece<T>(z, ((const uint4 *)x.bias)[piece]);
#pragma unroll
    for (int i = 0; i < PIECE<T>; i++) y[i] += z[i];
}
#endif

// What the kernels of norm over whole rows share: from a thread's pieces to its results.
#pragma once

#include "norm.cuh"
#include "../row/row_whole.cuh"

// Weight and bias in place. They are in the L1 cache after the first row. No registers are left to
// load them earlier than they are used.
struct norm_parameters_in_place {
    const norm_arguments &x;
    __device__ inline void wait() const {}
    __device__ inline uint4 weight(int p) const {
        return ((const uint4 *)x.weight)[piece_of_thread(p)];
    }
    __device__ inline uint4 bias(int p) const {
        return ((const uint4 *)x.bias)[piece_of_thread(p)];
    }
};

// count: the pieces of the block, of which a reducer adds those of the row.
template <typename T, int PIECES, typename REDUCER, typename PARAMETERS>
__device__ inline void
norm_of_pieces(float (&values)[PIECES][PIECE<T>], const uint4 (&bits)[PIECES], int count,
               const norm_arguments &x, REDUCER &reducer, const PARAMETERS &parameters) {
    float square = 0;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        unpack_piece<T>(values[p], bits[p]);
        // Converted here and not at each use: ptxas would keep both forms.
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) asm volatile("" : "+f"(values[p][i]));
    }
    if (x.centred) {
        float mean = 0;
#pragma unroll
        for (int i = 0; i < PIECES * PIECE<T>; i++) mean += values[i / PIECE<T>][i % PIECE<T>];
        mean = reducer.sum(mean) / (float)x.columns;
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            if (piece_of_thread(p) >= count) continue; // stays 0
#pragma unroll
            for (int i = 0; i < PIECE<T>; i++) values[p][i] -= mean;
        }
    }
#pragma unroll
    for (int i = 0; i < PIECES * PIECE<T>; i++) {
        const float value = values[i / PIECE<T>][i % PIECE<T>];
        square = fmaf(value, value, square);
    }
    const float share = norm_share(reducer.sum(square), x);
    parameters.wait();
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        float y[PIECE<T>];
        if (piece_of_thread(p) >= count) continue; // is not stored
        if (x.weight != nullptr) {
            unpack_piece<T>(y, parameters.weight(p));
#pragma unroll
            for (int i = 0; i < PIECE<T>; i++) values[p][i] *= share * y[i];
        } else {
#pragma unroll
            for (int i = 0; i < PIECE<T>; i++) values[p][i] *= share;
        }
        if (x.bias == nullptr) continue;
        unpack_piece<T>(y, parameters.bias(p));
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) values[p][i] += y[i];
    }
}

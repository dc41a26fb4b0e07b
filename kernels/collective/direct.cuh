// The sums and copies of the direct way, for steps 1, 6 and 7.
#pragma once

#include "collective.cuh"

typedef unsigned long long index_type;

template <typename T>
static __device__ void sum_pieces(const collective_direct &x, index_type thread,
                                  index_type threads, index_type pieces) {
    enum { PIECE = 16 / sizeof(T) };
    typedef piece<T, 16, uint4> wide;
    for (index_type p = thread; p < pieces; p += threads) {
        wide in[COLLECTIVE_RANKS], out;
#pragma unroll
        for (int s = 0; s < COLLECTIVE_RANKS; s++) {
            if (s < x.source_count) in[s].word = ((const uint4 *)x.sources[s])[p];
        }
        out.word = in[0].word;
        if (x.source_count > 1) {
#pragma unroll
            for (int i = 0; i < PIECE; i++) {
                float sum = number(in[0].elements[i]);
#pragma unroll
                for (int s = 1; s < COLLECTIVE_RANKS; s++) {
                    if (s < x.source_count) sum += number(in[s].elements[i]);
                }
                round_to(out.elements[i], sum);
            }
        }
#pragma unroll
        for (int t = 0; t < COLLECTIVE_RANKS; t++) {
            if (t < x.target_count) ((uint4 *)x.targets[t])[p] = out.word;
        }
    }
}

template <typename T> static __device__ void direct(const collective_direct &x) {
    const index_type thread = blockIdx.x * (index_type)blockDim.x + threadIdx.x;
    const index_type threads = gridDim.x * (index_type)blockDim.x;
    const index_type pieces = x.is_wide != 0 ? x.count / (16 / sizeof(T)) : 0;
    sum_pieces<T>(x, thread, threads, pieces);
    for (index_type i = pieces * (16 / sizeof(T)) + thread; i < x.count; i += threads) {
        T out = ((const T *)x.sources[0])[i];
        if (x.source_count > 1) {
            float sum = number(out);
            for (int s = 1; s < x.source_count; s++) sum += number(((const T *)x.sources[s])[i]);
            round_to(out, sum);
        }
        for (int t = 0; t < x.target_count; t++) ((T *)x.targets[t])[i] = out;
    }
}

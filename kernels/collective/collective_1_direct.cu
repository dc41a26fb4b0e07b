// direct: targets[j][i] = sources[0][i] + sources[1][i] + ..., rounded once, for all targets j.
// With one source it copies bits. Sources and targets are memory of any devices that reach each
// other.
//
// The idea: the rank that owns a chunk loads it from all ranks and stores the sum to all, so every
// byte crosses a link once in each direction. Sums are in the order of the sources, whatever the
// grid is. All loads of a thread are in flight at once, since a link's latency is a microsecond.
// Owner: thread t of the grid owns pieces t, t + threads, ... A target may be a source.
// Bound by: the links. Requires: any grid and block; addresses aligned to an element; without
// is_wide it goes element by element.
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

extern "C" __global__ void direct_f32(collective_direct x) { direct<float>(x); }
extern "C" __global__ void direct_f16(collective_direct x) { direct<__half>(x); }
extern "C" __global__ void direct_bf16(collective_direct x) { direct<__nv_bfloat16>(x); }

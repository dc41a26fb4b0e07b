// columns: every rank has some columns of a matrix, and all get all of them.
//
// columns_direct stores a rank's own to the matrices of all ranks, which other kernels must neither
// read nor write meanwhile. Owner: thread t of the grid owns pieces t, t + threads, ... Bound by:
// the links. Any grid and block; is_wide where addresses, strides and columns are multiples of 16.
//
// columns_flags exchanges them with the flags of collective_2_flags, in one launch per rank, which
// run at once; each writes its own matrix alone. The number of the call is that of the argument
// plus a word in memory, so that a graph that was captured once can be launched again: the word
// moves on.
// Owner: thread t owns line t of the launch. Bound by: the latency of a link. Requires: at least
// `count` threads; addresses, strides and columns of multiples of 8.
#include "columns.cuh"

template <typename WORD>
static __device__ void store_columns(const collective_columns &x, index_type thread,
                                     index_type threads) {
    for (index_type i = thread; i < x.count; i += threads) {
        const index_type row = (x.first + i) / x.row, at = (x.first + i) % x.row;
        const WORD word = ((const WORD *)(x.in + row * x.in_stride))[at];
#pragma unroll
        for (int r = 0; r < COLLECTIVE_RANKS; r++) {
            if (r < x.ranks) ((WORD *)(x.out[r] + row * x.out_stride))[at] = word;
        }
    }
}

extern "C" __global__ void columns_direct(collective_columns x) {
    const index_type thread = blockIdx.x * (index_type)blockDim.x + threadIdx.x;
    const index_type threads = gridDim.x * (index_type)blockDim.x;
    if (x.is_wide != 0) {
        store_columns<uint4>(x, thread, threads);
    } else {
        store_columns<unsigned long long>(x, thread, threads);
    }
}

extern "C" __global__ void columns_flags(collective_columns x) { exchange_columns(x); }

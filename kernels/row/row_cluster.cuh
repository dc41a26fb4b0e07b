// What kernels of whole rows share that spread a row over the blocks of a cluster, for compute
// capability 9.0: where a block's pieces are, and reductions over all blocks by each other's shared
// memory.
#pragma once

#include "../hopper.cuh"
#include "row_whole.cuh"

#if __CUDA_ARCH__ >= 900
// The pieces of a row that a block owns: neighbours.
struct cluster_pieces {
    long long row;
    int first, count;

    template <int BLOCKS> static __device__ inline cluster_pieces of(int pieces) {
        const int each = ceil_div(pieces, BLOCKS), first = (int)cluster_rank() * each;
        return {blockIdx.x / BLOCKS, first, max(0, min(pieces - first, each))};
    }
};

// Gives each thread two numbers of all blocks, in their order. Exchanges alternate between two
// places: when a block writes a place again, all have passed the barrier of the exchange between,
// and so have read it. A block may not end before all have read its last: cluster_sync.
template <int BLOCKS> struct cluster_exchange {
    float4 *places; // two, in shared memory
    int turn;

    __device__ inline void of(float2 (&all)[BLOCKS], float2 mine) {
        if (threadIdx.x == 0) places[turn] = make_float4(mine.x, mine.y, 0, 0);
        cluster_sync();
#pragma unroll
        for (int i = 0; i < BLOCKS; i++) {
            const float4 numbers = load_of_block(&places[turn].x, i);
            all[i] = make_float2(numbers.x, numbers.y);
        }
        turn ^= 1;
    }
};

// As row_reducer, over the blocks of a cluster. BETWEEN: how they exchange their numbers.
template <int BLOCKS, typename BETWEEN = cluster_exchange<BLOCKS>> struct cluster_reducer {
    row_reducer inside;
    BETWEEN between;

    __device__ inline float sum(float x) {
        float2 all[BLOCKS];
        between.of(all, {inside.sum(x), 0});
        x = 0;
#pragma unroll
        for (int i = 0; i < BLOCKS; i++) x += all[i].x;
        return x;
    }
};
#endif

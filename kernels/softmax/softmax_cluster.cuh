// What steps 6 and 7 of softmax share: a row by the blocks of a cluster, as softmax_6_cluster.cu
// says.
#pragma once

#include "../row/row_cluster.cuh"
#include "softmax_whole.cuh"

// One defect per kernel, for softmax_planted.cu.
enum cluster_defect {
    CLUSTER_RIGHT,
    CLUSTER_LOST_BLOCK, // the sum of the last block is not added
    CLUSTER_OWN_BASE,   // blocks do not bring their exponentials to the row's largest element
    CLUSTER_OWN_LARGEST // the row's largest element is taken to be that of the first block
};

#if __CUDA_ARCH__ >= 900
// The results of a thread's pieces. `taken` is called once all threads of the block have `bits`.
template <typename T, int BLOCKS, cluster_defect DEFECT = CLUSTER_RIGHT, int PIECES,
          typename EXCHANGE, typename TAKEN>
__device__ inline void
softmax_of_share(float (&values)[PIECES][PIECE<T>], const uint4 (&bits)[PIECES], float scale,
                 row_reducer &reducer, EXCHANGE &exchange, const TAKEN &taken) {
    float largest = -INFINITE, sum = 0;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        unpack_piece<T>(values[p], bits[p]);
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) {
            values[p][i] *= scale;
            largest = fmaxf(largest, values[p][i]);
        }
    }
    largest = reducer.max(largest);
    taken();
    const float base = largest == -INFINITE ? 0 : largest;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) {
            values[p][i] = exp_of(values[p][i] - base, T());
            sum += values[p][i];
        }
    }
    float2 all[BLOCKS];
    exchange.of(all, {largest, reducer.sum(sum)});
    float row_largest = -INFINITE, row_sum = 0;
#pragma unroll
    for (int i = 0; i < (DEFECT == CLUSTER_OWN_LARGEST ? 1 : BLOCKS); i++) {
        row_largest = fmaxf(row_largest, all[i].x);
    }
    const float row_base = row_largest == -INFINITE ? 0 : row_largest;
#pragma unroll
    for (int i = 0; i < BLOCKS - (DEFECT == CLUSTER_LOST_BLOCK ? 1 : 0); i++) {
        row_sum = fmaf(all[i].y, expf(all[i].x - row_base), row_sum);
    }
    const float own_share = DEFECT == CLUSTER_OWN_BASE ? 1 : expf(largest - row_base);
    // Not one factor: of bfloat16 row_sum is times 2^64, and what is left of own_share after it may
    // be subnormal, with few digits, where the results are not.
    const float share = row_sum == 0 ? 0 : 1 / row_sum;
#pragma unroll
    for (int i = 0; i < PIECES * PIECE<T>; i++) {
        values[i / PIECE<T>][i % PIECE<T>] *= own_share;
        values[i / PIECE<T>][i % PIECE<T>] *= share;
    }
}

template <typename T, int PIECES, int BLOCKS, cluster_defect DEFECT = CLUSTER_RIGHT>
__device__ inline void softmax_cluster(const softmax_arguments &x) {
    __shared__ float parts[2][WARP];
    __shared__ float4 places[2];
    const cluster_pieces own = cluster_pieces::of<BLOCKS>(whole_pieces<T>(x.columns));
    const long long in = own.row * x.in_stride + own.first * PIECE<T>;
    const long long out = own.row * x.out_stride + own.first * PIECE<T>;
    row_reducer reducer = {parts, 0};
    cluster_exchange<BLOCKS> exchange = {places, 0};
    uint4 bits[PIECES];
    float values[PIECES][PIECE<T>];
    load_whole<T>(bits, (const T *)x.in + in, own.count, softmax_fill<T>(x));
    softmax_of_share<T, BLOCKS, DEFECT>(values, bits, x.scale, reducer, exchange, [] {});
    store_whole<T>(values, (T *)x.out + out, own.count);
    cluster_sync(); // others may still read this block's numbers
}
#endif

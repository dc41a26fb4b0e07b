// What step 9 of the quant product is made of: few columns by wgmma and TMA, with split-K
// (compute_90a).
//
// The idea: 4096 rows are 32 tiles, which leave 100 of 132 multiprocessors idle. Therefore
// blockIdx.z counts shares of k, in whole chunks; all blocks run at once. A block multiplies its
// share as step 8 does, and each of its warpgroups writes its sums to the workspace. Of the
// warpgroups with the same rows, the one that takes the last ticket adds the sums of all in the
// order of the shares: the same bits, whichever is last. A cluster could add them from the shared
// memory of its blocks, without a workspace. But an H200 does not run 32 clusters of four at once,
// so the last would begin when the first has ended, and the number of shares would not depend on
// the rows. A second kernel could add them too; it would wait for registers, all of which these
// blocks have. Few columns are bound by reads of weights. x has small stages, so most of the shared
// memory is a ring of weights: some 140 KB are on their way to a multiprocessor. Two threads copy,
// so weights wait neither for a stage of x nor for the prologue. A TMA box of x has no more columns
// than x, since TMA fills missing ones more slowly than it copies; threads clear them once. Tiles
// of 256 rows with four warpgroups, so that a scheduler has four warps that make halves and x is
// read half as often, were slower on an H100 for 16 to 256 columns.
// Owner: a block owns a share of a tile of 128 rows and N columns of y. A thread's sums lie beside
// those of its neighbours, 16 bytes each, and the same thread of another block reads them.
// Requires: as quant_product_wgmma.cuh says, but gridDim.z shares of k, none of which is empty;
// above one, tickets for each 64 rows of gridDim.x * gridDim.y tiles, which the prologue sets to 0,
// and after them memory for the sums of all blocks.
#pragma once

#include "quant_product_wgmma.cuh"

#if __CUDA_ARCH__ >= 900
enum {
    MULTIPLIERS = CONSUMERS * WARPGROUP, // threads
    TOGETHER = 1,                        // the named barrier of these
    ALONE = 2                            // and the first of those of one warpgroup
};

// A product by 32 columns, which no other kernel has.
#define SPLIT_SUMS_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define SPLIT_ALL_16 HOPPER_8(sum, 0), HOPPER_8(sum, 8)
HOPPER_PRODUCT(__half, "f16", 32, SPLIT_SUMS_16, SPLIT_ALL_16, "%16", "%17", "%18", "%19", "%20",
               "%21")

// A format, and the slots of its ring.
template <typename Q, int COUNT> struct deep : Q {
    enum { SLOTS = COUNT };
};
using deep_q4_k = deep<chunk_q4_k, 8>;
using deep_q6_k = deep<chunk_q6_k, 5>;
using deep_q8_0 = deep<chunk_q8_0, 4>;

// The chunks of a block.
struct split_share {
    int begin, end;

    __device__ inline explicit split_share(uint32_t k) {
        const int chunks = k / CHUNK, each = (chunks + gridDim.z - 1) / gridDim.z;
        begin = blockIdx.z * each;
        end = min(begin + each, chunks);
    }
};

// The columns of a box of x.
template <int N> __device__ inline uint32_t split_columns(const kn_quant_product_arguments &a) {
    return min(a.columns, (uint32_t)N);
}

template <typename Q, int N>
__device__ inline void split_produce_weights(const kn_quant_product_arguments &a,
                                             wgmma_shared<Q, N> *s,
                                             const tensor_map *weights) {
    const wgmma_tile<N> tile;
    const split_share share(a.k);
    wgmma_ring<Q::SLOTS> ring = {0, 1}; // a new barrier has completed phase 1
#pragma unroll 1
    for (int chunk = share.begin; chunk < share.end; chunk++) {
        uint64_t *full = &s->weights_full[ring.at];
        barrier_wait(&s->weights_empty[ring.at], ring.parity);
        barrier_expect(full, sizeof s->weights[0]);
        load_box(weights, s->weights[ring.at], full, (uint32_t)chunk * Q::APART / 16 * 8, tile.row,
                 0);
        ring.next();
    }
}

template <typename Q, int N>
__device__ inline void split_produce_x(const kn_quant_product_arguments &a,
                                       wgmma_shared<Q, N> *s, const tensor_map *x) {
    const wgmma_tile<N> tile;
    const split_share share(a.k);
    wgmma_ring<wgmma_shared<Q, N>::STAGES> ring = {0, 1};
    // Only x and the tickets come from the prologue, before which all other kernels have ended;
    // multiplied x comes before a ticket is taken.
    wait_for_kernel_in_front();
#pragma unroll 1
    for (int group = share.begin * GROUPS; group < share.end * GROUPS; group++) {
        uint64_t *full = &s->x_full[ring.at];
        barrier_wait(&s->x_empty[ring.at], ring.parity);
        barrier_expect(full, split_columns<N>(a) * BOX_ROW);
        load_box(x, s->x[ring.at], full, group * GROUP, tile.column, 0);
        ring.next();
    }
}

// Clears the columns of all stages that no box has: their products are not stored, but read.
template <typename Q, int N>
__device__ inline void split_clear(const kn_quant_product_arguments &a,
                                   wgmma_shared<Q, N> *s) {
    const uint32_t columns = split_columns<N>(a), pieces = (N - columns) * (BOX_ROW / 16);
#pragma unroll 1
    for (int stage = 0; stage < wgmma_shared<Q, N>::STAGES; stage++) {
        uint4 *rest = (uint4 *)(s->x[stage] + columns * BOX_ROW);
        for (uint32_t i = threadIdx.x - WARPGROUP; i < pieces; i += MULTIPLIERS) {
            rest[i] = {0, 0, 0, 0};
        }
    }
    fence_copies();
    named_barrier(TOGETHER, MULTIPLIERS);
}

// Writes the sums of one of the warpgroups that multiply. If it is the last of its rows, adds up
// those of all shares and returns true.
template <int WARPGROUPS, wgmma_defect DEFECT, int COUNT>
__device__ inline bool split_add(const kn_quant_product_arguments &a, int consumer,
                                 float (&sums)[COUNT]) {
    // As many of its shares at once as a thread has registers for.
    enum { FOURS = COUNT / 4, AT_ONCE = 64 / COUNT };
    __shared__ bool is_last[WARPGROUPS];
    const uint32_t tile = blockIdx.y * gridDim.x + blockIdx.x, rows = tile * WARPGROUPS + consumer;
    const uint32_t thread = threadIdx.x % WARPGROUP;
    uint32_t *tickets = (uint32_t *)a.scales;
    float4 *parts = (float4 *)(tickets + KN_QUANT_SPLIT_TICKETS) +
                    rows * gridDim.z * (FOURS * WARPGROUP) + thread;
    float4 *own = parts + blockIdx.z * (FOURS * WARPGROUP);
#pragma unroll
    for (int i = 0; i < FOURS; i++) {
        own[i * WARPGROUP] = {sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]};
    }
    __threadfence(); // before the ticket: whoever takes a later one sees them
    named_barrier(ALONE + consumer, WARPGROUP);
    if (thread == 0) is_last[consumer] = atomicAdd(tickets + rows, 1) == gridDim.z - 1;
    named_barrier(ALONE + consumer, WARPGROUP); // is_last is there
    if (!is_last[consumer]) return false;
    __threadfence();
#pragma unroll
    for (int i = 0; i < COUNT; i++) sums[i] = 0;
    const uint32_t shares = gridDim.z - (DEFECT == WGMMA_LOST_SHARE ? 1 : 0);
#pragma unroll AT_ONCE
    for (uint32_t share = 0; share < shares; share++) {
#pragma unroll
        for (int i = 0; i < FOURS; i++) {
            const float4 four = __ldcg(parts + (share * FOURS + i) * WARPGROUP);
            sums[4 * i] += four.x, sums[4 * i + 1] += four.y;
            sums[4 * i + 2] += four.z, sums[4 * i + 3] += four.w;
        }
    }
    return true;
}

template <typename Q, int N, wgmma_defect DEFECT = WGMMA_RIGHT>
__device__ inline void split_product(const kn_quant_product_arguments &a, const tensor_map *weights,
                                     const tensor_map *x) {
    wgmma_shared<Q, N> *s = wgmma_begin<Q, N>(weights, x);
    if (threadIdx.x < WARPGROUP) {
        give_registers<40>();
        if (threadIdx.x == 0) split_produce_weights(a, s, weights);
        if (threadIdx.x == WARP) split_produce_x(a, s, x);
    } else {
        take_registers<232>();
        const split_share share(a.k);
        wgmma_consumer<Q, N, DEFECT> consumer(s, threadIdx.x / WARPGROUP - 1, a.k);
        split_clear(a, s);
        consumer.run(share.begin, share.end);
        if (gridDim.z == 1 || split_add<CONSUMERS, DEFECT>(a, consumer.consumer, consumer.sums)) {
            consumer.store(a);
        }
    }
}

// The format, and the columns of a tile.
#define QUANT_SPLIT(name, ...) QUANT_BY_MAPS(name, split_product<__VA_ARGS__>)
#endif

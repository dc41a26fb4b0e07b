// What step 14 of gemm is made of: products of floats by the pipeline of gemm_hopper.cuh.
//
// The idea: step 11 splits each float into three numbers of bf16, whose sum it is. Of the nine
// products of two floats' parts six are made; those that are left out are below 2^-23 of the whole,
// and 2^-26 of it as a rule. What is large, first part by first part, has sums of its own, and so
// has all else, so that little is cut off by the tensor cores; after 64 steps both are added to the
// sum in registers, which rounds to nearest. A sum that is no number is made again from the floats,
// one product after the other: parts of infinities, or of numbers at the end of the range, are
// none.
// Owner and requirements: as gemm_hopper.cuh says, with tiles of 128 columns; maps of three planes
// of parts, the third parts first; x.a and x.b are the floats.
#pragma once

#include "gemm_hopper.cuh"

#if __CUDA_ARCH__ >= 900
enum { PARTS = 3, THIRD = 0, SECOND = 1, FIRST = 2, PARTS_N = 128 };

// The product of a part of A and one of B, in the stages that follow `stage`.
template <bool A_K_MAJOR, bool B_K_MAJOR>
__device__ inline void hopper_part(hopper_shared<PARTS_N> *s, int consumer, uint32_t stage,
                                   int of_a, int of_b, float (&sum)[PARTS_N / 2], bool adds) {
    uint64_t a = factor_of<A_K_MAJOR>(s->stages.a[stage + of_a] + consumer * BOX);
    uint64_t b = factor_of<B_K_MAJOR>(s->stages.b[stage + of_b]);
#pragma unroll
    for (int step = 0; step < BOX_ROW / 32; step++) {
        product<__nv_bfloat16, PARTS_N>::add<A_K_MAJOR, B_K_MAJOR>(sum, a, b, adds || step > 0);
        a += factor_step<A_K_MAJOR>();
        b += factor_step<B_K_MAJOR>();
    }
}

template <int COUNT> __device__ inline void hopper_add(float (&sum)[COUNT], float (&part)[COUNT]) {
    hold(part);
#pragma unroll
    for (int i = 0; i < COUNT; i++) sum[i] += part[i];
}

// The sums of a tile's 64 rows. No product is left running at the end of a turn of the loop: ptxas
// would have each wait for the one in front. The other warpgroup's run then.
template <bool A_K_MAJOR, bool B_K_MAJOR, hopper_defect DEFECT>
__device__ inline void hopper_multiply_parts(hopper_shared<PARTS_N> *s, int consumer, int tiles,
                                             hopper_ring<hopper_shared<PARTS_N>::STAGES> &ring,
                                             float (&sum)[PARTS_N / 2]) {
    static_assert(hopper_shared<PARTS_N>::STAGES % PARTS == 0, "parts do not go round the end");
    float large[PARTS_N / 2], small[PARTS_N / 2];
#pragma unroll
    for (int i = 0; i < PARTS_N / 2; i++) sum[i] = 0;
#pragma unroll 1
    for (int i = 0; i < tiles; i++) {
        const uint32_t stage = ring.stage;
        for (int part = 0; part < PARTS; part++) barrier_wait(&s->full[stage + part], ring.parity);
        wgmma_fence();
        hopper_part<A_K_MAJOR, B_K_MAJOR>(s, consumer, stage, THIRD, FIRST, small, false);
        hopper_part<A_K_MAJOR, B_K_MAJOR>(s, consumer, stage, FIRST, THIRD, small, true);
        hopper_part<A_K_MAJOR, B_K_MAJOR>(s, consumer, stage, SECOND, SECOND, small, true);
        hopper_part<A_K_MAJOR, B_K_MAJOR>(s, consumer, stage, SECOND, FIRST, small, true);
        if (DEFECT != HOPPER_LOST_PART) {
            hopper_part<A_K_MAJOR, B_K_MAJOR>(s, consumer, stage, FIRST, SECOND, small, true);
        }
        wgmma_commit();
        hopper_part<A_K_MAJOR, B_K_MAJOR>(s, consumer, stage, FIRST, FIRST, large, false);
        wgmma_commit();
        wgmma_wait<1>();
        hopper_add(sum, small);
        hopper_release(&s->empty[stage + THIRD]);
        hopper_release(&s->empty[stage + SECOND]);
        wgmma_wait<0>();
        hopper_add(sum, large);
        hopper_release(&s->empty[stage + FIRST]);
        for (int part = 0; part < PARTS; part++) ring.next();
    }
}

// An element of the product, one step after the other.
__device__ __noinline__ float hopper_chain(const gemm_arguments &x, int matrix, int row,
                                           int column) {
    const float *a = (const float *)x.a + matrix * x.batch_a + row * (x.transpose_a ? 1 : x.lda);
    const float *b = (const float *)x.b + matrix * x.batch_b + column * (x.transpose_b ? x.ldb : 1);
    const long long a_step = x.transpose_a ? x.lda : 1, b_step = x.transpose_b ? 1 : x.ldb;
    float sum = 0;
#pragma unroll 1
    for (int l = 0; l < x.k; l++) sum = fmaf(a[l * a_step], b[l * b_step], sum);
    return sum;
}

template <bool A_K_MAJOR, bool B_K_MAJOR, hopper_defect DEFECT>
__device__ inline void hopper_consume_parts(const gemm_arguments &x, const gemm_boxes &boxes,
                                            hopper_shared<PARTS_N> *s, int consumer) {
    const int thread = threadIdx.x % WARPGROUP;
    const int down = consumer * CONSUMER_ROWS + thread / WARP * 16 + thread % WARP / 4;
    hopper_ring<hopper_shared<PARTS_N>::STAGES> ring = {0, 0};
    float sum[PARTS_N / 2];
    hopper_each<__nv_bfloat16, A_K_MAJOR, B_K_MAJOR, PARTS_N>(
        x, boxes, s, [&](const hopper_work &work) {
            hopper_multiply_parts<A_K_MAJOR, B_K_MAJOR, DEFECT>(s, consumer, work.tiles, ring, sum);
#pragma unroll
            for (int i = 0; i < PARTS_N / 2; i++) {
                if (DEFECT == HOPPER_LOST_MEND || isfinite(sum[i])) continue;
                const int row = work.row + down + i / 2 % 2 * 8;
                const int column = work.column + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
                if (row < x.m && column < x.n) {
                    sum[i] = hopper_chain(x, work.matrix, row, column);
                }
            }
            hopper_store_pairs<PARTS_N, 8, false>(x, (float *)x.c + work.matrix * x.batch_c,
                                                  work.row + down, work.column, boxes.c_is_whole,
                                                  sum);
        });
}

template <bool TRANSPOSE_A, bool TRANSPOSE_B, hopper_defect DEFECT = HOPPER_RIGHT>
__device__ inline void gemm_hopper_parts(const gemm_arguments &x, const gemm_boxes &boxes,
                                         const tensor_map *a, const tensor_map *b) {
    hopper_run<PARTS_N, 1, CONSUMERS>(
        a, b,
        [&](hopper_shared<PARTS_N> *s) {
            hopper_produce<__nv_bfloat16, !TRANSPOSE_A, TRANSPOSE_B, PARTS_N, 1, PARTS>(x, boxes, s,
                                                                                        a, b);
        },
        [&](hopper_shared<PARTS_N> *s, int consumer) {
            hopper_consume_parts<!TRANSPOSE_A, TRANSPOSE_B, DEFECT>(x, boxes, s, consumer);
        });
}

#define GEMM_HOPPER_PARTS(name, ...) GEMM_HOPPER_MAPS(name, , gemm_hopper_parts<__VA_ARGS__>)
#endif

// heads and a span in one: a block makes ready what it attends with.
#pragma once

#include "heads.cuh"
#include "paged_span.cuh"
#include "../quantised/formats/rounded.cuh"

// Where the largest score of a single span, and what the merge makes of it, give a NaN or a zero.
__device__ inline float merged_alone(float sum, float largest, float total) {
    const float share = exp2f(largest - fmaxf(-INFINITY, largest));
    return fmaf(share, sum, 0.0f) / fmaf(share, total, 0.0f);
}

// The block's heads to out, as floats or rounded to bytes.
template <int GROUP>
__device__ inline void put_alone(const paged_step_arguments &a, const span_place<GROUP> &p,
                                 span_shared<GROUP> &s) {
    enum { EACH = GROUP * HEAD_MAX / THREADS };
    const paged_arguments &x = a.paged;
    const int all = p.count * x.head_size;
    float mine[EACH];
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        const int i = n * THREADS + (int)threadIdx.x, g = min(i / x.head_size, GROUP - 1);
        if (i < all) {
            mine[n] =
                merged_alone(attended(x, s, g, i - g * x.head_size), s.largest[g], s.total[g]);
        }
    }
    if (!a.rounds) {
        float *out = (float *)x.out + p.row * x.out_stride + (uint64_t)p.first * x.head_size;
#pragma unroll
        for (int n = 0; n < EACH; n++) {
            const int i = n * THREADS + (int)threadIdx.x;
            if (i < all) out[i] = mine[n];
        }
        return;
    }
    float *const row = &s.q[0][0]; // the floats of GROUP heads
    __syncthreads();               // the sums have been read
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        const int i = n * THREADS + (int)threadIdx.x;
        if (i < all) row[i] = mine[n];
    }
    __syncthreads(); // the heads are there
    const uint32_t chunks = (uint32_t)(x.heads * x.head_size) / LINEAR_CHUNK;
    const uint32_t chunk = (uint32_t)(p.first * x.head_size) / LINEAR_CHUNK;
    for (uint32_t c = threadIdx.x / WARP; c < (uint32_t)all / LINEAR_CHUNK; c += THREADS / WARP) {
        float own[OWN];
#pragma unroll
        for (int i = 0; i < OWN; i++) own[i] = row[c * LINEAR_CHUNK + threadIdx.x % WARP * OWN + i];
        put_rounded(rounded_tile(x.out, (uint32_t)p.row, chunk + c, chunks),
                    (uint32_t)p.row % ROUNDED_COLUMNS, own);
    }
}

template <class CACHED, class STORED, int GROUP>
__device__ inline void step(const paged_step_arguments &a) {
    __shared__ span_shared<GROUP> s;
    const paged_arguments &x = a.paged;
    const span_place<GROUP> p(x);
    const int warp = threadIdx.x / WARP;
    const float *row = (const float *)a.heads.rows_at + p.row * a.heads.row_stride;
    pdl_release();
    p.load_pages(x, s);
    pdl_wait();          // positions, slots and pages were there before
    if (p.is_empty()) return; // all threads: the merge leaves this span out
    // The first two warps store k and v, of the span that has the row's own position.
    const bool stores = p.own / PAGED_SPAN == (int)blockIdx.x;
    for (int job = stores ? warp : warp + 2; job < 2 + p.count; job += THREADS / WARP) {
        const int head = job == 0   ? x.heads + p.head
                         : job == 1 ? x.heads + x.kv_heads + p.head
                                    : p.first + job - 2;
        const uint64_t page = job < 2 ? pages_of(x.cache, p.row)[p.own / PAGE] : 0;
        head_store<STORED> store = {a.heads, p.row, head, p.own, page};
        make_ready(a.heads, head, p.own, row + (uint64_t)head * x.head_size,
                   [&](int i, float value) {
                       if (job < 2) {
                           store.element(i, value);
                       } else {
                           s.q[job - 2][i] = value * x.scale_log2;
                       }
                   });
        if (job < 2) store.finish();
    }
    for (int i = threadIdx.x; i < (GROUP - p.count) * x.head_size; i += THREADS) {
        s.q[p.count + i / x.head_size][i % x.head_size] = 0;
    }
    attend<CACHED, GROUP>(x, p, s);
    if (x.splits > 1) {
        put_part(x, p, s);
    } else {
        put_alone(a, p, s);
    }
}

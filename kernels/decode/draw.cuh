// A token of each row of logits, in five kernels: the largest, a histogram of weights, the least
// that is kept, sums of what is kept, and the token.
#pragma once

#include "../row/argmax_key.cuh"
#include "../pdl.cuh"

#include "draw_arguments.h"
#include "draw_block.cuh"

struct drawn_row {
    float *logits;
    const draw_row *by;
    const uint32_t *tokens;
    draw_work *work;
    uint32_t columns, part, parts;

    __device__ drawn_row(const draw_arguments &a)
        : logits((float *)a.logits + blockIdx.y * a.stride),
          by((const draw_row *)(a.rows + blockIdx.y * a.row_stride)),
          tokens((const uint32_t *)(a.tokens + blockIdx.y * a.row_stride)),
          work((draw_work *)a.work + blockIdx.y), columns(a.columns), part(a.part),
          parts((a.columns + a.part - 1) / a.part) {}

    // The key of the largest logit, by each warp; after the first kernel.
    __device__ unsigned long long largest() const {
        unsigned long long best = 0; // below all keys
        for (uint32_t i = threadIdx.x % WARP; i < parts; i += WARP) {
            best = max(best, (unsigned long long)work->keys[i]);
        }
        return largest_key(best);
    }
    __device__ uint64_t distance(float value, float most) const {
        return draw_distance(value, most, by->scale);
    }
    __device__ bool has_cuts() const { return by->top_k > 1 || (by->top_k == 0 && by->share > 0); }
};

// Finite logits alone are weighed.
__device__ inline bool is_drawable(unsigned long long largest) {
    return isfinite(draw_value(largest));
}

// Block (i, r): penalties, and the largest, of part i of row r.
__device__ inline void draw_largest_of_part(const draw_arguments &a) {
    __shared__ unsigned long long keys[DRAW_THREADS / WARP];
    const drawn_row row(a);
    const uint32_t first = blockIdx.x * row.part, end = min(first + row.part, row.columns);
    unsigned long long best = 0;
    pdl_release();
    pdl_wait();
    const uint32_t penalised = min(row.by->penalised, (uint32_t)DRAW_TOKENS);
    for (uint32_t i = threadIdx.x; i < penalised; i += DRAW_THREADS) {
        const uint32_t token = row.tokens[i];
        if (token < first || token >= end) continue;
        const float value = row.logits[token], penalty = row.by->penalty;
        row.logits[token] = value > 0 ? __fdiv_rn(value, penalty) : __fmul_rn(value, penalty);
    }
    for (uint32_t i = blockIdx.x * DRAW_THREADS + threadIdx.x; i < DRAW_BINS;
         i += row.parts * DRAW_THREADS) {
        row.work->weights[i] = 0;
        row.work->counts[i] = 0;
    }
    __syncthreads(); // the block's penalties are there
#pragma unroll 4
    for (uint32_t c = first + threadIdx.x; c < end; c += DRAW_THREADS) {
        best = max(best, argmax_key(row.logits[c], c));
    }
    best = largest_key(best);
    if (threadIdx.x % WARP == 0) keys[threadIdx.x / WARP] = best;
    __syncthreads(); // the keys of all warps are there
    if (threadIdx.x >= WARP) return;
    best = largest_key(threadIdx.x < DRAW_THREADS / WARP ? keys[threadIdx.x] : 0);
    if (threadIdx.x == 0) row.work->keys[blockIdx.x] = best;
}

// Block (i, r) adds part i of row r to the row's histogram of distances from the largest.
__device__ inline void draw_weigh_part(const draw_arguments &a) {
    __shared__ unsigned long long weights[DRAW_BINS];
    __shared__ uint32_t counts[DRAW_BINS];
    const drawn_row row(a);
    const uint32_t first = blockIdx.x * row.part, end = min(first + row.part, row.columns);
    pdl_release();
    for (uint32_t i = threadIdx.x; i < DRAW_BINS; i += DRAW_THREADS) weights[i] = counts[i] = 0;
    __syncthreads(); // the bins are empty
    pdl_wait();
    const unsigned long long largest = row.largest();
    if (!row.has_cuts() || !is_drawable(largest)) return;
    const float most = draw_value(largest);
    for (uint32_t c = first + threadIdx.x; c < end; c += DRAW_THREADS) {
        const uint64_t distance = row.distance(row.logits[c], most);
        if (distance == DRAW_FAR) continue;
        const uint32_t bin = (uint32_t)(distance >> DRAW_BIN_BITS);
        atomicAdd(&weights[bin], (unsigned long long)draw_weight(distance));
        atomicAdd(&counts[bin], 1u);
    }
    __syncthreads(); // all of the part is in the bins
    for (uint32_t i = threadIdx.x; i < DRAW_BINS; i += DRAW_THREADS) {
        if (counts[i] == 0) continue;
        atomicAdd((unsigned long long *)&row.work->weights[i], weights[i]);
        atomicAdd(&row.work->counts[i], counts[i]);
    }
}

// Block r finds the least key of row r that top-k and top-p leave.
__device__ inline void draw_cut_row(const draw_arguments &a) {
    __shared__ draw_cutter cutter;
    const drawn_row row(a);
    pdl_release();
    pdl_wait();
    const unsigned long long largest = row.largest();
    unsigned long long threshold = row.by->top_k == 1 ? largest : 0;
    if (row.has_cuts() && is_drawable(largest)) {
        const draw_candidates all = {row.logits, row.columns, draw_value(largest), row.by->scale};
        cutter.begin(*row.work);
        uint64_t total = cutter.totals[DRAW_BY_WEIGHT];
        const uint64_t top_k = row.by->top_k;
        if (top_k > 0 && top_k < cutter.totals[DRAW_BY_COUNT]) {
            threshold = cutter.find(all, DRAW_BY_COUNT, top_k);
            total = cutter.weight_from(all, threshold);
        }
        if (row.by->share > 0 && total > 0) {
            threshold =
                max(threshold, cutter.find(all, DRAW_BY_WEIGHT, draw_share(total, row.by->share)));
        }
    }
    if (threadIdx.x == 0) row.work->threshold = threshold;
}

// The weight of a token if it is kept; else 0.
__device__ inline uint64_t draw_kept(const drawn_row &row, float most, uint32_t token) {
    const float value = row.logits[token];
    const uint64_t distance = row.distance(value, most);
    if (distance == DRAW_FAR || argmax_key(value, token) < row.work->threshold) return 0;
    const uint64_t weight = draw_weight(distance);
    return weight < row.by->least ? 0 : weight;
}

// Block (i, r) adds what is kept of part i of row r.
__device__ inline void draw_sum_part(const draw_arguments &a) {
    const drawn_row row(a);
    const uint32_t first = blockIdx.x * row.part, end = min(first + row.part, row.columns);
    uint64_t sum = 0;
    pdl_release();
    pdl_wait();
    const unsigned long long largest = row.largest();
    if (!is_drawable(largest)) return;
    const float most = draw_value(largest);
    for (uint32_t c = first + threadIdx.x; c < end; c += DRAW_THREADS) {
        sum += draw_kept(row, most, c);
    }
    uint64_t all;
    (void)draw_block_scan<DRAW_THREADS>(sum, &all);
    if (threadIdx.x == 0) row.work->sums[blockIdx.x] = all;
}

// Block r finds the token of row r where its chance falls.
__device__ inline void draw_pick_of_row(const draw_arguments &a) {
    __shared__ uint32_t part;
    __shared__ uint64_t below;
    const drawn_row row(a);
    int *out = (int *)a.out + blockIdx.y;
    pdl_release();
    pdl_wait();
    const unsigned long long largest = row.largest();
    const float most = draw_value(largest);
    if (!is_drawable(largest)) {
        if (threadIdx.x == 0) *out = most < 0 ? DRAW_NONE : DRAW_BAD - column_of_key(largest);
        return;
    }
    const uint64_t own = threadIdx.x < row.parts ? row.work->sums[threadIdx.x] : 0;
    uint64_t total, point;
    uint64_t up_to = draw_block_scan<DRAW_THREADS>(own, &total);
    point = draw_high(row.by->random, total);
    if (total == 0) { // by a scale that is no number
        if (threadIdx.x == 0) *out = column_of_key(largest);
        return;
    }
    if (up_to > point && up_to - own <= point) {
        part = threadIdx.x;
        below = up_to - own;
    }
    __syncthreads(); // the part is known
    const uint32_t first = part * row.part, end = min(first + row.part, row.columns);
    uint64_t before = below;
    for (uint32_t tile = first; tile < end; tile += DRAW_THREADS) {
        const uint32_t token = tile + threadIdx.x;
        const uint64_t weight = token < end ? draw_kept(row, most, token) : 0;
        up_to = before + draw_block_scan<DRAW_THREADS>(weight, &total);
        before += total;
        if (up_to > point && up_to - weight <= point) *out = (int)token;
        if (before > point) return; // all threads at once
    }
}

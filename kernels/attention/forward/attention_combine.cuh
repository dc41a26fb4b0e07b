// Merging the parts of blocks that split the keys, as attention_5_combine and attention_8_early do.
//
// out[b][h][i][d] = sum_s w[s] part[s][d] / sum_s w[s], where part[s] is row i of out over part s
// of the keys alone, and w[s] = 2^part[s][head_size] is the sum of weights of that part.
//
// A block owns a row of out. Its threads form groups with one thread per element. Group g reads
// the parts g, g + groups, ..., several at a time with their logarithms, so a row of 50 parts
// waits for memory twice. A group keeps the largest logarithm so far, as in an online softmax. The
// sums of the groups are added in shared memory, in the order of the groups.
#pragma once

#include "attention.cuh"
#include "attention_combine.h"

enum { COMBINE_AT_ONCE = 8 }; // parts of a group

// A group's sum for an element: of weights over 2^base, and of values times them.
struct combine_sum {
    float base, weights, value;

    // Adds parts with these logarithms; -INFINITE: there is no part.
    __device__ inline void add(const float (&logs)[COMBINE_AT_ONCE],
                               const float (&values)[COMBINE_AT_ONCE]) {
        float largest = base;
#pragma unroll
        for (int i = 0; i < COMBINE_AT_ONCE; i++) largest = fmaxf(largest, logs[i]);
        const float finite = finite_base(largest), kept = exp2f(base - finite);
        base = largest, weights *= kept, value *= kept;
#pragma unroll
        for (int i = 0; i < COMBINE_AT_ONCE; i++) {
            const float weight = exp2f(logs[i] - finite);
            weights += weight;
            value = fmaf(weight, values[i], value);
        }
    }
};

// Called by all threads of a block of KN_ATTENTION_COMBINE_THREADS.
template <typename T> __device__ inline void attention_combine(const attention_arguments &x) {
    constexpr int THREADS = KN_ATTENTION_COMBINE_THREADS;
    __shared__ float bases[THREADS / WARP], weights[THREADS / WARP], values[THREADS];
    const int head = blockIdx.x, row = blockIdx.y % x.q_length, batch = blockIdx.y / x.q_length;
    const long long rows = (long long)x.batch * x.heads * x.q_length;
    const long long index = ((long long)batch * x.heads + head) * x.q_length + row;
    const int width = x.head_size + 1, across = ceil_div(x.head_size, WARP) * WARP;
    const int groups = THREADS / across, group = threadIdx.x / across, d = threadIdx.x % across;
    const float *part = (const float *)x.part + index * width;
    combine_sum sum = {-INFINITE, 0, 0};
    for (int first = group; group < groups && first < x.splits;
         first += COMBINE_AT_ONCE * groups) {
        float logs[COMBINE_AT_ONCE], of_shares[COMBINE_AT_ONCE];
#pragma unroll
        for (int i = 0; i < COMBINE_AT_ONCE; i++) {
            const int s = first + i * groups;
            const float *one = part + s * rows * width;
            logs[i] = s < x.splits ? one[x.head_size] : -INFINITE;
            of_shares[i] = s < x.splits && d < x.head_size ? one[d] : 0;
        }
        sum.add(logs, of_shares);
    }
    values[threadIdx.x] = sum.value;
    if (d == 0 && group < groups) bases[group] = sum.base, weights[group] = sum.weights;
    __syncthreads(); // the sums of all groups are there
    if (threadIdx.x >= x.head_size) return;
    float largest = -INFINITE, total = 0, value = 0;
    for (int g = 0; g < groups; g++) largest = fmaxf(largest, bases[g]);
    for (int g = 0; g < groups; g++) {
        const float grown = exp2f(bases[g] - finite_base(largest));
        total = fmaf(weights[g], grown, total);
        value = fmaf(values[g * across + d], grown, value);
    }
    T *out = (T *)attention_row<T>(x.out, x.out_strides, batch, head, row);
    out[d] = from_float<T>(value * share_of(total));
    if (d == 0) store_lse(x, batch, head, row, largest, total);
}

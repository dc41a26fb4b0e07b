// What top_k_2_warp and top_k_3_pass share: one warp that finds a threshold among numbers, and one
// that sorts a few keys in its registers.
#pragma once

#include "row_reach.cuh"
#include "top_k_arguments.h"

#include <type_traits>

// Keys: an element's order above what its column is subtracted from, so that the larger key is the
// larger element, the first of equal ones. No key is 0. Rows of 16-bit elements of up to 65,536
// columns have keys of 32 bits.
template <typename KEY, typename T> __device__ inline KEY key_of(int order, int column) {
    if (sizeof(KEY) == 4) return (KEY)(order + 0x8000) << 16 | (KEY)(0xffff - column);
    return (KEY)((uint32_t)order ^ 0x80000000u) << 32 % (8 * sizeof(KEY)) |
           (KEY)(0xffffffffu - (uint32_t)column);
}
__device__ inline int column_of(uint32_t key) {
    return 0xffff - (int)(key & 0xffff);
}
__device__ inline int column_of(unsigned long long key) {
    return (int)(0xffffffffu - (uint32_t)key);
}

#if __CUDA_ARCH__ >= 800
__device__ inline float quotient(float a, float b) {
    asm("div.approx.ftz.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
}

// An order that at least k of COUNT orders a lane reach, and not many more if they differ; k is at
// most their number. The first guess is their mean, the others are interpolated, and every
// fourth halves the interval.
template <typename T, int COUNT>
__device__ inline int reached_by(const int (&numbers)[COUNT], int k) {
    enum { MORE = 8, ALL = WARP * COUNT, PART = sizeof(T) == 2 ? 1 : ALL }; // sums fit
    int lo = numbers[0], hi = numbers[0], middle = 0;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        lo = min(lo, numbers[i]), hi = max(hi, numbers[i]), middle += numbers[i] / PART;
    }
    lo = smallest_of_warp(lo), hi = largest_of_warp(hi),
    middle = sum_of_warp(middle) / (ALL / PART);
    int reach = ALL, above = 0; // how many reach lo; fewer than k are above hi
    for (int turn = 1; reach > k + MORE && lo < hi; turn++) {
        middle = min(max(middle, lo + 1), hi);
        int sum = 0;
#pragma unroll
        for (int i = 0; i < COUNT; i++) sum += numbers[i] >= middle;
        sum = sum_of_warp(sum);
        if (sum >= k) {
            lo = middle, reach = sum;
        } else {
            hi = middle - 1, above = sum;
        }
        const float width = (float)((unsigned)hi - (unsigned)lo);
        const float share = quotient((float)(reach - k - MORE / 2), (float)(reach - above));
        middle = lo + (int)(unsigned)(width * (turn % 4 == 0 ? 0.5f : share));
    }
    return lo;
}

// One step of a bitonic network between lanes that are `lanes` apart: the lower one of a pair keeps
// the larger key, or the other way round.
template <typename KEY> __device__ inline KEY keep_of_pair(KEY key, int lanes, bool keeps_larger) {
    const KEY other = __shfl_xor_sync(~0u, key, lanes);
    return (other > key) == keeps_larger ? other : key;
}
template <typename KEY> __device__ inline void order_two(KEY &a, KEY &b, bool larger_first) {
    const KEY x = a, y = b;
    const bool turns = (x < y) == larger_first;
    a = turns ? y : x, b = turns ? x : y;
}

// Of the keys of a warp, four a lane and all of them different or 0, the 64 largest in order: lane
// i gets the (2 i)-th and the next one. Keys 0 and 1 of the lanes are sorted downwards, 2 and 3
// upwards; the larger ones of both are a bitonic sequence, which is sorted once more.
template <typename KEY> __device__ inline void sort_64_of_128(KEY (&keys)[4]) {
    const int lane = (int)threadIdx.x % WARP;
#pragma unroll
    for (int size = 2; size <= 64; size *= 2) {
        const bool down = (2 * lane & size) == 0;
#pragma unroll
        for (int stride = size / 2; stride > 1; stride /= 2) {
            const bool keeps_larger = ((2 * lane & stride) == 0) == down;
            keys[0] = keep_of_pair(keys[0], stride / 2, keeps_larger);
            keys[1] = keep_of_pair(keys[1], stride / 2, keeps_larger);
            keys[2] = keep_of_pair(keys[2], stride / 2, !keeps_larger);
            keys[3] = keep_of_pair(keys[3], stride / 2, !keeps_larger);
        }
        order_two(keys[0], keys[1], down);
        order_two(keys[2], keys[3], !down);
    }
    keys[0] = max(keys[0], keys[2]), keys[1] = max(keys[1], keys[3]);
#pragma unroll
    for (int stride = 32; stride > 1; stride /= 2) {
        const bool keeps_larger = (2 * lane & stride) == 0;
        keys[0] = keep_of_pair(keys[0], stride / 2, keeps_larger);
        keys[1] = keep_of_pair(keys[1], stride / 2, keeps_larger);
    }
    order_two(keys[0], keys[1], true);
}

// Sorts up to TOP_K_SORTED keys of a warp, which key(i) gives, and stores the k largest of row
// `row`, of which `in` has the elements.
template <typename KEY, typename T, typename GIVE>
__device__ inline void sort_and_store(const top_k_arguments &x, long long row, const T *in,
                                      int count, GIVE key) {
    KEY keys[4];
    const int lane = (int)threadIdx.x % WARP;
#pragma unroll
    for (int q = 0; q < 4; q++) keys[q] = lane + q * WARP < count ? key(lane + q * WARP) : 0;
    sort_64_of_128(keys);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (2 * lane + i >= x.k) continue;
        const int column = column_of(keys[i]);
        if (x.indices != 0) ((int *)x.indices)[row * x.indices_stride + 2 * lane + i] = column;
        if (x.values != 0) ((T *)x.values)[row * x.values_stride + 2 * lane + i] = in[column];
    }
}
#endif

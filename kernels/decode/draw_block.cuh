// What a block does for a draw: sums of whole numbers, and the least key of a row whose counts or
// weights, with those of all larger keys, come to a number.
#pragma once

#include "../row/argmax_key.cuh"

#include "draw_arguments.h"

// The float that a key was made of; -0 has become +0.
__device__ inline float draw_value(unsigned long long key) {
    const uint32_t order = (uint32_t)(key >> 32);
    return __uint_as_float(order >> 31 ? order & 0x7fffffffu : ~order);
}

__device__ inline uint64_t draw_warp_scan(uint64_t value) {
    for (int lanes = 1; lanes < WARP; lanes *= 2) {
        const uint64_t other = __shfl_up_sync(~0u, (unsigned long long)value, lanes);
        if ((int)(threadIdx.x % WARP) >= lanes) value += other;
    }
    return value;
}

// The sum of the values of this thread and those before it; *all: of all. THREADS are the block's.
template <int THREADS> __device__ inline uint64_t draw_block_scan(uint64_t value, uint64_t *all) {
    __shared__ uint64_t sums[WARP];
    const int warp = threadIdx.x / WARP;
    uint64_t sum = draw_warp_scan(value), before = 0;
    if (threadIdx.x % WARP == WARP - 1) sums[warp] = sum;
    __syncthreads(); // the sums of all warps are there
    *all = 0;
    for (int i = 0; i < THREADS / WARP; i++) {
        if (i < warp) before += sums[i];
        *all += sums[i];
    }
    __syncthreads(); // all have read them, before the next scan writes
    return before + sum;
}

struct draw_candidates {
    const float *logits;
    uint32_t columns;
    float largest;
    double scale;
};

enum { DRAW_BY_COUNT, DRAW_BY_WEIGHT, DRAW_DIGITS = 256 };

// In shared memory, one per block of DRAW_CUT_THREADS.
struct draw_cutter {
    unsigned long long bins[2][DRAW_BINS]; // counts and weights
    unsigned long long digits[DRAW_DIGITS];
    unsigned long long list[DRAW_LIST]; // keys of a bin
    unsigned long long found, before;
    uint64_t totals[2];
    uint32_t at, listed;

    __device__ void begin(const draw_work &work) {
        if (threadIdx.x == 0) listed = 0; // it is read where no list is made, too
        for (uint32_t i = threadIdx.x; i < DRAW_BINS; i += DRAW_CUT_THREADS) {
            bins[DRAW_BY_COUNT][i] = work.counts[i];
            bins[DRAW_BY_WEIGHT][i] = work.weights[i];
        }
        for (int by = 0; by < 2; by++) {
            uint64_t sum = 0, all;
            for (uint32_t i = threadIdx.x; i < DRAW_BINS; i += DRAW_CUT_THREADS) {
                sum += by == DRAW_BY_COUNT ? work.counts[i] : work.weights[i];
            }
            (void)draw_block_scan<DRAW_CUT_THREADS>(sum, &all);
            if (threadIdx.x == 0) totals[by] = all;
        }
        __syncthreads(); // bins and totals are there
    }

    // Sets `at` to the first of `count` numbers, COUNT / 32 per lane, with which the sum reaches
    // `wanted`, and `before` to the sum of those before it. From the last on if `backwards`.
    template <int COUNT>
    __device__ void cross(const unsigned long long *numbers, uint64_t wanted, bool backwards) {
        const int each = COUNT / WARP, lane = threadIdx.x;
        if (threadIdx.x < WARP) {
            uint64_t own = 0;
            for (int i = 0; i < each; i++) {
                const int index = lane * each + i;
                own += numbers[backwards ? COUNT - 1 - index : index];
            }
            uint64_t sum = draw_warp_scan(own) - own;
            if (sum < wanted && sum + own >= wanted) {
                int i = lane * each;
                while (sum + numbers[backwards ? COUNT - 1 - i : i] < wanted) {
                    sum += numbers[backwards ? COUNT - 1 - i : i];
                    i++;
                }
                at = backwards ? COUNT - 1 - i : i;
                before = sum;
            }
        }
        __syncthreads(); // all know where it is
    }

    // Candidate i of a bin: of the list, or of all tokens. 0: it is not in the bin.
    __device__ unsigned long long key_of(const draw_candidates &all, uint32_t bin, bool fits,
                                         uint32_t i, uint64_t *distance) const {
        const unsigned long long key = fits ? list[i] : argmax_key(all.logits[i], i);
        *distance = draw_distance(draw_value(key), all.largest, all.scale);
        return *distance != DRAW_FAR && (uint32_t)(*distance >> DRAW_BIN_BITS) == bin ? key : 0;
    }

    __device__ bool gather(const draw_candidates &all, uint32_t bin) {
        if (bins[DRAW_BY_COUNT][bin] > DRAW_LIST) return false;
        if (threadIdx.x == 0) listed = 0;
        __syncthreads(); // the list is empty
        for (uint32_t i = threadIdx.x; i < all.columns; i += DRAW_CUT_THREADS) {
            uint64_t distance;
            const unsigned long long key = key_of(all, bin, false, i, &distance);
            if (key != 0) list[atomicAdd(&listed, 1u)] = key; // any order serves
        }
        __syncthreads(); // the list is whole
        return true;
    }

    // The least key that is kept if the largest ones, counted or weighed, are to reach `wanted`.
    __device__ unsigned long long find(const draw_candidates &all, int by, uint64_t wanted) {
        cross<DRAW_BINS>(bins[by], wanted, false);
        const uint32_t bin = at;
        wanted -= before;
        const bool fits = gather(all, bin);
        const uint32_t count = fits ? listed : all.columns;
        unsigned long long prefix = 0, mask = 0;
        for (int shift = 56; shift >= 0; shift -= 8) {
            for (int i = threadIdx.x; i < DRAW_DIGITS; i += DRAW_CUT_THREADS) digits[i] = 0;
            __syncthreads(); // the digits are empty, and `before` was read
            for (uint32_t i = threadIdx.x; i < count; i += DRAW_CUT_THREADS) {
                uint64_t distance;
                const unsigned long long key = key_of(all, bin, fits, i, &distance);
                if (key == 0 || (key & mask) != prefix) continue;
                atomicAdd(&digits[key >> shift & (DRAW_DIGITS - 1)],
                          by == DRAW_BY_COUNT ? 1ull : (unsigned long long)draw_weight(distance));
            }
            __syncthreads(); // all are counted
            cross<DRAW_DIGITS>(digits, wanted, true);
            prefix |= (unsigned long long)at << shift;
            mask |= (unsigned long long)(DRAW_DIGITS - 1) << shift;
            wanted -= before;
        }
        if (threadIdx.x == 0) found = bin;
        __syncthreads(); // for weight_from; and `at` may be set again
        return prefix;
    }

    // The sum of the weights from a key on that find() found.
    __device__ uint64_t weight_from(const draw_candidates &all, unsigned long long key) {
        const uint32_t bin = (uint32_t)found;
        const bool fits = bins[DRAW_BY_COUNT][bin] <= DRAW_LIST;
        const uint32_t count = fits ? listed : all.columns;
        uint64_t sum = 0, total;
        for (uint32_t i = threadIdx.x; i < bin; i += DRAW_CUT_THREADS) {
            sum += bins[DRAW_BY_WEIGHT][i];
        }
        for (uint32_t i = threadIdx.x; i < count; i += DRAW_CUT_THREADS) {
            uint64_t distance;
            const unsigned long long own = key_of(all, bin, fits, i, &distance);
            if (own >= key && own != 0) sum += draw_weight(distance);
        }
        (void)draw_block_scan<DRAW_CUT_THREADS>(sum, &total);
        return total;
    }
};

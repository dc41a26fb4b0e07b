/*
 * Trial: one product of groups, with its operands drawn from a seed, run on the device and judged
 * in double. For tests and claims. Not thread-safe with a stream that others use.
 */
#ifndef KN_GROUPED_TRIAL_H
#define KN_GROUPED_TRIAL_H

#include "deviation.h"
#include "grouped.h"
#include "inputs.h"

struct kn_grouped_trial {
    struct kn_grouped grouped; /* without buffers, strides and leadings: the trial makes them */
    const int32_t *begins;     /* groups + 1; NULL: none are given */
    bool has_bias, has_a_scale, has_b_scale; /* scales are 1/2, 1 or 2 */
    bool has_residual, is_in_place;          /* in place: the residual is C, of C's type */
    bool is_whole;    /* A and B are whole numbers from 1 to 4 in magnitude, so sums are exact */
    bool is_positive; /* of whole numbers */
    double scale;     /* of A's and B's elements otherwise; 0 is 1 */
    size_t gap, align, skew; /* rows are `gap` elements longer, rounded up to a multiple of align;
                                matrices begin skew elements past a multiple of 256 bytes */
    uint64_t seed;
    bool
        swaps_last; /* a planted fault: the last two different elements of the last row that is in a
                        group are exchanged */
};

struct kn_grouped_outcome {
    struct kn_deviation deviation; /* of all rows that are in a group */
    size_t touched;                /* bytes that changed outside of these rows */
    const struct kn_variant *variant;
};

/*
 * Runs a trial. Outputs begin as NaN, between guard zones.
 *
 * With S = sum over l of |a_il| |b_lj| a sum of k products may be off by (k + 32) 2^-22 S, as
 * gemm_oracle.c says of tensor cores. In e4m3 by Hopper's: each instruction adds 32 products and
 * the sum so far, each cut off at 2^-13 of the largest of them, and cuts the result: 34 cuts for
 * each of the four instructions of 128 steps, 136 2^-13 S; and a rounding of a float for each 128
 * steps, k / 128 2^-24 S. A sum of whole numbers is exact in each. What follows is rounded a few
 * times: 4 u of what is added; 1.13 times the error so far and 16 u |v| for an activation, whose
 * slope is at most 1.13; 2 u for the residual; and the rounding to C's type.
 */
TOL_API tol_status kn_grouped_try(struct kn_kernels *kernels, struct tol_stream *stream,
                                  const struct kn_grouped_trial *trial,
                                  struct kn_grouped_outcome *outcome);

#endif

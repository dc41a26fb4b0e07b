/*
 * Sharing out the steps of a product that has too few tiles for the device: how, and how it is
 * launched. Internal to the operation.
 */
#ifndef KN_GEMM_SPLIT_H
#define KN_GEMM_SPLIT_H

#include "gemm_problem.h"

struct gemm_split {
    int splits, span; /* shares, and steps of each but the last; 1 and k: it is not split */
    size_t leading;   /* of what a share gives: floats from row to row */
    size_t bytes;     /* of workspace */
};

/* How a variant's steps are split with so many bytes of workspace, on any device. Pure. */
struct gemm_split gemm_split_of(const struct gemm_problem *problem,
                                const struct kn_variant *variant, size_t room);

/* Queues a kernel over its tiles and shares, and where there are several shares the sum. */
tol_status gemm_launch(struct kn_kernels *kernels, struct tol_stream *stream,
                       const struct gemm_problem *problem, const struct kn_variant *variant,
                       const struct tol_kernel *kernel, struct gemm_split split);

#endif

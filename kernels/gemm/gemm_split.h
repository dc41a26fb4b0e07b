/*
 * Splits the steps of a product that has too few tiles for the device, and launches it. Internal to
 * the operation.
 */
#ifndef KN_GEMM_SPLIT_H
#define KN_GEMM_SPLIT_H

#include "gemm_problem.h"

struct gemm_split {
    int splits, span; /* shares, and the steps of each but the last; 1 and k: not split */
    size_t leading;   /* of a partial sum: floats from row to row */
    size_t bytes;     /* of workspace; 0: blocks of a cluster add the shares */
};

/* How to split a variant's steps with `room` bytes of workspace, on any device. Pure. */
struct gemm_split gemm_split_of(const struct gemm_problem *problem,
                                const struct kn_variant *variant, size_t room);

/* The tiles of a kernel. Pure. Of dimensions below 2^31 it does not overflow. */
size_t gemm_tiles_of(const struct gemm_arguments *x, const struct kn_variant *variant);

/* Queues a kernel over its tiles and shares, and step 8 if there are several shares. */
tol_status gemm_launch(struct kn_kernels *kernels, struct tol_stream *stream,
                       const struct gemm_problem *problem, const struct kn_variant *variant,
                       const struct tol_kernel *kernel, struct gemm_split split);

#endif

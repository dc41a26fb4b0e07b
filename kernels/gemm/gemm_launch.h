/*
 * Launches a product; split-K if it has too few tiles for a device. Internal to the operation.
 */
#ifndef KN_GEMM_LAUNCH_H
#define KN_GEMM_LAUNCH_H

#include "gemm_check.h"

struct gemm_split {
    int splits, span; /* parts, and the steps of each but the last; 1 and k: not split */
    size_t leading;   /* of a partial sum: floats from row to row */
    size_t bytes;     /* of workspace; 0: the blocks of a cluster add their partial sums */
};

/* For each type of A and B the kernel that adds partial sums. */
extern const struct kn_variant kn_gemm_sum[KN_TYPES];

/* How to split a variant's steps with `room` bytes of workspace, on any device. Pure. */
struct gemm_split gemm_split_of(const struct gemm_problem *problem,
                                const struct kn_variant *variant, size_t room);

/* The tiles of a kernel. Pure. Of dimensions below 2^31 it does not overflow. */
size_t gemm_tiles_of(const struct gemm_arguments *x, const struct kn_variant *variant);

/* Queues a kernel over its tiles and parts of steps, before it packing, and after it step 8, which
 * adds partial sums. */
tol_status gemm_launch(struct kn_kernels *kernels, struct tol_stream *stream,
                       const struct gemm_problem *problem, const struct kn_variant *variant,
                       const struct tol_kernel *kernel, struct gemm_split split);

#endif

/*
 * Packing: copies of A and B in the workspace, for kernels that need them so: with aligned rows, B
 * as its transpose, or both as sums of three matrices of bf16. Internal to the operation.
 */
#ifndef KN_GEMM_PACK_H
#define KN_GEMM_PACK_H

#include "gemm_check.h"

/* The bytes of workspace that the copies need; SIZE_MAX if that overflows. Pure. */
size_t gemm_pack_bytes(const struct gemm_problem *problem);

/* Into how many matrices of bf16 one of a or b is split: 1 or 3, in which case the stride of the
 * copy is that from one to the next. Pure. */
int gemm_pack_parts(const struct kn_gemm *gemm);

/* Whether b is copied as its transpose: wgmma reads floats where their steps are contiguous, and
 * only one factor can come from registers. Pure. */
bool gemm_pack_turns_b(const struct kn_gemm *gemm);

/* Queues the copies into the caller's workspace, and makes x describe them. */
tol_status gemm_pack(struct kn_kernels *kernels, struct tol_stream *stream,
                     const struct gemm_problem *problem, struct gemm_arguments *x);

#endif

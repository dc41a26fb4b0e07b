/*
 * A problem of gemm as its variants see it: the caller's problem, and what the checks derived from
 * it.
 * Internal to the operation.
 */
#ifndef KN_GEMM_PROBLEM_H
#define KN_GEMM_PROBLEM_H

#include "gemm.h"
#include "gemm_arguments.h"

struct gemm_problem {
    const struct kn_gemm *gemm;
    struct gemm_arguments arguments;
    bool a_is_aligned, b_is_aligned, c_is_aligned; /* each row begins at a multiple of 16 bytes */
    bool has_maps;                                 /* the driver makes tensor maps */
    bool is_planned; /* the workspace is yet to be given, of the size that the variant asks for */
};

static inline bool gemm_is_aligned(const struct gemm_problem *problem) {
    return problem->a_is_aligned && problem->b_is_aligned && problem->c_is_aligned;
}

/* For each type of A and B the kernel that adds the partial sums of split steps. */
extern const struct kn_variant kn_gemm_sum[KN_TYPES];

#endif

/*
 * The checks of a product, and the problem as its kernels see it: the caller's, and what the checks
 * derived from it. Internal to the operation. Pure; thread-safe.
 */
#ifndef KN_GEMM_CHECK_H
#define KN_GEMM_CHECK_H

#include "gemm.h"
#include "gemm_arguments.h"

struct gemm_problem {
    const struct kn_gemm *gemm;
    struct gemm_arguments arguments;
    bool a_is_aligned, b_is_aligned, c_is_aligned; /* each row begins at a multiple of 16 bytes */
    bool has_maps;                                 /* the driver makes tensor maps */
    bool is_planned; /* the workspace is yet to be given, of the size that the variant asks for */
};

/* Fails as kn_gemm does before it picks a kernel. */
tol_status gemm_check(const struct kn_gemm *gemm, struct gemm_problem *problem);

/* What a tuning knows a checked problem by. */
struct kn_tuning_key gemm_key_of(const struct gemm_problem *problem);

static inline bool gemm_is_aligned(const struct gemm_problem *problem) {
    return problem->a_is_aligned && problem->b_is_aligned && problem->c_is_aligned;
}

/* The bytes of workspace that a problem may use now. */
static inline size_t gemm_room(const struct gemm_problem *problem) {
    const struct tol_buffer *workspace = problem->gemm->workspace;
    return problem->is_planned ? SIZE_MAX : workspace != NULL ? tol_buffer_bytes(workspace) : 0;
}

#endif

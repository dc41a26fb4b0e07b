/*
 * The calls of gemm: check a problem, look up or make its plan, launch.
 */
#include "core/check.h"
#include "gemm_launch.h"
#include "gemm_maps.h"
#include "gemm_pack.h"

#include <assert.h>

/* What the second call of a shape need not find out again. */
struct gemm_plan {
    const struct kn_variant *variant;
    const struct tol_kernel *kernel;
    struct gemm_split split;
};

_Static_assert(sizeof(struct gemm_plan) <= KN_PLAN_BYTES, "a plan is kept whole");

/* All that the choice of a kernel and split-K follow from, unless a variant is named. */
static struct kn_plan_key plan_key_of(const struct gemm_problem *problem) {
    const struct kn_gemm *g = problem->gemm;
    const struct gemm_arguments *x = &problem->arguments;
    const bool flags[] = {x->transpose_a != 0,   x->transpose_b != 0,   problem->a_is_aligned,
                          problem->b_is_aligned, problem->c_is_aligned, gemm_maps_serve(problem),
                          x->batch_a != 0,       x->batch_b != 0,       x->beta != 0,
                          g->workspace != NULL};
    int64_t bits = 0;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) bits |= (int64_t)flags[i] << i;
    return (struct kn_plan_key){"gemm",
                                {(int64_t)g->precision, (int64_t)g->c_type, x->m, x->n, x->k,
                                 (int64_t)g->k, x->batch, bits, (int64_t)gemm_room(problem)}};
}

static struct kn_wish plan_wish(const struct gemm_problem *problem) {
    return (struct kn_wish){problem->gemm->variant, problem->gemm->variants};
}

static tol_status gemm_call_plan_make(struct kn_kernels *kernels,
                                      const struct gemm_problem *problem, struct gemm_plan *plan) {
    const struct kn_tuning_key key = gemm_key_of(problem);
    const tol_status status = kn_kernels_choose(kernels, &kn_gemm_variants, plan_wish(problem),
                                                &key, problem, &plan->variant, &plan->kernel);
    if (status == TOL_OK) plan->split = gemm_split_of(problem, plan->variant, gemm_room(problem));
    return status;
}

static tol_status gemm_call_plan_find(struct kn_kernels *kernels, struct gemm_problem *problem,
                                      struct gemm_plan *plan) {
    problem->has_maps = kn_tensor_map_has(kn_kernels_context(kernels));
    if (!kn_wish_is_open(plan_wish(problem))) return gemm_call_plan_make(kernels, problem, plan);
    struct kn_plan_key key = plan_key_of(problem);
    if (kn_kernels_recall(kernels, &key, plan, sizeof *plan)) return TOL_OK;
    const tol_status status = gemm_call_plan_make(kernels, problem, plan);
    if (status == TOL_OK) kn_kernels_keep(kernels, &key, plan, sizeof *plan);
    return status;
}

tol_status kn_gemm_key(const struct kn_gemm *gemm, struct kn_tuning_key *key) {
    tol_status status = TOL_OK;
    struct gemm_problem problem = {0};
    TOL_CHECK(key != NULL, TOL_INVALID_ARGUMENT, "a key needs a place");
    TOL_TRY(gemm_check(gemm, &problem));
    *key = gemm_key_of(&problem);
out:
    return status;
}

tol_status kn_gemm_pick(struct kn_kernels *kernels, const struct kn_gemm *gemm,
                        const struct kn_variant **variant) {
    tol_status status = TOL_OK;
    struct gemm_plan plan = {0};
    struct gemm_problem problem = {0};
    TOL_TRY(gemm_check(gemm, &problem));
    TOL_TRY(gemm_call_plan_find(kernels, &problem, &plan));
    *variant = plan.variant;
out:
    return status;
}

tol_status kn_gemm_workspace(struct kn_kernels *kernels, const struct kn_gemm *gemm,
                             size_t *bytes) {
    tol_status status = TOL_OK;
    struct gemm_plan plan = {0};
    struct gemm_problem problem = {0};
    TOL_CHECK(kernels != NULL && bytes != NULL, TOL_INVALID_ARGUMENT,
              "gemm's workspace needs a set of kernels and a pointer to the result");
    TOL_TRY(gemm_check(gemm, &problem));
    problem.is_planned = true;
    TOL_TRY(gemm_call_plan_find(kernels, &problem, &plan));
    *bytes = plan.variant->packs ? gemm_pack_bytes(&problem) : plan.split.bytes;
out:
    return status;
}

tol_status kn_gemm(struct kn_kernels *kernels, struct tol_stream *stream,
                   const struct kn_gemm *gemm) {
    tol_status status = TOL_OK;
    struct gemm_plan plan = {0};
    struct gemm_problem problem = {0};
    TOL_CHECK(kernels != NULL && stream != NULL, TOL_INVALID_ARGUMENT,
              "gemm needs a set of kernels and a stream");
    TOL_TRY(gemm_check(gemm, &problem));
    if (problem.arguments.m == 0 || problem.arguments.n == 0) return TOL_OK;
    TOL_TRY(gemm_call_plan_find(kernels, &problem, &plan));
    assert(plan.split.bytes <= gemm_room(&problem) && plan.split.splits >= 1);
    status = gemm_launch(kernels, stream, &problem, plan.variant, plan.kernel, plan.split);
out:
    return status;
}

/*
 * The calls of grouped: check a problem, look up or make its plan, launch.
 */
#include "choose/plan_map.h"
#include "core/check.h"
#include "grouped_check.h"

#include <assert.h>

/* What the second call of a shape need not find out again. */
struct grouped_plan {
    const struct kn_variant *variant;
    const struct tol_kernel *kernel;
};

tol_status kn_grouped_key(struct kn_kernels *kernels, const struct kn_grouped *grouped,
                          struct kn_tuning_key *key) {
    tol_status status = TOL_OK;
    struct grouped_problem problem = {0};
    TOL_CHECK(kernels != NULL && key != NULL, TOL_INVALID_ARGUMENT,
              "a key needs a set of kernels and a place");
    TOL_TRY(grouped_check(kernels, grouped, &problem));
    *key = grouped_key_of(&problem);
out:
    return status;
}

static tol_status grouped_call_plan_make(struct kn_kernels *kernels,
                                         const struct grouped_problem *problem,
                                         struct grouped_plan *plan) {
    const struct kn_grouped *g = problem->grouped;
    const struct kn_tuning_key key = grouped_key_of(problem);
    return kn_kernels_choose(kernels, &kn_grouped_variants,
                             (struct kn_wish){g->variant, g->variants}, &key, problem,
                             &plan->variant, &plan->kernel);
}

static tol_status grouped_call_plan_find(struct kn_kernels *kernels,
                                         const struct grouped_problem *problem,
                                         struct grouped_plan *plan) {
    const struct kn_grouped *g = problem->grouped;
    const struct grouped_arguments *x = &problem->arguments;
    if (!kn_wish_is_open((struct kn_wish){g->variant, g->variants}))
        return grouped_call_plan_make(kernels, problem, plan);
    const int64_t bits = x->transpose_b != 0 ? 1 : 0, has_maps = problem->has_maps ? 2 : 0;
    struct kn_plan_key key = {"grouped",
                              {(int64_t)g->type, (int64_t)g->c_type, x->m, x->n, x->k, x->groups,
                               bits | has_maps | (problem->is_aligned ? 4 : 0), x->activation}};
    if (kn_kernels_recall(kernels, &key, plan, sizeof *plan)) return TOL_OK;
    const tol_status status = grouped_call_plan_make(kernels, problem, plan);
    if (status == TOL_OK) kn_kernels_keep(kernels, &key, plan, sizeof *plan);
    return status;
}

tol_status kn_grouped_pick(struct kn_kernels *kernels, const struct kn_grouped *grouped,
                           const struct kn_variant **variant) {
    tol_status status = TOL_OK;
    struct grouped_plan plan = {0};
    struct grouped_problem problem = {0};
    TOL_CHECK(kernels != NULL, TOL_INVALID_ARGUMENT, "grouped needs a set of kernels");
    TOL_TRY(grouped_check(kernels, grouped, &problem));
    TOL_TRY(grouped_call_plan_find(kernels, &problem, &plan));
    *variant = plan.variant;
out:
    return status;
}

static tol_status launch_grid(struct tol_stream *stream, const struct tol_kernel *kernel,
                              const struct kn_variant *variant, size_t blocks, size_t down,
                              struct tol_arguments arguments) {
    const struct tol_launch_shape shape = {.grid_x = (unsigned)blocks,
                                           .grid_y = (unsigned)down,
                                           .grid_z = 1,
                                           .block_x = variant->threads,
                                           .block_y = 1,
                                           .block_z = 1,
                                           .shared_bytes = variant->shared_bytes};
    return tol_launch(stream, kernel, shape, arguments);
}

static int grouped_call_box_at_most(int most, int count) {
    const int whole = (count + 7) / 8 * 8;
    return whole < most ? whole : most;
}

/* Persistent thread blocks, as many as the device runs at once, walk the tiles. */
static tol_status launch_by_maps(struct kn_kernels *kernels, struct tol_stream *stream,
                                 struct grouped_problem *problem, const struct kn_variant *variant,
                                 const struct tol_kernel *kernel) {
    enum { BOX_COLUMNS_MAX = 128, BOX_STEPS = 64 };
    tol_status status = TOL_OK;
    struct tol_context *context = kn_kernels_context(kernels);
    struct grouped_arguments *x = &problem->arguments;
    const bool is_bytes = problem->grouped->type == KN_GROUPED_E4M3;
    CUtensorMap a_map, b_map;
    void *values[] = {&a_map, &b_map, x};
    const unsigned bytes[] = {sizeof a_map, sizeof b_map, sizeof *x};
    /* The blocks of a cluster share rows of a tile, and each copies a part of its columns: as one
     * box, or two halves of it. */
    const int blocks = (int)variant->cluster, wide = (int)variant->tile[1] / blocks;
    x->a_rows = grouped_call_box_at_most((int)variant->tile[0] / blocks, x->m);
    x->b_rows = x->transpose_b
                    ? grouped_call_box_at_most(wide <= BOX_COLUMNS_MAX ? wide : wide / 2, x->n)
                    : BOX_STEPS;
    const enum kn_type type = problem->grouped->type == KN_GROUPED_BF16 ? KN_BF16 : KN_F16;
    const struct kn_tensor a = {.name = "grouped's a",
                                .address = x->a,
                                .type = type,
                                .is_bytes = is_bytes,
                                .columns = x->k,
                                .rows = x->m,
                                .matrices = 1,
                                .leading = x->lda,
                                .box_rows = x->a_rows};
    const struct kn_tensor b = {.name = "grouped's b",
                                .address = x->b,
                                .type = type,
                                .is_bytes = is_bytes,
                                .columns = x->transpose_b ? x->k : x->n,
                                .rows = x->transpose_b ? x->n : x->k,
                                .matrices = x->group_b != 0 ? x->groups : 1,
                                .leading = x->ldb,
                                .stride = x->group_b,
                                .box_rows = x->b_rows};
    TOL_TRY(kn_kernels_map(kernels, &a, &a_map));
    TOL_TRY(kn_kernels_map(kernels, &b, &b_map));
    const size_t tiles = grouped_tiles_most(x, variant->tile[0], variant->tile[1]);
    const size_t at_once = (size_t)tol_context_device(context)->multiprocessors / variant->cluster;
    const size_t clusters = tiles < at_once ? tiles : at_once > 0 ? at_once : 1;
    assert(clusters >= 1 && x->a_rows >= 1 && x->b_rows >= 1);
    status = launch_grid(stream, kernel, variant, clusters * variant->cluster, 1,
                         (struct tol_arguments){3, values, bytes});
out:
    return status;
}

tol_status kn_grouped(struct kn_kernels *kernels, struct tol_stream *stream,
                      const struct kn_grouped *grouped) {
    enum { GRID_Y_MAX = 65535 };
    tol_status status = TOL_OK;
    struct grouped_plan plan = {0};
    struct grouped_problem problem = {0};
    TOL_CHECK(kernels != NULL && stream != NULL, TOL_INVALID_ARGUMENT,
              "grouped needs a set of kernels and a stream");
    TOL_TRY(grouped_check(kernels, grouped, &problem));
    struct grouped_arguments *x = &problem.arguments;
    if (x->m == 0 || x->n == 0) return TOL_OK;
    TOL_TRY(grouped_call_plan_find(kernels, &problem, &plan));
    const struct kn_variant *variant = plan.variant;
    const struct tol_kernel *kernel = plan.kernel;
    if (variant->cluster != 0) return launch_by_maps(kernels, stream, &problem, variant, kernel);
    void *values[] = {x};
    const unsigned bytes[] = {sizeof *x};
    const struct tol_arguments arguments = {1, values, bytes};
    if (variant->tile[0] == 1) { /* blocks walk rows */
        const size_t across = ((size_t)x->n + variant->tile[1] - 1) / variant->tile[1];
        status = launch_grid(stream, kernel, variant, across,
                             x->m < GRID_Y_MAX ? (size_t)x->m : GRID_Y_MAX, arguments);
    } else {
        status =
            launch_grid(stream, kernel, variant,
                        grouped_tiles_most(x, variant->tile[0], variant->tile[1]), 1, arguments);
    }
out:
    return status;
}

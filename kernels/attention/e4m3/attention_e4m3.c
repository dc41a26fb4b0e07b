/*
 * The host's side of attention over numbers of 8 bits, and the table of its kernels.
 */
#include "attention/e4m3/attention_e4m3.h"

#include "attention/attention_table.h"
#include "attention/e4m3/attention_e4m3_arguments.h"
#include "attention/forward/attention_launch.h"
#include "attention/forward/attention_maps.h"
#include "core/check.h"

#include <assert.h>

KN_IMAGES(attention_e4m3_1_naive);
KN_IMAGES(attention_e4m3_2_hopper);
KN_IMAGES(attention_e4m3_defects);

/* ---- the table ------------------------------------------------------------------------------- */

static const char *e4m3_refuse(const struct kn_variant *row, const void *data) {
    const struct attention_problem *problem = data;
    const struct kn_attention *x = problem->attention;
    const char *why = attention_row_refuse(row, x->type, x->head_size, problem->is_aligned);
    if (why != NULL || (row->needs & ATTENTION_BY_MAPS) == 0) return why;
    if (x->head_size % 16 != 0) return "a head is no multiple of 16 bytes";
    return attention_maps_refuse(problem, row->size);
}

static const struct kn_variant variants[] = {
#define E4M3(...) ATTENTION_ROWS(attention_e4m3, e4m3_refuse, NULL, __VA_ARGS__)
#include "attention/attention_table.def"
#undef E4M3
};
const struct kn_variants kn_attention_e4m3_variants = {"attention over e4m3", variants,
                                                       sizeof variants / sizeof variants[0]};

#define DEFECT(which)                                                                              \
    ATTENTION_DEFECT(attention_e4m3, e4m3_refuse, which, defects, 90, F16, 64, MAPS, E4M3)
static const struct kn_variant defects[] = {DEFECT(neighbours_scale) DEFECT(early_bytes)
                                                DEFECT(old_halves)};
const struct kn_variants kn_attention_e4m3_defects = {"defects of attention over e4m3", defects,
                                                      sizeof defects / sizeof defects[0]};

/* ---- checks ---------------------------------------------------------------------------------- */

/* Scales at address 0 are all 1. */
static tol_status check_scales(const struct attention_problem *problem, const char *name,
                               struct kn_place scales, size_t count) {
    if (scales.address == 0) return TOL_OK;
    return attention_check_place(problem, name, scales, count * sizeof(float), sizeof(float));
}

static tol_status e4m3_check(const struct kn_attention_e4m3 *p, const struct kn_attention *x,
                             struct attention_problem *problem) {
    tol_status status = TOL_OK;
    TOL_CHECK(x->type == KN_F16 || x->type == KN_BF16, TOL_INVALID_ARGUMENT,
              "out of type %d, which is neither f16 nor bf16", (int)x->type);
    TOL_TRY(attention_check(x, 1, problem));
    TOL_TRY(check_scales(problem, "q_scales", p->q_scales, x->batch * x->heads));
    TOL_TRY(check_scales(problem, "k_scales", p->k_scales, x->batch * x->kv_heads));
    TOL_TRY(check_scales(problem, "v_scales", p->v_scales, x->batch * x->kv_heads));
out:
    return status;
}

/* ---- the call -------------------------------------------------------------------------------- */

tol_status kn_attention_e4m3(struct kn_kernels *kernels, struct tol_stream *stream,
                             const struct kn_attention_e4m3 *p) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    CUtensorMap maps[ATTENTION_MAPS];
    struct attention_launch launch = {.maps = maps};
    struct attention_problem problem = {0};
    TOL_CHECK(kernels != NULL && stream != NULL && p != NULL, TOL_INVALID_ARGUMENT,
              "attention over e4m3 needs a set of kernels, a stream and a problem");
    struct kn_attention x = p->attention;
    x.workspace = NULL, x.variant = NULL, x.variants = NULL;
    TOL_TRY(e4m3_check(p, &x, &problem));
    if (x.batch == 0 || x.heads == 0 || x.q_length == 0) return TOL_OK;
    problem.has_maps = kn_tensor_map_has(kn_kernels_context(kernels));
    TOL_TRY(kn_kernels_choose(kernels, &kn_attention_e4m3_variants,
                              (struct kn_wish){p->variant, p->variants}, NULL, &problem, &variant,
                              &launch.kernel));
    if ((variant->needs & ATTENTION_BY_MAPS) != 0) {
        TOL_TRY(attention_maps_make(kn_kernels_context(kernels), &problem, true, maps));
        launch.map_count = ATTENTION_MAPS;
    }
    struct attention_e4m3_arguments arguments = {.x = problem.arguments,
                                                 .q_scales = p->q_scales.address,
                                                 .k_scales = p->k_scales.address,
                                                 .v_scales = p->v_scales.address};
    assert(arguments.x.q != 0 && arguments.x.out != 0);
    launch.shape = attention_tiles(variant, &x);
    status = attention_launch(stream, &launch, &arguments, sizeof arguments);
out:
    return status;
}

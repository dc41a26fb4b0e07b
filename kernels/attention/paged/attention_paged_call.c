/*
 * The call of attention over paged sequences, and the table of its kernels.
 */
#include "attention/attention_table.h"
#include "attention/forward/attention_launch.h"
#include "attention/paged/attention_paged_maps.h"
#include "core/check.h"

KN_IMAGES(attention_paged_1_naive);
KN_IMAGES(attention_paged_2_tensor);
KN_IMAGES(attention_paged_3_hopper);
KN_IMAGES(attention_paged_defects);

/* ---- the table ------------------------------------------------------------------------------- */

static const char *paged_refuse(const struct kn_variant *row, const void *data) {
    const struct attention_paged_problem *problem = data;
    const struct kn_attention *x = &problem->whole;
    const char *why = attention_row_refuse(row, x->type, x->head_size,
                                           problem->rows.is_aligned && problem->is_aligned);
    if (why != NULL || (row->needs & ATTENTION_BY_MAPS) == 0) return why;
    return attention_paged_maps_refuse(problem, row->size);
}

static const struct kn_variant variants[] = {
#define PAGED(...) ATTENTION_ROWS(attention_paged, paged_refuse, NULL, __VA_ARGS__)
#include "attention/attention_table.def"
#undef PAGED
};
const struct kn_variants kn_attention_paged_variants = {"attention over paged sequences", variants,
                                                        sizeof variants / sizeof variants[0]};

#define DEFECT(which)                                                                              \
    ATTENTION_DEFECT(attention_paged, paged_refuse, which, defects, 90, F16, 64, MAPS, HOPPER)
static const struct kn_variant defects[] = {DEFECT(next_page) DEFECT(old_page) DEFECT(
    position_too_many) DEFECT(values_kept) DEFECT(early_values) DEFECT(lost_consumer)};
const struct kn_variants kn_attention_paged_defects = {"defects of attention over paged sequences",
                                                       defects, sizeof defects / sizeof defects[0]};

/* ---- the call -------------------------------------------------------------------------------- */

tol_status kn_attention_paged(struct kn_kernels *kernels, struct tol_stream *stream,
                              const struct kn_attention_paged *p) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    CUtensorMap maps[ATTENTION_MAPS];
    struct attention_launch launch = {.maps = maps};
    struct attention_paged_problem problem = {.paged = p};
    TOL_CHECK(kernels != NULL && stream != NULL && p != NULL, TOL_INVALID_ARGUMENT,
              "attention over paged sequences needs a set of kernels, a stream and a problem");
    const struct kn_attention *x = &p->attention;
    TOL_TRY(attention_paged_check(p, &problem));
    if (x->batch == 0 || x->heads == 0 || x->q_length == 0) return TOL_OK;
    problem.rows.has_maps = kn_tensor_map_has(kn_kernels_context(kernels));
    TOL_TRY(kn_kernels_choose(kernels, &kn_attention_paged_variants,
                              (struct kn_wish){p->variant, p->variants}, NULL, &problem, &variant,
                              &launch.kernel));
    if ((variant->needs & ATTENTION_BY_MAPS) != 0) {
        TOL_TRY(attention_paged_maps_make(kn_kernels_context(kernels), &problem, maps));
        launch.map_count = ATTENTION_MAPS;
    }
    launch.shape = attention_tiles(variant, x);
    status = attention_launch(stream, &launch, &problem.arguments, sizeof problem.arguments);
out:
    return status;
}

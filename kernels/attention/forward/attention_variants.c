/*
 * The tables of attention's kernels, and what each needs of a problem.
 */
#include "attention/forward/attention_variants.h"

#include "attention/forward/attention_combine.h"
#include "attention/forward/attention_maps.h"

KN_IMAGES(attention_1_naive);
KN_IMAGES(attention_2_tiled);
KN_IMAGES(attention_3_tensor);
KN_IMAGES(attention_4_decode);
KN_IMAGES(attention_5_combine);
KN_IMAGES(attention_6_grouped);
KN_IMAGES(attention_7_hopper);
KN_IMAGES(attention_8_early);
KN_IMAGES(attention_defects);

/* With up to DECODE_ROWS_MAX rows of q, memory bounds the time. GROUPED_ROWS_MAX: of an mma. */
enum { DECODE_ROWS_MAX = 8, GROUPED_ROWS_MAX = 16 };

static const char *variant_refuse(const struct kn_variant *row, const void *data) {
    const struct attention_problem *problem = data;
    const struct kn_attention *x = problem->attention;
    const struct attention_arguments *a = &problem->arguments;
    const bool by_row = (row->needs & ATTENTION_BY_ROW) != 0;
    const bool by_head = (row->needs & ATTENTION_BY_HEAD) != 0;
    const char *why = attention_row_refuse(row, x->type, x->head_size, problem->is_aligned);
    if (why != NULL) return why;
    if ((row->needs & ATTENTION_BY_MAPS) != 0) return attention_maps_refuse(problem, row->size);
    if ((by_row || by_head) && a->causal && a->window < a->kv_length) return "it knows no window";
    if (by_row && x->q_length > DECODE_ROWS_MAX) return "it is for 8 rows of q and fewer";
    if (by_head && (size_t)a->group * x->q_length > GROUPED_ROWS_MAX) {
        return "more than 16 rows share a head of k and v";
    }
    return NULL;
}

static const struct kn_variant variants[] = {
#define FORWARD(...) ATTENTION_ROWS(attention, variant_refuse, NULL, __VA_ARGS__)
#include "attention/attention_table.def"
#undef FORWARD
};
const struct kn_variants kn_attention_variants = {"attention", variants,
                                                  sizeof variants / sizeof variants[0]};

static const struct kn_variant combines[] = {
#define COMBINE(...) ATTENTION_ROWS(attention, variant_refuse, NULL, __VA_ARGS__)
#include "attention/attention_table.def"
#undef COMBINE
};
const struct kn_variants kn_attention_combine = {"attention's merging", combines,
                                                 sizeof combines / sizeof combines[0]};

#define DEFECT(which)                                                                              \
    ATTENTION_DEFECT(attention, variant_refuse, which, defects, 80, F16, 64, ALIGNED, TENSOR)
static const struct kn_variant defects[] = {
    DEFECT(no_rescale) DEFECT(no_maximum) DEFECT(causal_plus_one) DEFECT(keys_unmasked)
        DEFECT(tail_unwritten) DEFECT(window_plus_one) DEFECT(window_tile_lost)};
const struct kn_variants kn_attention_defects = {"attention's defects", defects,
                                                 sizeof defects / sizeof defects[0]};

/*
 * The tables of the kernels of attention's backward pass, and what each needs of a problem.
 */
#include "attention/backward/attention_backward_variants.h"

#include "attention/backward/attention_backward_maps.h"

KN_IMAGES(attention_backward_1_naive);
KN_IMAGES(attention_backward_2_tensor);
KN_IMAGES(attention_backward_3_hopper);
KN_IMAGES(attention_backward_4_ordered);
KN_IMAGES(attention_backward_defects);
KN_IMAGES(attention_backward_hopper_defects);
KN_IMAGES(attention_backward_ordered_defects);

static const char *backward_refuse(const struct kn_variant *row, const void *data) {
    const struct attention_backward_problem *problem = data;
    const struct kn_attention *x = &problem->backward->forward;
    const char *why = attention_row_refuse(row, x->type, x->head_size, problem->is_aligned);
    if (why != NULL) return why;
    if ((row->needs & ATTENTION_BY_MAPS) != 0 && !attention_backward_maps_serve(problem)) {
        return "no tensor maps can be made";
    }
    if ((row->needs & ATTENTION_TO_SUMS) != 0 && problem->arguments.sums == 0) {
        return "the sums do not fit the workspace";
    }
    return NULL;
}

static const char *backward_decline(const struct kn_variant *row, const void *data,
                                    const struct tol_device *device) {
    const struct attention_backward_problem *problem = data;
    (void)device; /* the choice is the same on each, so that the bits are */
    if ((row->needs & ATTENTION_TO_SUMS) == 0) return NULL;
    return attention_backward_is_long(&problem->backward->forward) ? NULL
                                                                   : "there are few tiles of keys";
}

static const struct kn_variant variants[] = {
#define BACKWARD(...)                                                                              \
    ATTENTION_ROWS(attention_backward, backward_refuse, backward_decline, __VA_ARGS__)
#include "attention/attention_table.def"
#undef BACKWARD
};
const struct kn_variants kn_attention_backward_variants = {"attention's backward pass", variants,
                                                           sizeof variants / sizeof variants[0]};

static const struct kn_variant beside[] = {
#define BESIDE_BACKWARD(...) ATTENTION_ROWS(attention, backward_refuse, NULL, __VA_ARGS__)
#include "attention/attention_table.def"
#undef BESIDE_BACKWARD
};
const struct kn_variants kn_attention_backward_beside = {"attention's backward pass", beside,
                                                         sizeof beside / sizeof beside[0]};

#define DEFECT(which, image, capability, TYPE, needs, shape)                                       \
    ATTENTION_DEFECT(attention_backward, backward_refuse, which, image, capability, TYPE, 64,      \
                     needs, shape)
#define TENSOR_DEFECT(which) DEFECT(which, defects, 80, F16, ALIGNED, GRADIENT_TENSOR)
#define HOPPER_DEFECT(which) DEFECT(which, hopper_defects, 90, BF16, SIZE_MAPS, GRADIENT_HOPPER)
#define ORDERED_DEFECT(which) DEFECT(which, ordered_defects, 90, BF16, SUMS, ORDERED)
static const struct kn_variant defects[] = {
    TENSOR_DEFECT(no_delta) TENSOR_DEFECT(lost_head) TENSOR_DEFECT(unmasked)
        TENSOR_DEFECT(last_tile_lost) TENSOR_DEFECT(swapped_figures) TENSOR_DEFECT(unscaled)
            HOPPER_DEFECT(lost_consumer) HOPPER_DEFECT(lost_step) HOPPER_DEFECT(wrong_head)
                ORDERED_DEFECT(lost_part) ORDERED_DEFECT(lost_keys) ORDERED_DEFECT(wrong_half)};
const struct kn_variants kn_attention_backward_defects = {
    "defects of attention's backward pass", defects, sizeof defects / sizeof defects[0]};

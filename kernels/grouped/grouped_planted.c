/*
 * The table of grouped's kernels with a defect. Only programs that name it link it.
 */
#include "grouped_check.h"

KN_IMAGES(grouped_planted);

static const char *grouped_planted_planted_refuses(const struct kn_variant *row, const void *of) {
    const struct grouped_problem *problem = of;
    if ((row->types & 1U << problem->grouped->type) == 0 || !problem->grouped->transpose_b) {
        return "it is for another type or order of b";
    }
    if (!problem->is_aligned) return "a row of a or b does not begin at a multiple of 16 bytes";
    return problem->arguments.k > 0 && problem->has_maps ? NULL : "no tensor maps can be made";
}

#define ROW(which, type, TYPE, blocks)                                                             \
    {                                                                                              \
        .name = #which, .entry = "grouped_" #which "_" #type, .images = kn_images_grouped_planted, \
        .compute_capability_min = 90, .types = 1 << KN_GROUPED_##TYPE,                             \
        .refuse = grouped_planted_planted_refuses, .threads = 384, .shared_bytes = 226 << 10,      \
        .tile = {128 * (blocks), (blocks) == 2 ? 192 : 128, 0}, .cluster = blocks                  \
    }

static const struct kn_variant rows[] = {
    ROW(early_release, bf16, BF16, 1), ROW(wrong_group, bf16, BF16, 1),
    ROW(over_end, bf16, BF16, 1),      ROW(lost_consumer, bf16, BF16, 1),
    ROW(lost_scale, bf16, BF16, 1),    ROW(no_promotion, e4m3, E4M3, 1),
    ROW(lost_stage, e4m3, E4M3, 1),    ROW(lost_half, e4m3, E4M3, 2)};

const struct kn_variants kn_grouped_planted_variants = {"grouped, with a defect", rows,
                                                        sizeof rows / sizeof rows[0]};

/*
 * The table of grouped's kernels with a defect. Only programs that name it link it.
 */
#include "grouped_problem.h"

KN_IMAGES(grouped_planted);

static const char *refuse(const struct grouped_problem *problem, enum kn_grouped_type type) {
    if (problem->grouped->type != type || !problem->grouped->transpose_b) {
        return "it is for another type or order of b";
    }
    if (!problem->is_aligned) return "a row of a or b does not begin at a multiple of 16 bytes";
    return problem->arguments.k > 0 && problem->has_maps ? NULL : "no tensor maps can be made";
}

static const char *only_bf16(const void *problem) {
    return refuse(problem, KN_GROUPED_BF16);
}

static const char *only_e4m3(const void *problem) {
    return refuse(problem, KN_GROUPED_E4M3);
}

#define ROW(which, type, accepts, blocks)                                                          \
    {                                                                                              \
        .name = #which, .entry = "grouped_" #which "_" #type, .images = kn_images_grouped_planted, \
        .compute_capability_min = 90, .refuse = accepts, .threads = 384,                           \
        .shared_bytes = 226 << 10, .tile = {128 * (blocks), (blocks) == 2 ? 192 : 128, 0},         \
        .cluster = blocks                                                                          \
    }

static const struct kn_variant rows[] = {
    ROW(early_release, bf16, only_bf16, 1), ROW(wrong_group, bf16, only_bf16, 1),
    ROW(over_end, bf16, only_bf16, 1),      ROW(lost_consumer, bf16, only_bf16, 1),
    ROW(lost_scale, bf16, only_bf16, 1),    ROW(no_promotion, e4m3, only_e4m3, 1),
    ROW(lost_stage, e4m3, only_e4m3, 1),    ROW(lost_half, e4m3, only_e4m3, 2)};

const struct kn_variants kn_grouped_planted_variants = {"grouped, with a defect", rows,
                                                        sizeof rows / sizeof rows[0]};

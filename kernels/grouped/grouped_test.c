/*
 * grouped: every kernel over groups that no tile divides, what follows a product, and planted
 * defects.
 */
#include "grouped_trial.h"

#include "kernel_scene.h"
#include "test/test_device.h"

#include <math.h>
#include <string.h>

TestSuite(grouped, .init = kernel_scene_begin, .fini = kernel_scene_end);

/* Tiles and parts of them, a group of one row, empty ones first, between and last; rows before
 * the first group and after the last are in none. */
enum { ROWS = 212, GROUPS = 7 };
static const int32_t begins[GROUPS + 1] = {3, 3, 76, 77, 77, 206, 209, 209};

static void must_be_right(const struct kn_grouped_trial *trial) {
    char text[400];
    const struct kn_grouped *g = &trial->grouped;
    struct kn_grouped_outcome outcome;
    if (!test_takes_trial()) return;
    MUST(kn_grouped_try(kernels, stream, trial, &outcome));
    cr_assert(outcome.deviation.failed == 0 && outcome.deviation.count > 0,
              "%s to %s, %s, %zu x %zu x %zu, %s, seed %llu: %s", kn_grouped_type_name(g->type),
              kn_grouped_type_name(g->c_type), g->transpose_b ? "nt" : "nn", g->m, g->n, g->k,
              outcome.variant->entry, (unsigned long long)trial->seed,
              kn_deviation_text(&outcome.deviation, text, sizeof text));
    cr_assert(outcome.touched == 0, "%s: %zu bytes outside of c changed", outcome.variant->entry,
              outcome.touched);
}

static int capability(void) {
    return tol_context_device(test_context())->compute_capability;
}

/* One variant of one type: every type of C, each thing that may follow, groups and none, rows that
 * are aligned and, where the variant takes them, rows that are not. */
static void try_variant(const char *variant, enum kn_grouped_type type, bool transpose_b, size_t n,
                        size_t k, bool is_aligned) {
    for (unsigned way = 0; way < KN_GROUPED_TYPES * 2; way++) {
        const bool has_groups = way % 2 == 0;
        const bool is_wide = way % KN_GROUPED_TYPES < KN_GROUPED_E4M3;
        const struct kn_grouped_trial trial = {
            .grouped = {.type = type,
                        .c_type = way % KN_GROUPED_TYPES,
                        .transpose_b = transpose_b,
                        .m = has_groups ? ROWS : 70,
                        .n = n,
                        .k = k,
                        .groups = has_groups ? GROUPS : 0,
                        .alpha = way == 3 ? -0.75f : 1,
                        .c_scale = is_wide ? 0 : 0.125f,
                        .activation = way % KN_ACTIVATIONS,
                        .residual_type = way / 2 % (KN_GROUPED_BF16 + 1),
                        .variant = variant},
            .begins = has_groups ? begins : NULL,
            .has_bias = way != 1,
            .has_a_scale = way % 3 != 1,
            .has_b_scale = way % 3 != 2,
            .has_residual = way % 4 >= 2,
            .is_in_place = is_wide && way % 4 == 1,
            .is_whole = way >= KN_GROUPED_TYPES,
            .gap = is_aligned ? 16 : 3,
            .align = is_aligned ? 16 : 0,
            .skew = is_aligned ? 0 : 1,
            .seed = 1000 * n + 10 * k + way};
        must_be_right(&trial);
    }
}

static void try_all(const char *variant, size_t n, size_t k, bool is_aligned) {
    for (enum kn_grouped_type type = KN_GROUPED_F16; type <= KN_GROUPED_E4M3; type++) {
        for (int transpose_b = 0; transpose_b < 2; transpose_b++) {
            try_variant(variant, type, transpose_b, n, k, is_aligned);
        }
    }
}

Test(grouped, naive_is_right) {
    try_all("naive", 131, 19, false);
    try_all("naive", 8, 32, true);
}

Test(grouped, tensor_is_right) {
    if (capability() < 80) cr_skip_test("before 8.0");
    try_all("tensor", 67, 45, false);
    try_all("tensor", 72, 96, true);
}

/* k: fewer stages than the ring has, and more. */
Test(grouped, wgmma_is_right) {
    static const char *const variants[] = {"wgmma_128", "wgmma_256"};
    if (capability() != 90) cr_skip_test("not 9.0");
    for (int i = 0; i < 2; i++) {
        for (enum kn_grouped_type type = KN_GROUPED_F16; type <= KN_GROUPED_BF16; type++) {
            try_variant(variants[i], type, true, 140 + 130 * (size_t)i, 40, true);
            try_variant(variants[i], type, false, 136 + 130 * (size_t)i,
                        (7 - 2 * (size_t)i) * 64 + 5, true);
        }
    }
    try_variant("wgmma_128", KN_GROUPED_E4M3, true, 140, 56, true);
    try_variant("wgmma_128", KN_GROUPED_E4M3, true, 129, 7 * 128 + 5, true);
    try_variant("wgmma_pair", KN_GROUPED_E4M3, true, 140, 56, true);
    try_variant("wgmma_pair", KN_GROUPED_E4M3, true, 40, 3 * 128, true);
    try_variant("wgmma_pair", KN_GROUPED_E4M3, true, 328, 6 * 128 + 5, true);
    try_variant("wgmma_192", KN_GROUPED_E4M3, true, 80, 56, true);
    try_variant("wgmma_192", KN_GROUPED_E4M3, true, 328, 6 * 128 + 5, true);
}

/* Where one factor is all that follows, rows leave registers as pieces of 16 bytes. */
Test(grouped, plain_rows_are_right) {
    static const struct {
        const char *variant;
        enum kn_grouped_type type;
    } all[] = {{"wgmma_128", KN_GROUPED_F16},
               {"wgmma_256", KN_GROUPED_BF16},
               {"wgmma_128", KN_GROUPED_E4M3},
               {"wgmma_192", KN_GROUPED_E4M3},
               {"wgmma_pair", KN_GROUPED_E4M3}};
    if (capability() != 90) cr_skip_test("not 9.0");
    for (unsigned i = 0; i < 4 * sizeof all / sizeof all[0]; i++) {
        const bool has_groups = i % 2 == 0;
        must_be_right(&(struct kn_grouped_trial){
            .grouped = {.type = all[i / 4].type,
                        .c_type = i / 2 % 2 == 0 ? KN_GROUPED_F16 : KN_GROUPED_BF16,
                        .transpose_b = true,
                        .m = has_groups ? ROWS : 134,
                        .n = 264,
                        .k = 300,
                        .groups = has_groups ? GROUPS : 0,
                        .alpha = -0.75f,
                        .c_scale = 0.125f,
                        .variant = all[i / 4].variant},
            .begins = has_groups ? begins : NULL,
            .is_whole = i % 3 == 0,
            .gap = 16,
            .align = 16,
            .seed = 50 + i});
    }
}

Test(grouped, what_it_chooses_is_right) {
    try_all(NULL, 72, 80, true);
    try_all(NULL, 33, 1, false);
}

/* Without steps C is what follows a sum of 0. */
Test(grouped, no_steps_are_a_sum_of_nothing) {
    for (enum kn_grouped_type type = KN_GROUPED_F16; type <= KN_GROUPED_E4M3; type++) {
        must_be_right(&(struct kn_grouped_trial){
            .grouped = {.type = type, .m = 9, .n = 11, .alpha = 1, .activation = KN_SILU},
            .has_bias = true,
            .seed = 4});
    }
}

/* Goal: in e4m3 a long sum keeps more digits than the tensor cores add. */
Test(grouped, long_sums_of_bytes_are_exact) {
    must_be_right(&(struct kn_grouped_trial){
        .grouped =
            {.type = KN_GROUPED_E4M3, .transpose_b = true, .m = 65, .n = 48, .k = 3200, .alpha = 1},
        .is_whole = true,
        .is_positive = true,
        .align = 16,
        .seed = 8});
}

/* Whatever the device has in begins: what falls counts as its predecessor, and what is outside of
 * the rows as their end, so nothing outside of C is written. */
Test(grouped, begins_that_make_no_sense_write_no_more_than_c) {
    static const int32_t all[][4] = {{-5, 40, 20, 1000},
                                     {90, 10, 5, 0},
                                     {INT32_MIN, INT32_MAX, INT32_MIN, 7},
                                     {0, -1, -1, INT32_MAX}};
    static const char *const variants[] = {"naive", "tensor", "wgmma_128", "wgmma_256"};
    for (unsigned i = 0; i < 16; i++) {
        const unsigned which = i / 4;
        if ((which == 1 && capability() < 80) || (which > 1 && capability() != 90)) continue;
        struct kn_grouped_outcome outcome;
        const struct kn_grouped_trial trial = {.grouped = {.type = KN_GROUPED_BF16,
                                                           .m = 200,
                                                           .n = 24,
                                                           .k = 24,
                                                           .groups = 3,
                                                           .alpha = 1,
                                                           .variant = variants[which]},
                                               .begins = all[i % 4],
                                               .align = 8,
                                               .seed = i};
        MUST(kn_grouped_try(kernels, stream, &trial, &outcome));
        cr_assert(outcome.deviation.failed == 0 && outcome.touched == 0, "%s, %u: %zu, %zu",
                  variants[which], i % 4, outcome.deviation.failed, outcome.touched);
    }
}

/* Goal: what can go wrong in a pipeline, between groups and in the epilogue is found. */
Test(grouped, each_planted_defect_is_found) {
    static const struct {
        const char *name;
        enum kn_grouped_type type;
    } defects[] = {
        {"early_release", KN_GROUPED_BF16}, {"wrong_group", KN_GROUPED_BF16},
        {"over_end", KN_GROUPED_BF16},      {"lost_consumer", KN_GROUPED_BF16},
        {"lost_scale", KN_GROUPED_BF16},    {"no_promotion", KN_GROUPED_E4M3},
        {"lost_stage", KN_GROUPED_E4M3},    {"lost_half", KN_GROUPED_E4M3},
    };
    if (capability() != 90) cr_skip_test("not 9.0");
    for (unsigned i = 0; i < 2 * sizeof defects / sizeof defects[0]; i++) {
        const bool is_long = strcmp(defects[i / 2].name, "no_promotion") == 0;
        const struct kn_grouped_trial trial = {.grouped = {.type = defects[i / 2].type,
                                                           .transpose_b = true,
                                                           .m = ROWS,
                                                           .n = 136,
                                                           .k = is_long ? 3200 : 9 * 64,
                                                           .groups = GROUPS,
                                                           .alpha = 1,
                                                           .variants = &kn_grouped_planted_variants,
                                                           .variant = defects[i / 2].name},
                                               .begins = begins,
                                               .has_b_scale = true,
                                               .is_whole = i % 2 == 1 || is_long,
                                               .is_positive = is_long,
                                               .align = 16,
                                               .seed = 31 + i};
        struct kn_grouped_outcome outcome;
        MUST(kn_grouped_try(kernels, stream, &trial, &outcome));
        cr_assert(outcome.deviation.failed > 0 || outcome.touched > 0, "%s, %s",
                  defects[i / 2].name, trial.is_whole ? "whole numbers" : "drawn");
    }
}

/*
 * Products of quantised rows: every variant, over shapes that divide nothing, distributions and
 * kinds of blocks, within the bound that it declares; NaN and infinities; strides and alignment.
 */
#include "quant_product_trial.h"
#include "kernel_scene.h"

#include "test/test_device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

TestSuite(quant_product, .fini = kernel_scene_end);

static struct kn_quant_finding find(const struct kn_quant_trial *trial) {
    struct kn_quant_finding finding;
    MUST(kn_quant_trial(kernels, stream, trial, &finding));
    cr_assert(finding.changed == 0 && finding.gaps_changed == 0,
              "%zu bytes outside y have changed, and %zu elements between columns", finding.changed,
              finding.gaps_changed);
    return finding;
}

static void check(const struct kn_quant_trial *t) {
    char text[512];
    if (!test_takes_trial()) return;
    const struct kn_quant_finding finding = find(t);
    cr_assert(finding.deviation.failed == 0,
              "%s by %s in %s, %zu x %zu, k %zu, %s blocks, x %s, seed %llu: %s",
              kn_quant_name(t->quant), t->variant != NULL ? t->variant : "the best",
              kn_quant_arithmetic_name(t->arithmetic), t->rows, t->columns, t->k,
              kn_quant_blocks_name(t->kind), kn_distribution_name(t->distribution),
              (unsigned long long)t->seed,
              kn_deviation_text(&finding.deviation, text, sizeof text));
    if (t->arithmetic != KN_QUANT_Q8_1) return;
    cr_assert(finding.rounded.failed == 0, "with x rounded: %s",
              kn_deviation_text(&finding.rounded, text, sizeof text));
}

static const size_t shapes[][3] = {/* rows, columns, blocks of 256 */
                                   {1, 1, 1},  {3, 1, 2},  {37, 1, 9},  {130, 1, 1}, {5, 2, 3},
                                   {17, 8, 2}, {66, 9, 1}, {33, 40, 2}, {65, 67, 1}};

enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void check_shapes(enum kn_quant_arithmetic arithmetic, const char *variant) {
    static const enum kn_distribution distributions[] = {KN_NORMAL, KN_UNIFORM, KN_SPARSE,
                                                         KN_CANCEL, KN_LARGE};
    kernel_scene_begin();
    for (unsigned i = 0; i < SHAPES * KN_QUANTS; i++) {
        struct kn_quant_trial trial = {.quant = (enum kn_quant)(i % KN_QUANTS),
                                       .arithmetic = arithmetic,
                                       .rows = shapes[i / KN_QUANTS][0],
                                       .columns = shapes[i / KN_QUANTS][1],
                                       .k = shapes[i / KN_QUANTS][2] * 256,
                                       .variant = variant,
                                       .distribution = distributions[i % 5],
                                       .scale = 1,
                                       .seed = i + 1};
        if (trial.quant == KN_Q8_0 && trial.k > 256) trial.k -= 32 * (1 + i % 7);
        check(&trial);
    }
}

Test(quant_product, naive_ones_stay_within_their_bound) {
    check_shapes(KN_QUANT_F32, "naive");
}
Test(quant_product, rows_stay_within_their_bound) {
    check_shapes(KN_QUANT_F32, "rows");
}
Test(quant_product, tensor_ones_stay_within_their_bound) {
    check_shapes(KN_QUANT_F16, "tensor");
}
Test(quant_product, integers_stay_within_their_bound) {
    check_shapes(KN_QUANT_Q8_1, "integers");
}

/* k at the ends of what lanes have at a time, and the longest that fits. */
Test(quant_product, those_that_round_x_themselves_stay_within_their_bound) {
    static const char *const variants[] = {"early_1", "staged_1", "bulk_early"};
    static const size_t sizes[][2] = {/* rows, blocks of 256 */
                                      {1, 1}, {3, 8}, {37, 9}, {33, 24}, {17, 25}, {2, 153}};
    static const enum kn_distribution distributions[] = {
        KN_NORMAL, KN_UNIFORM, KN_SPARSE, KN_CANCEL, KN_LARGE, KN_TINY, KN_DENORMAL};
    kernel_scene_begin();
    for (unsigned i = 0; i < 3 * 7; i++) {
        const char *variant = variants[i / 7];
        const size_t blocks = sizes[i % 6][1];
        const bool is_bulk = strncmp(variant, "bulk", 4) == 0;
        check(&(struct kn_quant_trial){.quant = KN_Q4_K,
                                       .arithmetic = KN_QUANT_Q8_1,
                                       .rows = sizes[i % 6][0],
                                       .columns = 1,
                                       .k = (is_bulk && blocks > 147 ? 147 : blocks) * 256,
                                       .variant = variant,
                                       .distribution = distributions[i % 7],
                                       .scale = 1,
                                       .seed = i + 1});
    }
}

/* More rows than all warps have at once, so that slots of the ring are filled again; an odd number
 * of rows. */
Test(quant_product, slots_of_rings_are_filled_again) {
    static const size_t sizes[][2] = {/* rows, blocks of 256 */ {4229, 1}, {4513, 3}, {21, 90}};
    kernel_scene_begin();
    for (unsigned i = 0; i < 3; i++) {
        check(&(struct kn_quant_trial){.quant = KN_Q4_K,
                                       .arithmetic = KN_QUANT_Q8_1,
                                       .rows = sizes[i][0],
                                       .columns = 1,
                                       .k = sizes[i][1] * 256,
                                       .variant = "bulk_early",
                                       .distribution = KN_NORMAL,
                                       .scale = 1,
                                       .seed = i + 1});
    }
}

/* Any number of columns; rows that fill fragments or do not, and tiles of 16 rows and more, which
 * needs more rows than 16 for each of the device's multiprocessors; k within a slot of the ring and
 * around it, and of more elements than all warps round at once. */
Test(quant_product, columns_of_bytes_stay_within_their_bound) {
    static const size_t sizes[][2] = {/* rows, blocks of 256 */
                                      {1, 1},   {3, 70},  {37, 9}, {33, 29},
                                      {17, 30}, {150, 3}, {130, 5}};
    static const enum kn_distribution distributions[] = {
        KN_NORMAL, KN_UNIFORM, KN_SPARSE, KN_CANCEL, KN_LARGE, KN_TINY, KN_DENORMAL};
    static const enum kn_quant_blocks kinds[] = {KN_BLOCKS_USUAL, KN_BLOCKS_SUBNORMAL,
                                                 KN_BLOCKS_EXTREME};
    kernel_scene_begin();
    for (unsigned i = 0; i < 7 * 7; i++) {
        check(&(struct kn_quant_trial){.quant = KN_Q4_K,
                                       .arithmetic = KN_QUANT_Q8_1,
                                       .rows = sizes[i % 7][0],
                                       .columns = 2 + (i + i / 7) % 7,
                                       .k = sizes[i % 7][1] * 256,
                                       .variant = "columns",
                                       .kind = i / 7 < 5 ? KN_BLOCKS_USUAL : kinds[i % 3],
                                       .distribution = distributions[i / 7],
                                       .scale = 1,
                                       .seed = i + 1,
                                       .x_gap = i % 2 * 3,
                                       .y_gap = i % 3 * 5,
                                       .x_skew = i % 4 * 4});
    }
}

/* A NaN in x reaches its column of y alone, and one in weights its row alone. */
Test(quant_product, columns_of_bytes_keep_what_is_no_number_apart) {
    kernel_scene_begin();
    for (unsigned i = 0; i < 7; i++) {
        struct kn_quant_trial trial = {.quant = KN_Q4_K,
                                       .arithmetic = KN_QUANT_Q8_1,
                                       .rows = 19,
                                       .columns = 2 + i,
                                       .k = 1280,
                                       .variant = "columns",
                                       .distribution = KN_NORMAL,
                                       .scale = 1,
                                       .seed = i + 1};
        trial.poison = i % 2 == 0 ? NAN : INFINITY;
        trial.poison_at = 1 + (trial.columns - 1) * 1280 + 211 * i;
        struct kn_quant_finding finding = find(&trial);
        cr_assert(finding.not_finite == 19, "%zu elements, case %u", finding.not_finite, i);
        trial.poison_at = 0;
        trial.poisoned_row = 1 + 3 * i;
        finding = find(&trial);
        cr_assert(finding.not_finite == trial.columns, "%zu elements of a row, case %u",
                  finding.not_finite, i);
    }
}

/* Tiles of 17 to 32 rows, and several tiles of a block, of one slot and of two. */
Test(quant_product, columns_of_bytes_have_tall_tiles_too) {
    static const size_t sizes[][2] = {/* rows, blocks of 256 */ {2117, 1}, {4224, 13}, {4513, 5}};
    kernel_scene_begin();
    for (unsigned i = 0; i < 3; i++) {
        check(&(struct kn_quant_trial){.quant = KN_Q4_K,
                                       .arithmetic = KN_QUANT_Q8_1,
                                       .rows = sizes[i][0],
                                       .columns = 3 + i,
                                       .k = sizes[i][1] * 256,
                                       .variant = "columns",
                                       .distribution = KN_NORMAL,
                                       .scale = 1,
                                       .seed = i + 1});
    }
}

/* Blocks of extreme and subnormal scales, x that is tiny and subnormal. */
Test(quant_product, odd_numbers_stay_within_the_bounds) {
    static const enum kn_quant_blocks kinds[] = {KN_BLOCKS_USUAL, KN_BLOCKS_SUBNORMAL,
                                                 KN_BLOCKS_EXTREME};
    static const enum kn_distribution distributions[] = {KN_TINY, KN_DENORMAL, KN_NORMAL};
    kernel_scene_begin();
    for (unsigned i = 0; i < 54; i++) {
        struct kn_quant_trial trial = {.quant = (enum kn_quant)(i % KN_QUANTS),
                                       .arithmetic = i / 3 % 2 == 0 ? KN_QUANT_F32 : KN_QUANT_Q8_1,
                                       .rows = 9,
                                       .columns = 1 + i % 2 * 4,
                                       .k = 512,
                                       .kind = kinds[i / 6 % 3],
                                       .distribution = distributions[i / 18],
                                       .scale = 1,
                                       .seed = i + 1};
        check(&trial);
    }
}

/* A NaN or an infinity in one column reaches all of its y and no other column's. */
Test(quant_product, what_is_no_number_stays_in_its_column) {
    static const float poisons[] = {NAN, INFINITY, -INFINITY};
    kernel_scene_begin();
    for (unsigned i = 0; i < 3 * KN_QUANTS * KN_QUANT_ARITHMETICS * 2; i++) {
        const enum kn_quant_arithmetic arithmetic =
            (enum kn_quant_arithmetic)(i / 9 % KN_QUANT_ARITHMETICS);
        struct kn_quant_trial trial = {.quant = (enum kn_quant)(i % KN_QUANTS),
                                       .arithmetic = arithmetic,
                                       .rows = 19,
                                       .columns = i / 27 == 0 ? 1 : 11,
                                       .k = 512,
                                       .distribution = KN_NORMAL,
                                       .scale = 1,
                                       .seed = i + 1,
                                       .poison = poisons[i / 3 % 3]};
        trial.poison_at = 1 + (trial.columns / 2) * 512 + 37 * i % 512;
        const struct kn_quant_finding finding = find(&trial);
        cr_assert(finding.not_finite == trial.rows, "%s in %s: %zu of %zu elements, case %u",
                  kn_quant_name(trial.quant), kn_quant_arithmetic_name(arithmetic),
                  finding.not_finite, trial.rows * trial.columns, i);
    }
}

/* If wide loads are impossible, another variant is chosen; gaps are never written. */
Test(quant_product, columns_may_be_apart_and_odd) {
    static const size_t skews[][3] = {{0, 0, 4}, {0, 4, 0}, {2, 0, 12}, {6, 8, 8}};
    kernel_scene_begin();
    for (unsigned i = 0; i < 4 * KN_QUANTS * 2; i++) {
        struct kn_quant_trial trial = {.quant = (enum kn_quant)(i % KN_QUANTS),
                                       .arithmetic = KN_QUANT_F32,
                                       .rows = 21,
                                       .columns = 6,
                                       .k = 256,
                                       .distribution = KN_NORMAL,
                                       .scale = 1,
                                       .seed = i + 1,
                                       .x_gap = i / 12 == 0 ? 12 : 3,
                                       .y_gap = 5,
                                       .weights_skew = skews[i / 3 % 4][0],
                                       .x_skew = skews[i / 3 % 4][1],
                                       .y_skew = skews[i / 3 % 4][2]};
        check(&trial);
    }
    for (enum kn_quant quant = 0; quant < KN_QUANTS; quant++) {
        for (enum kn_quant_arithmetic a = KN_QUANT_F16; a < KN_QUANT_ARITHMETICS; a++) {
            check(&(struct kn_quant_trial){.quant = quant,
                                           .arithmetic = a,
                                           .rows = 21,
                                           .columns = 12,
                                           .k = 512,
                                           .distribution = KN_UNIFORM,
                                           .scale = 1,
                                           .seed = 99,
                                           .x_gap = 8,
                                           .y_gap = 5,
                                           .y_skew = 4});
        }
    }
}

/* The trial can fail: an index that is wrong in the last block. */
Test(quant_product, two_exchanged_elements_are_found) {
    kernel_scene_begin();
    const bool has_tensors = tol_context_device(test_context())->compute_capability >= 80;
    for (enum kn_quant_arithmetic a = 0; a < KN_QUANT_ARITHMETICS; a++) {
        if (a == KN_QUANT_F16 && !has_tensors) continue;
        const struct kn_quant_finding finding = find(&(struct kn_quant_trial){.quant = KN_Q4_K,
                                                                              .arithmetic = a,
                                                                              .rows = 21,
                                                                              .columns = 3,
                                                                              .k = 512,
                                                                              .scale = 1,
                                                                              .seed = 3,
                                                                              .swaps_last = true});
        cr_assert(finding.deviation.failed > 0, "%s", kn_quant_arithmetic_name(a));
    }
}

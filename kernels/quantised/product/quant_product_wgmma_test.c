/*
 * Products by steps 8 and 9: shapes around the tiles and rings of step 8, the rounding of each
 * weight, NaN and infinities, and planted defects, which the same trials must find.
 */
#include "quantised/product/product_problem.h"
#include "quantised/product/quant_product_arguments.h"
#include "quant_product_planted.h"
#include "quant_product_trial.h"
#include "kernel_scene.h"

#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(quant_product_wgmma, .fini = kernel_scene_end);

static const char *const variants[] = {"wgmma", "wgmma_256", "wgmma_split"};

enum { VARIANTS = sizeof variants / sizeof variants[0] };

static void begin(void) {
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    kernel_scene_begin();
}

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
              "%s by %s, %zu x %zu, k %zu, %s blocks, x %s, seed %llu: %s", kn_quant_name(t->quant),
              t->variant, t->rows, t->columns, t->k, kn_quant_blocks_name(t->kind),
              kn_distribution_name(t->distribution), (unsigned long long)t->seed,
              kn_deviation_text(&finding.deviation, text, sizeof text));
}

/* As an H100 timed them: shares of k from 9 columns on, as long as there are two; where there is
 * one, "tensor" up to 32 columns, and tiles of 256 where those of 128 are more than its
 * multiprocessors. If the workspace does not fit the sums, none is split; without a workspace only
 * "tensor" is left. */
Test(quant_product_wgmma, the_fastest_is_chosen) {
#define SUMS(columns) (512 * 4 + (size_t)132 * 128 * 4 * (columns))
    enum { K = 14336 };
    static const struct {
        size_t rows, columns, k, workspace;
        const char *chosen; /* of quant_product_... */
    } cases[] = {{4096, 1, K, SIZE_MAX, "tensor_q4_k_8"},
                 {4096, 8, K, SIZE_MAX, "tensor_q4_k_8"},
                 {4096, 9, K, SIZE_MAX, "split_q4_k_128x32"},
                 {4096, 32, K, SIZE_MAX, "split_q4_k_128x32"},
                 {4096, 33, K, SIZE_MAX, "split_q4_k_128x64"},
                 {4096, 64, K, SIZE_MAX, "split_q4_k_128x64"},
                 {4096, 65, K, SIZE_MAX, "split_q4_k_128x128"},
                 {4096, 256, K, SIZE_MAX, "split_q4_k_128x128"},
                 {128, 33, K, SIZE_MAX, "split_q4_k_128x64"},
                 /* 66 tiles, or more */
                 {4096, 257, K, SIZE_MAX, "wgmma_q4_k_128"},
                 {4224, 256, K, SIZE_MAX, "split_q4_k_128x128"},
                 {4225, 256, K, SIZE_MAX, "wgmma_q4_k_128"},
                 {8448, 9, K, SIZE_MAX, "split_q4_k_128x32"},
                 {8449, 9, K, SIZE_MAX, "tensor_q4_k_8"},
                 {8448, 64, K, SIZE_MAX, "split_q4_k_128x64"},
                 {8449, 64, K, SIZE_MAX, "wgmma_q4_k_128"},
                 /* two steps that can be shared, or one */
                 {4096, 9, 512, SIZE_MAX, "split_q4_k_128x32"},
                 {4096, 9, 256, SIZE_MAX, "tensor_q4_k_8"},
                 {4096, 33, 256, SIZE_MAX, "wgmma_q4_k_128"},
                 {4096, 512, K, SIZE_MAX, "wgmma_q4_k_128"},
                 {4096, 640, K, SIZE_MAX, "wgmma_q4_k_256"},
                 {4224, 512, K, SIZE_MAX, "wgmma_q4_k_128"},
                 {4225, 512, K, SIZE_MAX, "wgmma_q4_k_256"},
                 {4096, 32, K, 2 * 32 * K + SUMS(32), "split_q4_k_128x32"},
                 {4096, 32, K, 2 * 32 * K + SUMS(32) - 1, "tensor_q4_k_8"},
                 {4096, 64, K, 2 * 64 * K + SUMS(64), "split_q4_k_128x64"},
                 {4096, 64, K, 2 * 64 * K + SUMS(64) - 1, "wgmma_q4_k_128"},
                 {4096, 65, K, 2 * 65 * K + SUMS(128), "split_q4_k_128x128"},
                 {4096, 65, K, 2 * 65 * K + SUMS(128) - 1, "wgmma_q4_k_128"},
                 {4096, 512, K, 2 * 512 * K, "wgmma_q4_k_128"},
                 {4096, 512, K, 2 * 512 * K - 1, "tensor_q4_k_64"}};
    const struct tol_device device = {.compute_capability = 90,
                                      .shared_bytes_per_block_optin = 227 << 10};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct kn_product problem = {.way = KN_PRODUCT_F16,
                                           .format = KN_WEIGHT_Q4_K,
                                           .rows = cases[i].rows,
                                           .columns = cases[i].columns,
                                           .k = cases[i].k,
                                           .x_stride = cases[i].k,
                                           .workspace.bytes = cases[i].workspace,
                                           .has_maps = true};
        const struct kn_variant *variant = NULL;
        MUST(kn_variant_pick(kn_quant_product_variants(KN_Q4_K, KN_QUANT_F16), &device, NULL,
                             &problem, &variant));
        cr_assert_str_eq(variant->entry + strlen("quant_product_"), cases[i].chosen,
                         "%zu x %zu, k %zu, %zu bytes: %s", cases[i].rows, cases[i].columns,
                         cases[i].k, cases[i].workspace, variant->entry);
    }
#undef SUMS
}

/* Rows and columns around tiles and bands of 1024 columns; k below and beyond the rings of 768
 * weights and of 192 to 640 x, whose slots are so filled again. Rows of Q6_K begin at multiples of
 * 16 bytes if k is one of 2048. */
Test(quant_product_wgmma, it_stays_within_its_bound) {
    static const size_t sizes[][3] = {/* rows, columns, blocks of 256 */
                                      {1, 1, 1},    {5, 130, 2},  {128, 128, 3},
                                      {129, 9, 4},  {300, 67, 1}, {72, 257, 2},
                                      {37, 20, 13}, {193, 33, 5}, {260, 1100, 1}};
    static const size_t long_sizes[][3] = {{1, 1, 8}, {130, 9, 8}, {70, 129, 8}, {9, 3, 16}};
    static const enum kn_distribution distributions[] = {KN_NORMAL, KN_UNIFORM, KN_SPARSE,
                                                         KN_CANCEL, KN_LARGE,   KN_TINY};
    begin();
    enum {
        SIZES = sizeof sizes / sizeof sizes[0],
        LONG = sizeof long_sizes / sizeof long_sizes[0]
    };
    for (unsigned i = 0; i < 2 * SIZES * KN_QUANTS; i++) {
        const enum kn_quant quant = (enum kn_quant)(i % KN_QUANTS);
        const size_t at = i / KN_QUANTS % SIZES;
        const size_t *size = quant == KN_Q6_K ? long_sizes[at % LONG] : sizes[at];
        const bool gaps = i % 2 == 1;
        check(&(struct kn_quant_trial){.quant = quant,
                                       .arithmetic = KN_QUANT_F16,
                                       .rows = size[0],
                                       .columns = size[1],
                                       .k = size[2] * 256,
                                       .variant = variants[i / KN_QUANTS / SIZES],
                                       .kind = i % 5 == 4 ? KN_BLOCKS_SUBNORMAL : KN_BLOCKS_USUAL,
                                       .distribution = distributions[i % 6],
                                       .scale = 1,
                                       .seed = i + 1,
                                       .x_gap = gaps ? 8 : 0,
                                       .y_gap = gaps ? 5 : 0,
                                       .y_skew = gaps ? 4 : 0});
    }
}

/* Each column of x has a single 1, so y has weights as they were rounded: the nearest halves. */
Test(quant_product_wgmma, each_weight_is_rounded_once) {
    enum { ROWS = 70, COLUMNS = 256 };
    begin();
    for (unsigned i = 0; i < 2 * VARIANTS * KN_QUANTS; i++) {
        const enum kn_quant quant = (enum kn_quant)(i % KN_QUANTS);
        const enum kn_quant_blocks kind =
            i / KN_QUANTS % 2 == 0 ? KN_BLOCKS_USUAL : KN_BLOCKS_SUBNORMAL;
        const size_t k = quant == KN_Q6_K ? 2048 : 256, count = ROWS * k;
        const size_t blocks = count / kn_quant_block_elements(quant);
        const size_t block_bytes = kn_quant_block_bytes(quant);
        const size_t space = kn_quant_product_workspace(KN_QUANT_F16, COLUMNS, k);
        tol_auto_buffer struct tol_buffer *w = NULL, *x = NULL, *y = NULL, *halves = NULL;
        static float made[COLUMNS * ROWS];
        uint64_t state = i + 1;
        char *drawn = calloc(blocks, block_bytes);
        float *values = calloc(count, sizeof *values), *ones = calloc(COLUMNS * k, sizeof *ones);
        uint16_t *rounded = calloc(count, sizeof *rounded);
        cr_assert(drawn != NULL && values != NULL && ones != NULL && rounded != NULL);
        kn_quant_draw(quant, kind, &state, blocks, drawn);
        kn_quant_values(quant, drawn, blocks, values);
        kn_numbers_store(KN_F16, values, count, rounded);
        kn_numbers_load(KN_F16, rounded, count, values);
        for (size_t n = 0; n < COLUMNS; n++) ones[n * k + n + n % (k / 256) * 256] = 1;
        MUST(tol_buffer_create(test_context(), blocks, block_bytes, &w));
        MUST(tol_buffer_create(test_context(), COLUMNS * k, sizeof *ones, &x));
        MUST(tol_buffer_create(test_context(), COLUMNS * ROWS, sizeof(float), &y));
        MUST(tol_buffer_create(test_context(), space, 1, &halves));
        MUST(tol_buffer_write(w, drawn, blocks * block_bytes));
        MUST(tol_buffer_write(x, ones, COLUMNS * k * sizeof *ones));
        MUST(kn_quant_product(kernels, stream,
                              &(struct kn_quant_product){.quant = quant,
                                                         .arithmetic = KN_QUANT_F16,
                                                         .rows = ROWS,
                                                         .columns = COLUMNS,
                                                         .k = k,
                                                         .weights = kn_place_of(w, 0),
                                                         .x = kn_place_of(x, 0),
                                                         .y = kn_place_of(y, 0),
                                                         .workspace = kn_place_of(halves, 0),
                                                         .variant = variants[i / KN_QUANTS / 2]}));
        MUST(tol_stream_synchronize(stream));
        MUST(tol_buffer_read(y, made, sizeof made));
        for (size_t e = 0; e < COLUMNS * ROWS; e++) {
            const size_t n = e / ROWS, l = n + n % (k / 256) * 256;
            cr_assert(made[e] == values[e % ROWS * k + l], "%s, element %zu of row %zu: %a, not %a",
                      kn_quant_name(quant), l, e % ROWS, (double)made[e],
                      (double)values[e % ROWS * k + l]);
        }
        free(drawn), free(values), free(ones), free(rounded);
    }
}

/* What no number is in x reaches its column alone, where others are in the same tile and in
 * another; what is no number in a row of weights reaches that row alone, in the same way. */
Test(quant_product_wgmma, what_is_no_number_stays_where_it_is) {
    static const float poisons[] = {NAN, INFINITY, -INFINITY};
    begin();
    for (unsigned i = 0; i < VARIANTS * KN_QUANTS; i++) {
        struct kn_quant_trial trial = {.quant = (enum kn_quant)(i % KN_QUANTS),
                                       .arithmetic = KN_QUANT_F16,
                                       .rows = 131,
                                       .columns = 130,
                                       .k = i % KN_QUANTS == KN_Q6_K ? 2048 : 512,
                                       .variant = variants[i / KN_QUANTS],
                                       .distribution = KN_NORMAL,
                                       .scale = 1,
                                       .seed = i + 1,
                                       .poison = poisons[(i + i / 3) % 3]};
        trial.poison_at = 1 + (size_t)(i * 11) * trial.k + 37 * i % 512;
        struct kn_quant_finding finding = find(&trial);
        cr_assert(finding.not_finite == trial.rows, "%s: %zu of %zu elements, case %u",
                  kn_quant_name(trial.quant), finding.not_finite, trial.rows * trial.columns, i);
        trial.poison_at = 0;
        trial.poisoned_row = 1 + i * 11;
        finding = find(&trial);
        cr_assert(finding.not_finite == trial.columns, "%s: %zu of %zu elements, row %u",
                  kn_quant_name(trial.quant), finding.not_finite, trial.rows * trial.columns,
                  i * 11);
    }
}

/* Of a product of more stages and slots than the rings have. */
Test(quant_product_wgmma, planted_defects_are_found) {
    begin();
    for (size_t i = 0; i <= kn_quant_product_planted.count; i++) {
        const bool is_right = i == kn_quant_product_planted.count;
        const char *name = is_right ? "wgmma" : kn_quant_product_planted.rows[i].name;
        const struct kn_quant_finding finding =
            find(&(struct kn_quant_trial){.quant = KN_Q4_K,
                                          .arithmetic = KN_QUANT_F16,
                                          .rows = 128,
                                          .columns = 20,
                                          .k = 13 * 256,
                                          .variant = name,
                                          .variants = is_right ? NULL : &kn_quant_product_planted,
                                          .distribution = KN_NORMAL,
                                          .scale = 1,
                                          .seed = 7});
        cr_assert((finding.deviation.failed == 0) == is_right, "%s: %zu of 2560 elements are off",
                  name, finding.deviation.failed);
    }
}

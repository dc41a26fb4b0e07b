/*
 * Row variants: the shapes of clusters that stay, for an H100, and who may not have them.
 */
#include "row/row_variant.h"
#include "row/row_stage_test.h"
#include "norm/norm.h"
#include "softmax/softmax.h"

#include <stdlib.h>
#include <string.h>

TestSuite(row_variant, .fini = test_end);

static const struct tol_device h100 = {.multiprocessors = 132,
                                       .shared_bytes_per_multiprocessor = 228 << 10,
                                       .shared_bytes_per_block_optin = 227 << 10};

static struct tol_launch_shape shape(unsigned blocks, unsigned pieces, size_t row_pieces,
                                     size_t rows) {
    const struct kn_variant slices = {.threads = KN_ROW_CLUSTER_THREADS,
                                      .shared_bytes = KN_ROW_SLICE_BYTES,
                                      .tile = {KN_ROW_SLICE_STAGES, pieces, KN_ROW_SLICE_BLOCKS},
                                      .cluster = blocks};
    const struct kn_row_fit fit = {.pieces = row_pieces};
    return kn_row_shape(&slices, &fit, rows, &h100);
}

static void expect(struct tol_launch_shape got, unsigned clusters, unsigned blocks,
                   unsigned threads, unsigned shared_bytes) {
    cr_assert(got.grid_x == clusters * blocks, "a grid of %u blocks", got.grid_x);
    cr_assert(got.block_x == threads, "%u threads", got.block_x);
    cr_assert(got.shared_bytes == shared_bytes, "%u bytes", got.shared_bytes);
}

/* 32,000 columns of bf16: two large blocks per multiprocessor hold what eight small ones do. */
Test(row_variant, clusters_fill_the_multiprocessors) {
    expect(shape(2, 4, 4000, 1024), 128, 2, 512, 3 * 32000);
    expect(shape(4, 4, 4000, 1024), 128, 4, 256, 3 * 16000);
    expect(shape(8, 4, 4000, 1024), 128, 8, 128, 3 * 8000);
}

/* 129 rows are two rounds, of 65 clusters as well as of 128. */
Test(row_variant, no_cluster_is_without_rows) {
    expect(shape(2, 4, 4000, 7), 7, 2, 512, 3 * 32000);
    expect(shape(2, 4, 4000, 129), 65, 2, 512, 3 * 32000);
}

/* Slices have three shares, and a multiprocessor has as many blocks as have memory. */
Test(row_variant, slices_have_three_shares) {
    expect(shape(1, 8, 4000, 1024), 128, 1, 512, 3 * 64000);
    expect(shape(4, 8, 16032, 256), 32, 4, 512, 3 * 64128);
    expect(shape(8, 8, 32064, 256), 16, 8, 512, 3 * 64128);
    expect(shape(2, 8, 4000, 1024), 128, 2, 256, 3 * 32000);
}

/* An H100 whose parts have room for 14 clusters of eight: 19 rounds of 256 rows. */
Test(row_variant, clusters_are_as_many_as_run_at_once) {
    struct tol_launch_shape got = shape(8, 8, 32064, 256);
    kn_row_clusters(&got, 8, 256, 14);
    expect(got, 14, 8, 512, 3 * 64128);
    kn_row_clusters(&got, 8, 256, 0);
    expect(got, 14, 8, 512, 3 * 64128);
    kn_row_clusters(&got, 8, 5, 14);
    expect(got, 5, 8, 512, 3 * 64128);
}

static const char *refusal(const struct kn_row_fit *fit, enum kn_type type, unsigned blocks,
                           unsigned needs) {
    const struct kn_variant row = {.types = 1U << type,
                                   .needs = needs,
                                   .size = (size_t)KN_ROW_CLUSTER_THREADS * blocks * 8,
                                   .cluster = blocks};
    return kn_row_refuses(&row, fit);
}

Test(row_variant, slices_refuse_what_clusters_refuse_and_old_drivers) {
    enum { CLUSTER = KN_ROW_WHOLE, SLICES = KN_ROW_WHOLE | KN_ROW_SLICES };
    const struct kn_row_fit fit = {.type = KN_F32, .rows = 1, .pieces = 8192};
    struct kn_row_fit old = fit;
    old.no_slices = "the driver is old";
    cr_assert(refusal(&fit, KN_F32, 2, SLICES) == NULL);
    cr_assert_str_eq(refusal(&fit, KN_F16, 2, SLICES), "the type is not f16");
    cr_assert_str_eq(refusal(&fit, KN_F32, 1, SLICES), "the registers do not hold a row");
    cr_assert_str_eq(refusal(&old, KN_F32, 2, SLICES), "the driver is old");
    cr_assert(refusal(&old, KN_F32, 2, CLUSTER) == NULL);
}

/* Eight persistent blocks take a row of 160 KB; where the driver does not know their PTX,
 * those of a cluster that do not. */
static void expect_variants(const char *driver, const char *best, bool has_slices) {
    enum { COLUMNS = 40000 };
    static double oracle[COLUMNS];
    if (test_on_gpu()) cr_skip_test("a GPU has the driver that it has");
    setenv("TOLLENS_SOFT_DRIVER_VERSION", driver, 1);
    struct row_stage stage = row_stage_begin(1);
    struct row_matrix rows = row_matrix_make(KN_F32, 1, COLUMNS, 0, 0);
    struct kn_softmax softmax = {.type = KN_F32,
                                 .rows = 1,
                                 .columns = COLUMNS,
                                 .in = row_matrix_rows(&rows),
                                 .out = row_matrix_rows(&rows)};
    const struct kn_variant *variant = NULL;
    if (tol_context_device(test_context())->compute_capability < 90) cr_skip_test("before 9.0");
    row_draw(&stage, &rows, KN_NORMAL, 3);
    kn_softmax_oracle(rows.values, NULL, COLUMNS, 1, oracle);
    MUST(kn_softmax_pick(stage.kernels, stage.stream, &softmax, &variant));
    cr_assert_str_eq(variant->name, best);
    MUST(kn_softmax(stage.kernels, stage.stream, &softmax));
    row_expect(&stage, &rows, oracle, (struct kn_tolerance){.relative = 0x1p-13}, NULL, "%s", best);
    const struct kn_norm norm = {.kind = KN_LAYERNORM,
                                 .type = KN_F32,
                                 .rows = 1,
                                 .columns = COLUMNS,
                                 .in = softmax.in,
                                 .out = softmax.out,
                                 .variant = "behind_8"};
    softmax.variant = "behind_8";
    if (has_slices) {
        MUST(kn_softmax_pick(stage.kernels, stage.stream, &softmax, &variant));
        MUST(kn_norm_pick(stage.kernels, stage.stream, &norm, &variant));
    } else {
        MUST_FAIL(kn_softmax_pick(stage.kernels, stage.stream, &softmax, &variant), TOL_UNSUPPORTED,
                  "the driver is older than CUDA 12.1");
        MUST_FAIL(kn_norm_pick(stage.kernels, stage.stream, &norm, &variant), TOL_UNSUPPORTED,
                  "the driver is older than CUDA 12.1");
    }
    row_matrix_end(&rows);
    row_stage_end(&stage);
}

Test(row_variant, an_old_driver_gets_no_blocks_that_stay) {
    expect_variants("12000", "cluster_4", false);
}

Test(row_variant, a_driver_of_cuda_12_1_gets_them) {
    expect_variants("12010", "behind_8", true);
}

/*
 * Split-K, and the launches.
 *
 * Split-K makes as many parts of the steps as give BLOCKS thread blocks, two per multiprocessor of
 * an H200, as long as a part has at least SPAN_MIN steps, and the partial sums that are written and
 * read again are at most half of what is read of A and B. SPLITS_MAX limits the partial sums that
 * a thread of the summing kernel adds. The number of parts does not depend on the device, so that a
 * smaller one gives the same bits. A kernel with clusters has one part per block of a cluster, and
 * needs no workspace.
 */
#include "gemm_launch.h"

#include "choose/cost.h"
#include "core/check.h"
#include "gemm_maps.h"
#include "gemm_pack.h"

#include <assert.h>

enum { SPAN_MIN = 256, SPAN_STEP = 64, SPLITS_MAX = 64, BLOCKS = 2 * KN_COST_MULTIPROCESSORS };
enum { GRID_Y_MAX = 65535 };

static size_t ceil_div(size_t a, size_t b) {
    return (a + b - 1) / b;
}

static size_t gemm_launch_smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

size_t gemm_tiles_of(const struct gemm_arguments *x, const struct kn_variant *variant) {
    return ceil_div((size_t)x->m, variant->tile[0]) * ceil_div((size_t)x->n, variant->tile[1]) *
           (size_t)x->batch;
}

/* The blocks of a cluster add up their partial sums themselves. */
static struct gemm_split split_of_cluster(const struct gemm_arguments *x, unsigned blocks) {
    const size_t steps = ceil_div((size_t)x->k, blocks);
    return (struct gemm_split){.splits = (int)blocks,
                               .span = (int)(ceil_div(steps, SPAN_STEP) * SPAN_STEP)};
}

struct gemm_split gemm_split_of(const struct gemm_problem *problem,
                                const struct kn_variant *variant, size_t room) {
    const struct gemm_arguments *x = &problem->arguments;
    const size_t m = (size_t)x->m, n = (size_t)x->n, k = (size_t)x->k, batch = (size_t)x->batch;
    struct gemm_split split = {.splits = 1, .span = x->k};
    if (variant->cluster != 0) return split_of_cluster(x, variant->cluster);
    if (m == 0 || n == 0 || k < 2 * SPAN_MIN) return split;
    const size_t tiles = ceil_div(m, variant->tile[0]) * ceil_div(n, variant->tile[1]);
    if (tiles > BLOCKS || batch > BLOCKS) return split; /* so nothing below overflows */
    const size_t leading = ceil_div(n, 4) * 4, sum_bytes = batch * m * leading * sizeof(float);
    const size_t element = kn_type_bytes(kn_gemm_input_type(problem->gemm->precision));
    const size_t inputs = batch * (m + n) * k * element;
    size_t splits = gemm_launch_smaller(BLOCKS / (tiles * batch), k / SPAN_MIN);
    splits = gemm_launch_smaller(splits, inputs / (4 * sum_bytes));
    splits = gemm_launch_smaller(splits, gemm_launch_smaller(room / sum_bytes, SPLITS_MAX));
    if (splits < 2) return split;
    const size_t span = ceil_div(ceil_div(k, splits), SPAN_STEP) * SPAN_STEP;
    splits = ceil_div(k, span);
    assert(splits >= 1 && splits <= SPLITS_MAX && splits * sum_bytes <= room);
    return (struct gemm_split){
        .splits = (int)splits, .span = (int)span, .leading = leading, .bytes = splits * sum_bytes};
}

/* Step 13 makes the transpose of C where b alone would have to be transposed. */
static void arguments_turn(struct gemm_arguments *x) {
    const struct gemm_arguments old = *x;
    x->a = old.b, x->lda = old.ldb, x->batch_a = old.batch_b, x->m = old.n;
    x->b = old.a, x->ldb = old.lda, x->batch_b = old.batch_a, x->n = old.m;
    x->transpose_a = !old.transpose_b, x->transpose_b = !old.transpose_a;
}

/* Persistent thread blocks, as many as the device runs at once, walk the tiles. Where the blocks of
 * a cluster share a tile, each tile has a cluster of its own. */
static tol_status launch_clusters(struct kn_kernels *kernels, struct tol_stream *stream,
                                  const struct gemm_problem *problem,
                                  const struct kn_variant *variant, const struct tol_kernel *kernel,
                                  struct gemm_arguments *x) {
    tol_status status = TOL_OK;
    struct tol_context *context = kn_kernels_context(kernels);
    const int parts = gemm_pack_parts(problem->gemm);
    const enum kn_type type = parts > 1 ? KN_BF16 : kn_gemm_input_type(problem->gemm->precision);
    const bool is_tf32 = problem->gemm->precision == KN_GEMM_TF32;
    const bool has_pairs = is_tf32 || parts > 1;
    const int whole = has_pairs ? 2 : 8; /* columns that a thread stores at once */
    const bool c_is_whole = problem->c_is_aligned && x->n % whole == 0 && x->beta == 0 &&
                            (x->c_type == GEMM_C_F32) == has_pairs;
    struct gemm_arguments mapped;
    struct gemm_boxes boxes;
    struct gemm_maps maps;
    void *values[] = {&maps.a, &maps.b, x, &boxes};
    const unsigned bytes[] = {sizeof maps.a, sizeof maps.b, sizeof *x, sizeof boxes};
    mapped = *x;
    if (variant->packs) TOL_TRY(gemm_pack(kernels, stream, problem, &mapped));
    if (is_tf32 && !mapped.transpose_a && !mapped.transpose_b) arguments_turn(&mapped);
    if (parts == 1) *x = mapped;
    const size_t tiles = gemm_tiles_of(x, variant);
    const size_t at_once = (size_t)tol_context_device(context)->multiprocessors;
    const size_t clusters = variant->cluster > 1 ? tiles : gemm_launch_smaller(tiles, at_once);
    const struct tol_launch_shape shape = {.grid_x = variant->cluster * (unsigned)clusters,
                                           .grid_y = 1,
                                           .grid_z = 1,
                                           .block_x = variant->threads,
                                           .block_y = 1,
                                           .block_z = 1,
                                           .shared_bytes = variant->shared_bytes};
    boxes = gemm_boxes_of(x, type, variant->tile[1]);
    boxes.c_is_whole = c_is_whole;
    assert(shape.grid_x >= 1 && clusters <= tiles);
    TOL_TRY(gemm_maps_make(kernels, &mapped, type, parts, x, &boxes, &maps));
    status = tol_launch(stream, kernel, shape, (struct tol_arguments){4, values, bytes});
out:
    return status;
}

static tol_status launch_tiles(struct tol_stream *stream, const struct tol_kernel *kernel,
                               size_t blocks, size_t parts, const struct kn_variant *variant,
                               struct gemm_arguments *arguments) {
    const struct tol_launch_shape shape = {.grid_x = (unsigned)blocks,
                                           .grid_y =
                                               (unsigned)gemm_launch_smaller(parts, GRID_Y_MAX),
                                           .grid_z = 1,
                                           .block_x = variant->threads,
                                           .block_y = 1,
                                           .block_z = 1,
                                           .shared_bytes = variant->shared_bytes};
    const unsigned bytes = sizeof *arguments;
    void *value = arguments;
    return tol_launch(stream, kernel, shape, (struct tol_arguments){1, &value, &bytes});
}

tol_status gemm_launch(struct kn_kernels *kernels, struct tol_stream *stream,
                       const struct gemm_problem *problem, const struct kn_variant *variant,
                       const struct tol_kernel *kernel, struct gemm_split split) {
    tol_status status = TOL_OK;
    struct gemm_arguments x = problem->arguments, sum = x;
    const size_t m = (size_t)x.m, n = (size_t)x.n, batch = (size_t)x.batch;
    const size_t rows = ceil_div(m, variant->tile[0]), columns = ceil_div(n, variant->tile[1]);
    const struct kn_variant *adds = &kn_gemm_sum[kn_gemm_input_type(problem->gemm->precision)];
    const struct tol_kernel *adding = NULL;
    TOL_CHECK(columns <= INT32_MAX / rows, TOL_OVER_LIMIT, "%zu x %zu tiles", rows, columns);
    x.splits = split.splits, x.span = split.span;
    if (variant->cluster != 0) {
        return launch_clusters(kernels, stream, problem, variant, kernel, &x);
    }
    if (split.splits == 1) return launch_tiles(stream, kernel, rows * columns, batch, variant, &x);
    TOL_TRY(kn_kernels_find(kernels, adds, &adding));
    sum.splits = split.splits;
    sum.a = x.c = tol_buffer_address(problem->gemm->workspace);
    sum.lda = x.ldc = (long long)split.leading;
    sum.batch_a = x.batch_c = (long long)m * (long long)split.leading;
    x.c_type = GEMM_C_F32, x.alpha = 1, x.beta = 0;
    TOL_TRY(
        launch_tiles(stream, kernel, rows * columns, batch * (size_t)split.splits, variant, &x));
    status = launch_tiles(stream, adding, ceil_div(m * (split.leading / 4), adds->threads), batch,
                          adds, &sum);
out:
    return status;
}

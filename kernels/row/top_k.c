/*
 * The host's side of top_k, and its oracle.
 */
#include "row/top_k.h"

#include "core/check.h"
#include "row/row_variant.h"
#include "row/top_k_arguments.h"

#include <math.h>
#include <stdlib.h>

KN_IMAGES(top_k_1_block);
KN_IMAGES(top_k_2_warp);
KN_IMAGES(top_k_3_pass);

/* A problem as a variant sees it. */
struct top_k_fit {
    struct kn_row_fit row;
    size_t k;
};

enum { WARP = 32, WARP_ROWS = 4, PASS_PIECES = 4, PASS_THREADS = 256 };

enum { FEW = KN_ROW_AHEAD << 1 }; /* of a row's needs: k is at most TOP_K_FEW */

static const char *top_k_refuses(const struct kn_variant *row, const void *of) {
    const struct top_k_fit *fit = of;
    if ((row->needs & FEW) != 0 && fit->k > TOP_K_FEW) return "k is above 64";
    return kn_row_refuses(row, &fit->row);
}

/* clang-format off */
#define BY_WARP(type, TYPE, pieces)                                                                \
    {.name = "warp", .entry = "top_k_warp_" #type "_" #pieces, .images = kn_images_top_k_2_warp,   \
     .compute_capability_min = 90, .types = 1 << KN_##TYPE, .needs = KN_ROW_WHOLE | FEW,           \
     .size = WARP * (pieces), .refuse = top_k_refuses, .threads = WARP, .tile = {WARP_ROWS, 0, 0}},
#define BY_WARPS(floats, halves)                                                                   \
    BY_WARP(f32, F32, floats) BY_WARP(f16, F16, halves) BY_WARP(bf16, BF16, halves)
#define PASS(type, TYPE, threads_)                                                                 \
    {.name = "pass", .entry = "top_k_pass_" #type, .images = kn_images_top_k_3_pass,               \
     .compute_capability_min = 90, .types = 1 << KN_##TYPE, .needs = KN_ROW_WHOLE | FEW,           \
     .refuse = top_k_refuses, .threads = threads_},
#define BLOCK(type, TYPE, threads_)                                                                \
    {.name = "block", .entry = "top_k_" #type, .images = kn_images_top_k_1_block,                  \
     .compute_capability_min = 75, .types = 1 << KN_##TYPE, .refuse = top_k_refuses,               \
     .threads = threads_},
static const struct kn_variant variants[] = {
    BY_WARPS(8, 4)
    BY_WARPS(32, 16)
    KN_ROW_EACH(PASS, TOP_K_THREADS)
    KN_ROW_EACH(BLOCK, TOP_K_THREADS)
};
/* clang-format on */
const struct kn_variants kn_top_k_variants = {"top_k", variants,
                                              sizeof variants / sizeof variants[0]};

_Static_assert(2 * KN_TOP_K_MOST <= TOP_K_CANDIDATES, "a threshold must lie above some keys");

/*
 * A warp per row; or a block per row, whose threads are a power of two, up to one per piece. "pass"
 * has 256 threads for rows of up to eight chunks: several such blocks are in different parts of
 * their rows, and use a multiprocessor better than half as many of 512. Longer rows leave more
 * candidates than 256 threads keep.
 */
static struct tol_launch_shape top_k_shape_of(const struct kn_variant *variant,
                                              const struct kn_row_fit *fit, size_t rows,
                                              const struct tol_device *device) {
    if (variant->images == kn_images_top_k_2_warp) return kn_row_shape(variant, fit, rows, device);
    const size_t chunk = PASS_PIECES * (size_t)PASS_THREADS;
    unsigned threads = WARP;
    if (variant->images == kn_images_top_k_3_pass) {
        threads = fit->pieces <= 8 * chunk ? PASS_THREADS : TOP_K_THREADS;
    } else {
        while (threads < TOP_K_THREADS && threads < fit->pieces) threads *= 2;
    }
    return (struct tol_launch_shape){(unsigned)rows, 1, 1, threads, 1, 1, 0};
}

/* Where an output lies; nothing if it is not wanted. */
static tol_status locate_out(const struct kn_rows *rows, struct kn_rows_place *place,
                             const struct kn_rows_place *in) {
    tol_status status = TOL_OK;
    if (rows->buffer == NULL) return TOL_OK;
    TOL_TRY(kn_rows_locate(rows, place));
    TOL_CHECK(place->end <= in->begin || in->end <= place->begin, TOL_INVALID_ARGUMENT,
              "%s overlaps in", place->name);
out:
    return status;
}

tol_status kn_top_k(struct kn_kernels *kernels, struct tol_stream *stream,
                    const struct kn_top_k *x) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    TOL_TRY(kn_rows_given("top_k", kernels, stream, x));
    TOL_TRY(kn_rows_type(x->type));
    const size_t element = kn_type_bytes(x->type);
    struct kn_rows_place in = {"in", x->rows, x->columns, element, false, 0, 0, 0};
    struct kn_rows_place values = {"values", x->rows, x->k, element, false, 0, 0, 0};
    struct kn_rows_place indices = {"indices", x->rows, x->k, sizeof(int), false, 0, 0, 0};
    if (x->rows == 0) return TOL_OK;
    TOL_CHECK(x->k > 0 && x->k <= x->columns, TOL_INVALID_ARGUMENT,
              "the largest %zu of rows of %zu elements", x->k, x->columns);
    TOL_CHECK(x->k <= KN_TOP_K_MOST, TOL_OVER_LIMIT, "the largest %zu; at most %d", x->k,
              KN_TOP_K_MOST);
    TOL_CHECK(x->values.buffer != NULL || x->indices.buffer != NULL, TOL_INVALID_ARGUMENT,
              "neither values nor indices have a buffer");
    TOL_TRY(kn_rows_locate(&x->in, &in));
    TOL_TRY(locate_out(&x->values, &values, &in));
    TOL_TRY(locate_out(&x->indices, &indices, &in));
    TOL_CHECK(values.end <= indices.begin || indices.end <= values.begin, TOL_INVALID_ARGUMENT,
              "values overlaps indices");
    struct top_k_fit fit = {kn_row_fit_of(x->type, &in), x->k};
    fit.row.not_whole = kn_row_whole(&in);
    TOL_TRY(kn_kernels_pick(kernels, &kn_top_k_variants, x->variant, &fit, &variant, &kernel));
    const struct top_k_arguments arguments = {.in = in.begin,
                                              .values = values.begin,
                                              .indices = indices.begin,
                                              .rows = (long long)x->rows,
                                              .columns = (long long)x->columns,
                                              .in_stride = (long long)in.stride,
                                              .values_stride = (long long)values.stride,
                                              .indices_stride = (long long)indices.stride,
                                              .k = (int)x->k};
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    status = kn_rows_launch(stream, kernel, top_k_shape_of(variant, &fit.row, x->rows, device),
                            &arguments, sizeof arguments);
out:
    return status;
}

struct top_k_element {
    float value;
    int column;
};

/* The larger element first: a NaN above all, equal ones by column. */
static int top_k_compare(const void *left, const void *right) {
    const struct top_k_element *a = left, *b = right;
    const bool a_is_nan = isnan(a->value), b_is_nan = isnan(b->value);
    if (a_is_nan != b_is_nan) return a_is_nan ? -1 : 1;
    if (!a_is_nan && a->value != b->value) return a->value > b->value ? -1 : 1;
    return a->column < b->column ? -1 : 1;
}

bool kn_top_k_oracle(const float *in, size_t columns, size_t k, int *indices) {
    struct top_k_element *elements = malloc(columns * sizeof *elements);
    if (elements == NULL) return false;
    for (size_t c = 0; c < columns; c++) elements[c] = (struct top_k_element){in[c], (int)c};
    qsort(elements, columns, sizeof *elements, top_k_compare);
    for (size_t i = 0; i < k; i++) indices[i] = elements[i].column;
    free(elements);
    return true;
}

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

/* clang-format off */
#define BLOCK(type)                                                                                \
    {.name = "block", .entry = "top_k_" #type, .images = kn_images_top_k_1_block,                  \
     .compute_capability_min = 75, .refuse = kn_row_only_##type, .threads = TOP_K_THREADS}
/* clang-format on */

static const struct kn_variant variants[] = {BLOCK(f32), BLOCK(f16), BLOCK(bf16)};
const struct kn_variants kn_top_k_variants = {"top_k", variants,
                                              sizeof variants / sizeof variants[0]};

_Static_assert(2 * KN_TOP_K_MOST <= TOP_K_CANDIDATES, "a threshold must lie above some keys");

/* A block a row, with a thread a piece while there are threads: a power of two of them. */
static struct tol_launch_shape shape_of(const struct kn_row_fit *fit, size_t rows) {
    unsigned threads = 32;
    while (threads < TOP_K_THREADS && threads < fit->pieces) threads *= 2;
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
    const struct kn_row_fit fit = kn_row_fit_of(x->type, &in);
    TOL_TRY(kn_kernels_pick(kernels, &kn_top_k_variants, NULL, &fit, &variant, &kernel));
    const struct top_k_arguments arguments = {.in = in.begin,
                                              .values = values.begin,
                                              .indices = indices.begin,
                                              .columns = (long long)x->columns,
                                              .in_stride = (long long)in.stride,
                                              .values_stride = (long long)values.stride,
                                              .indices_stride = (long long)indices.stride,
                                              .k = (int)x->k};
    status = kn_rows_launch(stream, kernel, shape_of(&fit, x->rows), &arguments, sizeof arguments);
out:
    return status;
}

struct top_k_element {
    float value;
    int column;
};

/* The larger element first: a NaN above all, equal ones by column. */
static int compare(const void *left, const void *right) {
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
    qsort(elements, columns, sizeof *elements, compare);
    for (size_t i = 0; i < k; i++) indices[i] = elements[i].column;
    free(elements);
    return true;
}

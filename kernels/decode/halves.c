/*
 * The host's side of halves: checks and launches.
 */
#include "decode/halves.h"

#include "choose/struct_launch.h"
#include "core/check.h"
#include "decode/halves_arguments.h"
#include "place_check.h"

#include <assert.h>
#include <math.h>

KN_IMAGES(halves_1_weights);
KN_IMAGES(halves_2_rows);
KN_IMAGES(halves_3_heads);

enum { THREADS = 256, CHUNK = 256, EXPONENT_MAX = 126, EXPONENT_USED = 40, GRID_YZ_MAX = 65535 };

#define VARIANT(entry_, images_, threads_)                                                         \
    {                                                                                              \
        .name = "halves", .entry = entry_, .images = kn_images_halves_##images_,                   \
        .compute_capability_min = 75, .threads = threads_                                          \
    }
#define OF_WEIGHTS(format)                                                                         \
    {                                                                                              \
        VARIANT("halves_weights_" #format, 1_weights, THREADS),                                    \
            VARIANT("halves_peak_" #format, 1_weights, THREADS)                                    \
    }
static const struct kn_variant weights_rows[KN_WEIGHT_FORMATS][2] = {
    OF_WEIGHTS(f32),  OF_WEIGHTS(f16),  OF_WEIGHTS(bf16), OF_WEIGHTS(q8_0),
    OF_WEIGHTS(q4_k), OF_WEIGHTS(q5_k), OF_WEIGHTS(q6_k)};

/* By the groups of four elements of a thread. */
enum { NORM, GATED, KINDS, SIZES = 3 };
static const size_t groups_of[SIZES] = {2, 8, 16};
#define OF_ROWS(kind, groups) VARIANT("halves_" #kind "_" #groups, 2_rows, HALVES_ROW_THREADS)
static const struct kn_variant rows_rows[KINDS][SIZES] = {
    {OF_ROWS(norm, 2), OF_ROWS(norm, 8), OF_ROWS(norm, 16)},
    {OF_ROWS(gated, 2), OF_ROWS(gated, 8), OF_ROWS(gated, 16)}};

static const struct kn_variant some_rows = VARIANT("halves_of_rows", 3_heads, THREADS);
static const struct kn_variant bias_row = VARIANT("halves_bias", 3_heads, THREADS);
static const struct kn_variant gather_rows[KN_CACHES] = {
    VARIANT("halves_gather_f16", 3_heads, THREADS),
    VARIANT("halves_gather_q8_0", 3_heads, THREADS)};

_Static_assert(HALVES_ROW_THREADS * 4 * 16 == HALVES_COLUMNS_MAX, "the largest rows fit");
_Static_assert((int)HALVES_COLUMNS_MAX == (int)KN_HALVES_COLUMNS_MAX, "both say the same");

int kn_halves_exponent(double most) {
    int exponent = 0;
    if (!(most > 0) || isinf(most)) return 0;
    (void)frexp(most, &exponent); /* most is at least 2^(exponent - 1) */
    exponent = 15 - exponent;
    if (exponent > EXPONENT_USED) return EXPONENT_USED;
    return exponent < -EXPONENT_USED ? -EXPONENT_USED : exponent;
}

/* ---- weights ---- */

static tol_status halves_check_weights(const struct kn_halves_weights *x, size_t out_bytes,
                                       size_t alignment) {
    tol_status status = TOL_OK;
    TOL_CHECK((unsigned)x->format < KN_WEIGHT_FORMATS, TOL_INVALID_ARGUMENT,
              "there is no format %d of weights", (int)x->format);
    TOL_CHECK(x->count % kn_weight_grain(x->format) == 0, TOL_INVALID_ARGUMENT,
              "halves of %zu weights, no multiple of %zu", x->count, kn_weight_grain(x->format));
    TOL_CHECK(x->count <= (size_t)1 << 37, TOL_OVER_LIMIT, "halves of %zu weights", x->count);
    TOL_CHECK(x->exponent >= -EXPONENT_MAX && x->exponent <= EXPONENT_MAX, TOL_INVALID_ARGUMENT,
              "halves times 2^%d", x->exponent);
    TOL_TRY(kn_place_check("the matrix", x->weights, kn_weight_row_bytes(x->format, x->count),
                           kn_weight_alignment(x->format)));
    TOL_TRY(kn_place_check("out", x->out, out_bytes, alignment));
    TOL_CHECK(
        !kn_place_overlap(x->out, out_bytes, x->weights, kn_weight_row_bytes(x->format, x->count)),
        TOL_INVALID_ARGUMENT, "halves overlap the weights");
out:
    return status;
}

static tol_status halves_launch_weights(struct kn_kernels *kernels, struct tol_stream *stream,
                                        const struct kn_halves_weights *x, bool is_peak) {
    const size_t block = (size_t)HALVES_BLOCK_CHUNKS * CHUNK;
    const struct halves_weights_arguments arguments = {.weights = x->weights.address,
                                                       .out = x->out.address,
                                                       .count = x->count,
                                                       .scale = ldexpf(1, x->exponent)};
    return kn_struct_launch(kernels, stream, &weights_rows[x->format][is_peak],
                            (struct tol_launch_shape){(unsigned)((x->count + block - 1) / block), 1,
                                                      1, THREADS, 1, 1, 0},
                            &arguments, sizeof arguments);
}

tol_status kn_halves_weights(struct kn_kernels *kernels, struct tol_stream *stream,
                             const struct kn_halves_weights *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "halves need kernels, a stream and weights");
    if (x->count == 0) return TOL_OK;
    TOL_TRY(halves_check_weights(x, x->count * sizeof(uint16_t), 16));
    status = halves_launch_weights(kernels, stream, x, false);
out:
    return status;
}

tol_status kn_halves_peak(struct kn_kernels *kernels, struct tol_stream *stream,
                          const struct kn_halves_weights *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "a peak needs kernels, a stream and weights");
    if (x->count == 0) return TOL_OK;
    TOL_TRY(halves_check_weights(x, sizeof(float), sizeof(float)));
    status = halves_launch_weights(kernels, stream, x, true);
out:
    return status;
}

/* ---- rows ---- */

/* The kernel for rows of this length. */
static tol_status halves_pick_rows(int kind, size_t rows, size_t columns,
                                   const struct kn_variant **variant) {
    tol_status status = TOL_OK;
    int size = 0;
    TOL_CHECK(columns > 0 && columns % 4 == 0 && columns <= KN_HALVES_COLUMNS_MAX,
              TOL_INVALID_ARGUMENT, "halves of rows of %zu elements, no multiple of 4 up to %d",
              columns, KN_HALVES_COLUMNS_MAX);
    TOL_CHECK(rows <= INT32_MAX, TOL_OVER_LIMIT, "halves of %zu rows", rows);
    while (groups_of[size] * HALVES_ROW_THREADS * 4 < columns) size++;
    assert(size < SIZES && groups_of[size] * HALVES_ROW_THREADS * 4 >= columns);
    *variant = &rows_rows[kind][size];
out:
    return status;
}

static tol_status halves_launch_rows(struct kn_kernels *kernels, struct tol_stream *stream,
                                     const struct kn_variant *variant,
                                     const struct halves_rows_arguments *arguments) {
    return kn_struct_launch(
        kernels, stream, variant,
        (struct tol_launch_shape){arguments->rows, 1, 1, HALVES_ROW_THREADS, 1, 1, 0}, arguments,
        sizeof *arguments);
}

tol_status kn_halves_norm(struct kn_kernels *kernels, struct tol_stream *stream,
                          const struct kn_halves_norm *x) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "halves of a norm need kernels, a stream and rows");
    if (x->rows == 0) return TOL_OK;
    TOL_TRY(halves_pick_rows(NORM, x->rows, x->columns, &variant));
    const size_t elements = x->rows * x->columns;
    TOL_CHECK(x->exponent >= -EXPONENT_MAX && x->exponent <= EXPONENT_MAX, TOL_INVALID_ARGUMENT,
              "halves times 2^%d", x->exponent);
    TOL_TRY(kn_place_check("x", x->x, elements * sizeof(float), 16));
    if (x->sums.address != 0) {
        TOL_TRY(kn_place_check("sums", x->sums, elements * sizeof(float), 16));
    }
    if (x->scales.address != 0) {
        TOL_TRY(kn_place_check("scales", x->scales, x->rows * sizeof(float), sizeof(float)));
    }
    if (x->weight.address != 0) {
        TOL_TRY(kn_place_check("weight", x->weight, x->columns * sizeof(float), 16));
        TOL_TRY(kn_place_check("out", x->out, elements * sizeof(uint16_t), 8));
    }
    status = halves_launch_rows(kernels, stream, variant,
                                &(struct halves_rows_arguments){.x = x->x.address,
                                                                .sums = x->sums.address,
                                                                .scales = x->scales.address,
                                                                .weight = x->weight.address,
                                                                .out = x->out.address,
                                                                .epsilon = x->epsilon,
                                                                .scale = ldexpf(1, x->exponent),
                                                                .rows = (uint32_t)x->rows,
                                                                .columns = (uint32_t)x->columns});
out:
    return status;
}

tol_status kn_halves_gated(struct kn_kernels *kernels, struct tol_stream *stream,
                           const struct kn_halves_gated *x) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "halves of a gate need kernels, a stream and rows");
    if (x->rows == 0) return TOL_OK;
    TOL_TRY(halves_pick_rows(GATED, x->rows, x->columns, &variant));
    const size_t elements = x->rows * x->columns;
    TOL_TRY(kn_place_check("x", x->x, 2 * elements * sizeof(float), 16));
    TOL_TRY(kn_place_check("out", x->out, elements * sizeof(uint16_t), 8));
    TOL_TRY(kn_place_check("scales", x->scales, x->rows * sizeof(float), sizeof(float)));
    status = halves_launch_rows(kernels, stream, variant,
                                &(struct halves_rows_arguments){.x = x->x.address,
                                                                .scales = x->scales.address,
                                                                .out = x->out.address,
                                                                .rows = (uint32_t)x->rows,
                                                                .columns = (uint32_t)x->columns});
out:
    return status;
}

/* ---- q, biases, keys and values ---- */

static tol_status halves_launch_some(struct kn_kernels *kernels, struct tol_stream *stream,
                                     const struct kn_variant *variant, size_t columns_of_block,
                                     const struct halves_some_arguments *x) {
    const size_t blocks = (x->columns + columns_of_block - 1) / columns_of_block;
    return kn_struct_launch(
        kernels, stream, variant,
        (struct tol_launch_shape){(unsigned)blocks, x->rows, 1, THREADS, 1, 1, 0}, x, sizeof *x);
}

static tol_status halves_check_some(size_t rows, size_t columns) {
    tol_status status = TOL_OK;
    TOL_CHECK(rows <= GRID_YZ_MAX && columns <= INT32_MAX, TOL_OVER_LIMIT,
              "halves: %zu rows of %zu elements", rows, columns);
out:
    return status;
}

tol_status kn_halves_rows(struct kn_kernels *kernels, struct tol_stream *stream,
                          const struct kn_halves_rows *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "halves need kernels, a stream and rows");
    if (x->rows == 0 || x->columns == 0) return TOL_OK;
    TOL_TRY(halves_check_some(x->rows, x->columns));
    TOL_CHECK(x->columns % 4 == 0, TOL_INVALID_ARGUMENT, "halves of %zu columns", x->columns);
    TOL_TRY(kn_place_check_rows("x", x->x, x->rows, x->x_stride, x->columns, sizeof(float), 16));
    TOL_TRY(kn_place_check("out", x->out, x->rows * x->columns * sizeof(uint16_t), 8));
    status = halves_launch_some(kernels, stream, &some_rows, (size_t)THREADS * 4,
                                &(struct halves_some_arguments){.x = x->x.address,
                                                                .out = x->out.address,
                                                                .x_stride = x->x_stride,
                                                                .rows = (uint32_t)x->rows,
                                                                .columns = (uint32_t)x->columns});
out:
    return status;
}

tol_status kn_halves_bias(struct kn_kernels *kernels, struct tol_stream *stream,
                          const struct kn_halves_bias *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "a bias needs kernels, a stream and rows");
    if (x->rows == 0 || x->columns == 0) return TOL_OK;
    TOL_TRY(halves_check_some(x->rows, x->columns));
    TOL_TRY(kn_place_check_rows("x", x->x, x->rows, x->x_stride, x->columns, sizeof(float), 4));
    TOL_TRY(kn_place_check("bias", x->bias, x->columns * sizeof(float), 4));
    status = halves_launch_some(kernels, stream, &bias_row, THREADS,
                                &(struct halves_some_arguments){.x = x->x.address,
                                                                .bias = x->bias.address,
                                                                .x_stride = x->x_stride,
                                                                .rows = (uint32_t)x->rows,
                                                                .columns = (uint32_t)x->columns});
out:
    return status;
}

tol_status kn_halves_cache(struct kn_kernels *kernels, struct tol_stream *stream,
                           const struct kn_halves_cache *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "gathering keys needs kernels, a stream and a cache");
    if (x->positions == 0) return TOL_OK;
    TOL_CHECK(x->batch.rows > 0, TOL_INVALID_ARGUMENT, "gathering keys of no row");
    TOL_TRY(kn_paged_check(&x->batch, &x->shape));
    TOL_CHECK(x->positions <= x->batch.pages_max * KN_PAGE_POSITIONS, TOL_OUT_OF_RANGE,
              "%zu positions do not fit %zu pages", x->positions, x->batch.pages_max);
    const size_t pieces = x->positions * (x->shape.head_size / 8);
    const size_t bytes = x->shape.kv_heads * pieces * 16;
    TOL_CHECK(pieces <= INT32_MAX, TOL_OVER_LIMIT, "keys of %zu positions", x->positions);
    TOL_TRY(kn_place_check("keys", x->keys, bytes, 16));
    TOL_TRY(kn_place_check("values", x->values, bytes, 16));
    TOL_CHECK(!kn_place_overlap(x->keys, bytes, x->values, bytes), TOL_INVALID_ARGUMENT,
              "keys and values overlap");
    struct halves_cache_arguments arguments = {.keys = x->keys.address,
                                               .values = x->values.address,
                                               .positions = (uint32_t)x->positions,
                                               .kv_heads = (uint32_t)x->shape.kv_heads,
                                               .head_size = (uint32_t)x->shape.head_size};
    kn_paged_cache_of(&x->batch, &x->shape, &arguments.cache);
    status = kn_struct_launch(
        kernels, stream, &gather_rows[x->shape.cache],
        (struct tol_launch_shape){(unsigned)((pieces + THREADS - 1) / THREADS),
                                  (unsigned)x->shape.kv_heads, 2, THREADS, 1, 1, 0},
        &arguments, sizeof arguments);
out:
    return status;
}

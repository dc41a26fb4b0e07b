/*
 * The host's side of linear and embed.
 */
#include "decoder/linear.h"

#include "core/check.h"
#include "decoder/decoder_arguments.h"
#include "decoder/decoder_check.h"

#include <limits.h>

KN_IMAGES(linear_1_warp);
KN_IMAGES(linear_2_tile);
KN_IMAGES(linear_3_tensor);
KN_IMAGES(embed_1_element);

enum {
    WARPS = 4,
    TENSOR_ROWS = 16,
    TENSOR_COLUMNS = 8,
    COLUMNS_MAX = 1 << 18,
    EMBED_THREADS = 128
};

static const char *tensor_refuses(const void *problem) {
    const struct kn_linear *x = problem;
    const bool fits = x->weights.address % 4 == 0 && x->gate.address % 4 == 0;
    return x->format == KN_WEIGHT_Q6_K && !fits ? "weights begin at no multiple of 4" : NULL;
}

/* tile: rows of a block, and columns. */
#define FMA(format, entry_, file, columns, rows)                                                   \
    {                                                                                              \
        .name = "fma", .entry = entry_ #format "_" #columns, .images = kn_images_linear_##file,    \
        .compute_capability_min = 75, .threads = 32 * WARPS, .tile = {                             \
            rows * WARPS,                                                                          \
            columns                                                                                \
        }                                                                                          \
    }
#define TENSOR(format, entry_)                                                                     \
    {                                                                                              \
        .name = "tensor", .entry = entry_ #format, .images = kn_images_linear_3_tensor,            \
        .compute_capability_min = 80, .refuse = tensor_refuses, .threads = LINEAR_TENSOR_THREADS,  \
        .shared_bytes = LINEAR_TENSOR_BYTES, .tile = {                                             \
            TENSOR_ROWS,                                                                           \
            TENSOR_COLUMNS                                                                         \
        }                                                                                          \
    }
#define LINEARS(format, plain, gated)                                                              \
    {                                                                                              \
        {{plain, FMA(format, "linear_", 1_warp, 1, 2)},                                            \
         {plain, FMA(format, "linear_", 2_tile, 4, 2)}},                                           \
        {                                                                                          \
            {gated, FMA(format, "linear_gated_", 1_warp, 1, 1)}, {                                 \
                gated, FMA(format, "linear_gated_", 2_tile, 4, 1)                                  \
            }                                                                                      \
        }                                                                                          \
    }
#define ELEMENTS(format) LINEARS(format, {0}, {0})
#define BLOCKS(format)                                                                             \
    LINEARS(format, TENSOR(format, "linear_tensor_"), TENSOR(format, "linear_tensor_gated_"))
#define EMBED(format)                                                                              \
    {                                                                                              \
        .name = "element", .entry = "embed_" #format, .images = kn_images_embed_1_element,         \
        .compute_capability_min = 75, .threads = EMBED_THREADS                                     \
    }

/* By format, whether there is a gate, and whether there are several columns: the one on tensor
 * cores, which formats of single elements do not have, and the other. */
static const struct kn_variant linears[KN_WEIGHT_FORMATS][2][2][2] = {
    ELEMENTS(f32), ELEMENTS(f16), ELEMENTS(bf16), BLOCKS(q8_0),
    BLOCKS(q4_k),  BLOCKS(q5_k),  BLOCKS(q6_k)};
static const struct kn_variant embeds[KN_WEIGHT_FORMATS] = {
    EMBED(f32), EMBED(f16), EMBED(bf16), EMBED(q8_0), EMBED(q4_k), EMBED(q5_k), EMBED(q6_k)};

static tol_status check_matrix(const char *name, enum kn_weight_format format,
                               struct kn_place place, size_t rows, size_t k) {
    tol_status status = TOL_OK;
    TOL_CHECK((unsigned)format < KN_WEIGHT_FORMATS, TOL_INVALID_ARGUMENT,
              "there is no format %d of weights", (int)format);
    TOL_CHECK(k > 0 && k % kn_weight_grain(format) == 0, TOL_INVALID_ARGUMENT,
              "rows of %s have %zu elements, no multiple of %zu", name, k, kn_weight_grain(format));
    TOL_CHECK(rows <= INT_MAX && k <= INT_MAX, TOL_OVER_LIMIT,
              "%s has %zu rows of %zu elements; each must be below 2^31", name, rows, k);
    TOL_TRY(kn_decoder_bytes(name, place, rows * kn_weight_row_bytes(format, k),
                             kn_weight_alignment(format)));
out:
    return status;
}

static tol_status check(const struct kn_linear *x) {
    tol_status status = TOL_OK;
    const size_t matrix = x->rows * kn_weight_row_bytes(x->format, x->k);
    TOL_CHECK(x->columns < COLUMNS_MAX, TOL_OVER_LIMIT, "linear: %zu columns", x->columns);
    TOL_TRY(kn_decoder_rows("x", x->x, x->columns, x->x_stride, x->k, sizeof(float), 16));
    TOL_TRY(kn_decoder_rows("y", x->y, x->columns, x->y_stride, x->rows, sizeof(float), 4));
    TOL_CHECK(x->gate.address == 0 || (x->bias.address == 0 && !x->adds), TOL_INVALID_ARGUMENT,
              "linear: a gate with a bias or a sum");
    if (x->bias.address != 0) {
        TOL_TRY(kn_decoder_bytes("bias", x->bias, x->rows * sizeof(float), sizeof(float)));
    }
    const size_t x_bytes = ((x->columns - 1) * x->x_stride + x->k) * sizeof(float);
    const size_t y_bytes = ((x->columns - 1) * x->y_stride + x->rows) * sizeof(float);
    TOL_CHECK(!kn_place_overlap(x->y, y_bytes, x->x, x_bytes) &&
                  !kn_place_overlap(x->y, y_bytes, x->weights, matrix) &&
                  !kn_place_overlap(x->y, y_bytes, x->gate, x->gate.address != 0 ? matrix : 0),
              TOL_INVALID_ARGUMENT, "linear: y overlaps what is read");
out:
    return status;
}

tol_status kn_linear(struct kn_kernels *kernels, struct tol_stream *stream,
                     const struct kn_linear *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "linear needs kernels, a stream and a problem");
    if (x->rows == 0 || x->columns == 0) return TOL_OK;
    TOL_TRY(check_matrix("the matrix", x->format, x->weights, x->rows, x->k));
    if (x->gate.address != 0) {
        TOL_TRY(check_matrix("the gate", x->format, x->gate, x->rows, x->k));
    }
    TOL_TRY(check(x));
    const struct kn_variant *rows = linears[x->format][x->gate.address != 0][x->columns > 1];
    const bool has_tensor = rows[0].name != NULL;
    const struct kn_variants variants = {"linear", rows + !has_tensor, 1u + has_tensor};
    const struct kn_variant *variant = NULL;
    TOL_TRY(kn_variant_pick(&variants, tol_context_device(kn_kernels_context(kernels)), x->variant,
                            x, &variant));
    const struct linear_arguments arguments = {.weights = x->weights.address,
                                               .gate = x->gate.address,
                                               .x = x->x.address,
                                               .y = x->y.address,
                                               .bias = x->bias.address,
                                               .x_stride = x->x_stride,
                                               .y_stride = x->y_stride,
                                               .rows = (uint32_t)x->rows,
                                               .columns = (uint32_t)x->columns,
                                               .k = (uint32_t)x->k,
                                               .adds = x->adds};
    const size_t tile_rows = variant->tile[0], tile_columns = variant->tile[1];
    const struct tol_launch_shape shape = {
        .grid_x = (unsigned)((x->rows + tile_rows - 1) / tile_rows),
        .grid_y = (unsigned)((x->columns + tile_columns - 1) / tile_columns),
        .grid_z = 1,
        .block_x = variant->threads,
        .block_y = 1,
        .block_z = 1,
        .shared_bytes = variant->shared_bytes};
    status = kn_decoder_launch(kernels, stream, variant, shape, &arguments, sizeof arguments);
out:
    return status;
}

tol_status kn_embed(struct kn_kernels *kernels, struct tol_stream *stream,
                    const struct kn_embed *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "embed needs kernels, a stream and a problem");
    if (x->rows == 0) return TOL_OK;
    TOL_CHECK(x->table_rows > 0, TOL_INVALID_ARGUMENT, "embed: a table of no rows");
    TOL_CHECK(x->rows <= INT_MAX, TOL_OVER_LIMIT, "embed: %zu rows", x->rows);
    TOL_TRY(check_matrix("the table", x->format, x->table, x->table_rows, x->columns));
    TOL_TRY(kn_decoder_rows("out", x->out, x->rows, x->out_stride, x->columns, sizeof(float), 4));
    TOL_TRY(kn_decoder_bytes("tokens", x->tokens, x->rows * sizeof(int), sizeof(int)));
    const struct embed_arguments arguments = {.table = x->table.address,
                                              .tokens = x->tokens.address,
                                              .out = x->out.address,
                                              .out_stride = x->out_stride,
                                              .table_rows = (uint32_t)x->table_rows,
                                              .columns = (uint32_t)x->columns};
    status = kn_decoder_launch(
        kernels, stream, &embeds[x->format],
        (struct tol_launch_shape){(unsigned)x->rows, 1, 1, EMBED_THREADS, 1, 1, 0}, &arguments,
        sizeof arguments);
out:
    return status;
}

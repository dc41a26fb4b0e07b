/*
 * The host's side of linear.
 */
#include "quantised/linear.h"

#include "choose/struct_launch.h"
#include "core/check.h"
#include "place_check.h"
#include "quantised/linear_arguments.h"
#include "quantised/matrix_check.h"
#include "quantised/rounded.h"

#include <limits.h>

KN_IMAGES(linear_1_warp);
KN_IMAGES(linear_2_tile);
KN_IMAGES(linear_3_tensor);
KN_IMAGES(linear_4_wide);

enum {
    WARPS = 4,
    TENSOR_ROWS = 16,
    TENSOR_COLUMNS = 8,
    WIDE_FROM = LINEAR_WIDE_COLUMNS / 2 + 1, /* columns: more than half of a tile */
    COLUMNS_MAX = 1 << 18
};

static const char *tensor_refuses(const struct kn_variant *row, const void *problem) {
    (void)row;
    const struct kn_linear *x = problem;
    const bool fits = x->weights.address % 4 == 0 && x->gate.address % 4 == 0;
    return x->format == KN_WEIGHT_Q6_K && !fits ? "weights begin at no multiple of 4" : NULL;
}

static const char *wide_refuses(const struct kn_variant *row, const void *problem) {
    const struct kn_linear *x = problem;
    if (x->workspace.address == 0) return "there is no workspace";
    if (x->variant == NULL && x->columns < WIDE_FROM) return "there are few columns";
    return tensor_refuses(row, problem);
}

#define WIDE_SHARED(warps) (LINEAR_WIDE_BYTES + (warps)*LINEAR_WIDE_TOTALS * (int)sizeof(float))

/* tile: rows of a block, or of a warp for "wide", and columns. */
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
#define WIDE(format, entry_, rows)                                                                 \
    {                                                                                              \
        .name = "wide", .entry = entry_ #format, .images = kn_images_linear_4_wide,                \
        .compute_capability_min = 80, .refuse = wide_refuses, .threads = 32 * LINEAR_WIDE_WARPS,   \
        .shared_bytes = WIDE_SHARED(LINEAR_WIDE_WARPS), .tile = {                                  \
            rows,                                                                                  \
            LINEAR_WIDE_COLUMNS                                                                    \
        }                                                                                          \
    }
#define LINEARS(format, wide, tensor, gated_wide, gated_tensor)                                    \
    {                                                                                              \
        {{wide, tensor, FMA(format, "linear_", 1_warp, 1, 2)},                                     \
         {wide, tensor, FMA(format, "linear_", 2_tile, 4, 2)}},                                    \
        {                                                                                          \
            {gated_wide, gated_tensor, FMA(format, "linear_gated_", 1_warp, 1, 1)}, {              \
                gated_wide, gated_tensor, FMA(format, "linear_gated_", 2_tile, 4, 1)               \
            }                                                                                      \
        }                                                                                          \
    }
#define ELEMENTS(format) LINEARS(format, {0}, {0}, {0}, {0})
#define BLOCKS(format)                                                                             \
    LINEARS(format, WIDE(format, "linear_wide_", LINEAR_WIDE_ROWS),                                \
            TENSOR(format, "linear_tensor_"),                                                      \
            WIDE(format, "linear_wide_gated_", LINEAR_WIDE_ROWS / 2),                              \
            TENSOR(format, "linear_tensor_gated_"))
#define SPLIT(format)                                                                              \
    {                                                                                              \
        .name = "split", .entry = "linear_split_" #format, .images = kn_images_linear_4_wide,      \
        .compute_capability_min = 80, .threads = LINEAR_SPLIT_THREADS                              \
    }

/* By format, whether there is a gate, and whether there are several columns: those on tensor cores,
 * which formats of single elements do not have, and the other. */
enum { ON_TENSOR_CORES = 2, LINEAR_VARIANTS };
static const struct kn_variant linears[KN_WEIGHT_FORMATS][2][2][LINEAR_VARIANTS] = {
    ELEMENTS(f32), ELEMENTS(f16), ELEMENTS(bf16), BLOCKS(q8_0),
    BLOCKS(q4_k),  BLOCKS(q5_k),  BLOCKS(q6_k)};
/* What splits x for the wide kernels. */
static const struct kn_variant splits[KN_WEIGHT_FORMATS] = {
    {0}, {0}, {0}, SPLIT(q8_0), SPLIT(q4_k), SPLIT(q5_k), SPLIT(q6_k)};

static tol_status check(const struct kn_linear *x) {
    tol_status status = TOL_OK;
    const size_t matrix = x->rows * kn_weight_row_bytes(x->format, x->k);
    TOL_CHECK(x->columns < COLUMNS_MAX, TOL_OVER_LIMIT, "linear: %zu columns", x->columns);
    TOL_CHECK(!x->is_rounded || x->workspace.address != 0, TOL_INVALID_ARGUMENT,
              "linear: a rounded x without a workspace");
    if (!x->is_rounded) {
        TOL_TRY(kn_place_check_rows("x", x->x, x->columns, x->x_stride, x->k, sizeof(float), 16));
    }
    TOL_TRY(kn_place_check_rows("y", x->y, x->columns, x->y_stride, x->rows, sizeof(float), 4));
    TOL_CHECK(x->gate.address == 0 || (x->bias.address == 0 && !x->adds), TOL_INVALID_ARGUMENT,
              "linear: a gate with a bias or a sum");
    if (x->bias.address != 0) {
        TOL_TRY(kn_place_check("bias", x->bias, x->rows * sizeof(float), sizeof(float)));
    }
    const size_t x_bytes =
        x->is_rounded ? 0 : ((x->columns - 1) * x->x_stride + x->k) * sizeof(float);
    const size_t y_bytes = ((x->columns - 1) * x->y_stride + x->rows) * sizeof(float);
    TOL_CHECK(!kn_place_overlap(x->y, y_bytes, x->x, x_bytes) &&
                  !kn_place_overlap(x->y, y_bytes, x->weights, matrix) &&
                  !kn_place_overlap(x->y, y_bytes, x->gate, x->gate.address != 0 ? matrix : 0),
              TOL_INVALID_ARGUMENT, "linear: y overlaps what is read");
out:
    return status;
}

size_t kn_linear_workspace(size_t columns, size_t k) {
    const size_t tiles = (columns + LINEAR_WIDE_COLUMNS - 1) / LINEAR_WIDE_COLUMNS;
    const size_t split = tiles * ((k + LINEAR_CHUNK - 1) / LINEAR_CHUNK) * LINEAR_WIDE_CHUNK;
    const size_t rounded = kn_rounded_bytes(columns, k);
    return split > rounded ? split : rounded;
}

static tol_status check_workspace(const struct kn_linear *x) {
    tol_status status = TOL_OK;
    const size_t bytes =
        x->is_rounded ? kn_rounded_bytes(x->columns, x->k) : kn_linear_workspace(x->columns, x->k);
    const size_t x_bytes =
        x->is_rounded ? 0 : ((x->columns - 1) * x->x_stride + x->k) * sizeof(float);
    const size_t y_bytes = ((x->columns - 1) * x->y_stride + x->rows) * sizeof(float);
    TOL_TRY(kn_place_check("the workspace", x->workspace, bytes, 16));
    TOL_CHECK(!kn_place_overlap(x->workspace, bytes, x->x, x_bytes) &&
                  !kn_place_overlap(x->workspace, bytes, x->y, y_bytes),
              TOL_INVALID_ARGUMENT, "linear: the workspace overlaps x or y");
out:
    return status;
}

static tol_status check_problem(const struct kn_linear *x) {
    tol_status status = TOL_OK;
    TOL_TRY(kn_matrix_check("the matrix", x->format, x->weights, x->rows, x->k));
    if (x->gate.address != 0) {
        TOL_TRY(kn_matrix_check("the gate", x->format, x->gate, x->rows, x->k));
    }
    TOL_TRY(check(x));
    if (x->workspace.address != 0) TOL_TRY(check_workspace(x));
out:
    return status;
}

tol_status kn_linear_prepare(const struct kn_linear *x, struct linear_bytes_arguments *arguments) {
    tol_status status = TOL_OK;
    TOL_TRY(check_problem(x));
    status = kn_linear_bytes_prepare(x, arguments);
out:
    return status;
}

/* As many warps a block as leave three quarters of the multiprocessors a block: warps of a block
 * share x, and shared memory limits a multiprocessor to two or three blocks. */
static unsigned wide_warps(size_t tiles, size_t column_tiles, size_t multiprocessors) {
    unsigned warps = LINEAR_WIDE_WARPS;
    while (warps > 1 && (tiles + warps - 1) / warps * column_tiles * 4 < multiprocessors * 3) {
        warps /= 2;
    }
    return warps;
}

tol_status kn_linear(struct kn_kernels *kernels, struct tol_stream *stream,
                     const struct kn_linear *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "linear needs kernels, a stream and a problem");
    if (x->rows == 0 || x->columns == 0) return TOL_OK;
    TOL_TRY(check_problem(x));
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    if (kn_linear_bytes_serves(device, x)) return kn_linear_bytes(kernels, stream, x);
    TOL_CHECK(!x->is_rounded, TOL_UNSUPPORTED, "linear: no variant takes a rounded x here");
    const struct kn_variant *rows = linears[x->format][x->gate.address != 0][x->columns > 1];
    const size_t first = rows[0].name != NULL ? 0 : ON_TENSOR_CORES;
    const struct kn_variants variants = {"linear", rows + first, LINEAR_VARIANTS - first};
    const struct kn_variant *variant = NULL;
    TOL_TRY(kn_variant_pick(&variants, device, x->variant, x, &variant));
    const struct linear_arguments arguments = {.weights = x->weights.address,
                                               .gate = x->gate.address,
                                               .x = x->x.address,
                                               .y = x->y.address,
                                               .bias = x->bias.address,
                                               .split = x->workspace.address,
                                               .x_stride = x->x_stride,
                                               .y_stride = x->y_stride,
                                               .rows = (uint32_t)x->rows,
                                               .columns = (uint32_t)x->columns,
                                               .k = (uint32_t)x->k,
                                               .adds = x->adds};
    size_t grid_x = (x->rows + variant->tile[0] - 1) / variant->tile[0];
    const size_t grid_y = (x->columns + variant->tile[1] - 1) / variant->tile[1];
    unsigned threads = variant->threads, shared = variant->shared_bytes;
    if (variant->images == kn_images_linear_4_wide) {
        const size_t chunks = (x->k + LINEAR_CHUNK - 1) / LINEAR_CHUNK;
        const unsigned warps = wide_warps(grid_x, grid_y, (size_t)device->multiprocessors);
        TOL_TRY(kn_struct_launch(kernels, stream, &splits[x->format],
                                 (struct tol_launch_shape){(unsigned)chunks, (unsigned)grid_y, 1,
                                                           LINEAR_SPLIT_THREADS, 1, 1, 0},
                                 &arguments, sizeof arguments));
        grid_x = (grid_x + warps - 1) / warps;
        threads = 32 * warps, shared = (unsigned)WIDE_SHARED((int)warps);
    }
    status = kn_struct_launch(
        kernels, stream, variant,
        (struct tol_launch_shape){(unsigned)grid_x, (unsigned)grid_y, 1, threads, 1, 1, shared},
        &arguments, sizeof arguments);
out:
    return status;
}

/*
 * The host's side of the products of bytes.
 */
#include "quantised/linear_bytes.h"

#include "choose/struct_launch.h"
#include "core/check.h"
#include "place_check.h"
#include "quantised/linear_arguments.h"
#include "quantised/many_shape.h"
#include "quantised/rounded.h"

#include <string.h>

KN_IMAGES(linear_5_bytes);
KN_IMAGES(linear_6_early);
KN_IMAGES(linear_7_stay);
KN_IMAGES(linear_8_many);

static const char *few_columns(const struct kn_variant *row, const void *problem) {
    (void)row;
    const struct kn_linear *x = problem;
    return x->columns <= ROUNDED_COLUMNS ? "there are few columns" : NULL;
}

static const char *parts_of_tiles(const struct kn_variant *row, const void *problem) {
    (void)row;
    const struct kn_linear *x = problem;
    const size_t rows = x->gate.address != 0 ? 8 : 16;
    if (x->columns > ROUNDED_COLUMNS) return "there are more than 8 columns";
    return x->rows % rows != 0 ? "there is a tile that has not all rows" : NULL;
}

static const char *many_refuses(const struct kn_linear *x, size_t tiles) {
    const size_t rows = tiles * (x->gate.address != 0 ? 8 : 16);
    if (x->columns <= ROUNDED_COLUMNS) return "there are few columns";
    if (x->rounded.address != 0 && (x->y.address % 16 != 0 || x->y_stride % 4 != 0)) {
        return "y is not aligned to 16 bytes";
    }
    return x->rows % rows != 0 ? "there is a tile that has not all rows" : NULL;
}

static const char *kept_refuses(const struct kn_variant *row, const void *problem) {
    (void)row;
    const struct kn_linear *x = problem;
    const size_t most = (size_t)LINEAR_KEPT_CHUNKS * LINEAR_BYTES_WARPS * LINEAR_CHUNK;
    return x->k > most ? "columns are too long to be kept" : many_refuses(x, 1);
}

static const char *long_refuses(const struct kn_variant *row, const void *problem) {
    (void)row;
    return many_refuses(problem, LINEAR_LONG_TILES);
}

/* tile: rows of W of a block, and columns. */
#define BYTES(name_, capability, entry_, file, refuse_, stride, tiles, own, columns, stages)       \
    {                                                                                              \
        .name = name_, .entry = entry_, .images = kn_images_linear_##file,                         \
        .compute_capability_min = capability, .refuse = refuse_,                                   \
        .threads = 32 * LINEAR_BYTES_WARPS,                                                        \
        .shared_bytes = LINEAR_BYTES_SHARED(stride, tiles, columns, stages), .tile = {             \
            16 * (own),                                                                            \
            (columns)*ROUNDED_COLUMNS                                                              \
        }                                                                                          \
    }
#define STAY(gated, format, stride, rows)                                                          \
    {                                                                                              \
        .name = "stay", .entry = "linear_stay_" gated #format, .images = kn_images_linear_7_stay,  \
        .compute_capability_min = 90, .refuse = parts_of_tiles,                                    \
        .threads = 32 * LINEAR_BYTES_WARPS, .shared_bytes = LINEAR_STAY_SHARED(stride), .tile = {  \
            rows,                                                                                  \
            ROUNDED_COLUMNS                                                                        \
        }                                                                                          \
    }
#define MANY(way, WAY, gated, format, stride, rows)                                                \
    {                                                                                              \
        .name = #way, .entry = "linear_" #way "_" gated #format,                                   \
        .images = kn_images_linear_8_many, .compute_capability_min = 90, .refuse = way##_refuses,  \
        .threads = 32 * LINEAR_BYTES_WARPS, .shared_bytes = LINEAR_##WAY##_SHARED(stride),         \
        .tile = {                                                                                  \
            rows,                                                                                  \
            LINEAR_MANY_COLUMNS                                                                    \
        }                                                                                          \
    }
#define PLAIN(name, capability, ending, file, format, stride)                                      \
    BYTES(name, capability, "linear_bytes_" #format "_4" ending, file, few_columns, stride,        \
          LINEAR_BYTES_TILES(stride), LINEAR_BYTES_TILES(stride), 4, 2),                           \
        BYTES(name, capability, "linear_bytes_" #format "_1" ending, file, NULL, stride, 1, 1, 1,  \
              LINEAR_BYTES_STAGES(stride))
#define GATED(name, capability, ending, file, format, stride)                                      \
    BYTES(name, capability, "linear_bytes_gated_" #format "_2" ending, file, few_columns, stride,  \
          2, 1, 2, 2),                                                                             \
        BYTES(name, capability, "linear_bytes_gated_" #format "_1" ending, file, NULL, stride, 2,  \
              1, 1, 2)
#define BOTH(format, stride)                                                                       \
    {                                                                                              \
        {STAY("", format, stride, 16), MANY(kept, KEPT, "", format, stride, 16),                   \
         MANY(long, LONG, "", format, stride, 16 * LINEAR_LONG_TILES),                             \
         PLAIN("early", 90, "_early", 6_early, format, stride),                                    \
         PLAIN("bytes", 80, "", 5_bytes, format, stride)},                                         \
        {                                                                                          \
            STAY("gated_", format, stride, 8), MANY(kept, KEPT, "gated_", format, stride, 8),      \
                MANY(long, LONG, "gated_", format, stride, 8 * LINEAR_LONG_TILES),                 \
                GATED("early", 90, "_early", 6_early, format, stride),                             \
                GATED("bytes", 80, "", 5_bytes, format, stride)                                    \
        }                                                                                          \
    }

/* By format, and whether there is a gate. Blocks that stay come first: for few columns, and more
 * tiles than blocks, two of which a multiprocessor has. On an H100 a token of one session is
 * written 6 % faster with them; alone such a kernel is slower, so not for the output matrix, which
 * has thousands of tiles. */
enum { ROWS = 7, BLOCKS_OF_ONE = 2, TILES_OF_BLOCK = 16 };
static const struct kn_variant products[KN_WEIGHT_FORMATS][2][ROWS] = {
    [KN_WEIGHT_Q4_K] = BOTH(q4_k, LINEAR_STRIDE_Q4_K),
    [KN_WEIGHT_Q5_K] = BOTH(q5_k, LINEAR_STRIDE_Q5_K),
    [KN_WEIGHT_Q6_K] = BOTH(q6_k, LINEAR_STRIDE_Q6_K)};

static bool is_ours(const char *name) {
    static const char *const names[] = {"stay", "kept", "long", "early", "bytes"};
    bool ours = name == NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !ours; i++) {
        ours = strcmp(name, names[i]) == 0;
    }
    return ours;
}

size_t kn_linear_tickets(size_t columns, size_t rows) {
    const size_t tiles = (columns + ROUNDED_COLUMNS - 1) / ROUNDED_COLUMNS;
    return tiles * (rows / LINEAR_CHUNK) * sizeof(uint32_t);
}

bool kn_linear_is_bytes(const struct tol_device *device, enum kn_weight_format format) {
    return (unsigned)format < KN_WEIGHT_FORMATS && products[format][0][0].name != NULL &&
           device->compute_capability >= 80;
}

bool kn_linear_bytes_serves(const struct tol_device *device, const struct kn_linear *x) {
    return is_ours(x->variant) && x->workspace.address != 0 &&
           kn_linear_is_bytes(device, x->format);
}

tol_status kn_linear_bytes_prepare(const struct kn_linear *x,
                                   struct linear_bytes_arguments *arguments) {
    tol_status status = TOL_OK;
    *arguments = (struct linear_bytes_arguments){.linear = {.weights = x->weights.address,
                                                            .gate = x->gate.address,
                                                            .y = x->y.address,
                                                            .bias = x->bias.address,
                                                            .split = x->workspace.address,
                                                            .y_stride = x->y_stride,
                                                            .rows = (uint32_t)x->rows,
                                                            .columns = (uint32_t)x->columns,
                                                            .k = (uint32_t)x->k,
                                                            .adds = x->adds}};
    if (x->rounded.address != 0) {
        TOL_CHECK(x->gate.address != 0 && x->rows % LINEAR_CHUNK == 0, TOL_INVALID_ARGUMENT,
                  "linear: %zu rows %s gate cannot be rounded", x->rows,
                  x->gate.address != 0 ? "with a" : "without a");
        TOL_TRY(
            kn_place_check("the rounded y", x->rounded, kn_rounded_bytes(x->columns, x->rows), 16));
        TOL_TRY(kn_place_check("tickets", x->tickets, kn_linear_tickets(x->columns, x->rows), 4));
        arguments->rounded = x->rounded.address;
        arguments->tickets = x->tickets.address;
    }
out:
    return status;
}

/* Beside many columns by a kernel of its own: blocks that stay end together, so the last of them
 * would find most chunks complete and round them one after the other. */
static tol_status round_result(struct kn_kernels *kernels, struct tol_stream *stream,
                               const struct kn_linear *x) {
    return kn_rounded(kernels, stream,
                      &(struct kn_rounded){.columns = x->columns,
                                           .k = x->rows,
                                           .x = x->y,
                                           .x_stride = x->y_stride,
                                           .out = x->rounded});
}

tol_status kn_linear_bytes(struct kn_kernels *kernels, struct tol_stream *stream,
                           const struct kn_linear *x) {
    tol_status status = TOL_OK;
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    const struct kn_variant *variants_of = products[x->format][x->gate.address != 0];
    const size_t multiprocessors = (size_t)device->multiprocessors;
    const size_t blocks = BLOCKS_OF_ONE * multiprocessors;
    const size_t tiles = x->rows / variants_of[0].tile[0];
    const bool leaves = x->variant == NULL && (x->columns > LINEAR_STAY_COLUMNS ||
                                               tiles <= blocks || tiles > TILES_OF_BLOCK * blocks);
    const struct kn_variants variants = {"linear", variants_of + leaves, ROWS - leaves};
    const struct kn_variant *variant = NULL;
    TOL_TRY(kn_variant_pick(&variants, device, x->variant, x, &variant));
    struct linear_bytes_arguments arguments;
    TOL_TRY(kn_linear_bytes_prepare(x, &arguments));
    const bool is_many = variant->images == kn_images_linear_8_many;
    size_t grid_x = (x->rows + variant->tile[0] - 1) / variant->tile[0];
    if (variant == variants_of && grid_x > blocks) grid_x = blocks;
    if (is_many && grid_x > multiprocessors) grid_x = multiprocessors;
    const size_t grid_y = (x->columns + variant->tile[1] - 1) / variant->tile[1];
    if (!x->is_rounded) {
        TOL_TRY(kn_rounded(kernels, stream,
                           &(struct kn_rounded){.columns = x->columns,
                                                .k = x->k,
                                                .x = x->x,
                                                .x_stride = x->x_stride,
                                                .out = x->workspace}));
    }
    status = kn_struct_launch_pdl(kernels, stream, variant,
                                  (struct tol_launch_shape){(unsigned)grid_x, (unsigned)grid_y, 1,
                                                            variant->threads, 1, 1,
                                                            variant->shared_bytes},
                                  &arguments, sizeof arguments);
    if (status == TOL_OK && is_many && x->rounded.address != 0) {
        status = round_result(kernels, stream, x);
    }
out:
    return status;
}

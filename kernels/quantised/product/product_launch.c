/*
 * What a product launches: arguments, tensor maps, grids, prologues and epilogues.
 */
#include "quantised/product/product_launch.h"

#include "choose/plan_map.h"
#include "choose/struct_launch.h"
#include "core/check.h"
#include "place_check.h"
#include "quantised/formats/linear_arguments.h"
#include "quantised/product/product_split.h"
#include "quantised/product/product_table.h"
#include "quantised/formats/rounded.h"

#include <assert.h>

KN_IMAGES(quant_product_3_integers);
KN_IMAGES(quant_product_8_wgmma);
KN_IMAGES(quant_product_9_split);
KN_IMAGES(quant_product_10_columns);
KN_IMAGES(linear_4_wide);

enum { THREADS = 128, GRID_Y_MAX = 65535, HALVES_OF_A_THREAD = 8, HALF_BYTES = 2, UNIT_BYTES = 16 };

/* The parameters of a product's kernel: two tensor maps, if it takes them, and a struct. */
struct product_parameters {
    CUtensorMap weights, x;
    union {
        struct kn_quant_product_arguments quant;
        struct linear_bytes_arguments linear; /* begins with what the others take */
    } is;
    unsigned bytes; /* of the struct */
};

/* ---- prologues ------------------------------------------------------------------------------- */

#define PROLOGUE(name_, image, capability)                                                         \
    {                                                                                              \
        .name = "prologue", .entry = name_, .images = kn_images_##image,                           \
        .compute_capability_min = capability                                                       \
    }
static const struct kn_variant to_bytes =
    PROLOGUE("quant_product_quantise", quant_product_3_integers, 75);
static const struct kn_variant to_columns =
    PROLOGUE("quant_product_columns_x", quant_product_10_columns, 90);
static const struct kn_variant to_halves =
    PROLOGUE("quant_product_halves", quant_product_8_wgmma, 90);
static const struct kn_variant to_halves_and_tickets = /* and sets tickets to 0 */
    PROLOGUE("quant_product_halves_split", quant_product_9_split, 90);
static const struct kn_variant to_parts[KN_WEIGHT_FORMATS] = {
    [KN_WEIGHT_Q8_0] = PROLOGUE("linear_split_q8_0", linear_4_wide, 80),
    [KN_WEIGHT_Q4_K] = PROLOGUE("linear_split_q4_k", linear_4_wide, 80),
    [KN_WEIGHT_Q5_K] = PROLOGUE("linear_split_q5_k", linear_4_wide, 80),
    [KN_WEIGHT_Q6_K] = PROLOGUE("linear_split_q6_k", linear_4_wide, 80)};

static unsigned product_launch_product_parts(size_t count, size_t of_one) {
    return (unsigned)((count - 1) / of_one + 1);
}

/* At most one block per multiprocessor, beside which a block of "columns" fits. */
static struct tol_launch_shape columns_x_shape(const struct kn_product *p,
                                               const struct tol_device *device) {
    const unsigned columns = (unsigned)p->columns, threads = KN_QUANT_COLUMNS_X_THREADS;
    const unsigned whole = product_launch_product_parts(p->k, threads);
    const unsigned most = (unsigned)device->multiprocessors / columns;
    return (struct tol_launch_shape){whole <= most ? whole : most > 0 ? most : 1,
                                     columns,
                                     1,
                                     threads,
                                     1,
                                     1,
                                     KN_QUANT_COLUMNS_X_BYTES};
}

static tol_status round_columns(struct kn_kernels *kernels, struct tol_stream *stream,
                                struct kn_place x, size_t stride, size_t columns, size_t k,
                                struct kn_place out) {
    return kn_rounded(
        kernels, stream,
        &(struct kn_rounded){.columns = columns, .k = k, .x = x, .x_stride = stride, .out = out});
}

/* Whether the product of this kind is preceded by a kernel that makes x ready. */
static bool has_prologue(unsigned kind, const struct kn_product *p) {
    const bool is_apart = kind == KN_PRODUCT_APART || kind == KN_PRODUCT_COLUMNS ||
                          kind == KN_PRODUCT_WGMMA || kind == KN_PRODUCT_SPLIT ||
                          kind == KN_PRODUCT_WIDE;
    return (is_apart && p->k > 0) || (kind >= KN_PRODUCT_BYTES && !p->is_rounded);
}

static tol_status launch_prologue(struct kn_kernels *kernels, struct tol_stream *stream,
                                  unsigned kind, const struct kn_product *p,
                                  const struct product_parameters *parameters) {
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    const struct kn_variant *row = &to_bytes;
    struct tol_launch_shape shape = {
        product_launch_product_parts(p->k, THREADS), (unsigned)p->columns, 1, THREADS, 1, 1, 0};
    if (kind >= KN_PRODUCT_BYTES) {
        return round_columns(kernels, stream, p->x, p->x_stride, p->columns, p->k, p->workspace);
    }
    if (kind == KN_PRODUCT_COLUMNS) row = &to_columns, shape = columns_x_shape(p, device);
    if (kind == KN_PRODUCT_WGMMA || kind == KN_PRODUCT_SPLIT) {
        row = kind == KN_PRODUCT_SPLIT ? &to_halves_and_tickets : &to_halves;
        shape.grid_x = product_launch_product_parts(p->k, (size_t)THREADS * HALVES_OF_A_THREAD);
    }
    if (kind == KN_PRODUCT_WIDE) {
        row = &to_parts[p->format];
        shape =
            (struct tol_launch_shape){product_launch_product_parts(p->k, LINEAR_CHUNK),
                                      product_launch_product_parts(p->columns, LINEAR_WIDE_COLUMNS),
                                      1,
                                      LINEAR_SPLIT_THREADS,
                                      1,
                                      1,
                                      0};
    }
    return kn_struct_launch(kernels, stream, row, shape, &parameters->is, parameters->bytes);
}

/* ---- arguments ------------------------------------------------------------------------------- */

size_t kn_product_scales_at(size_t columns, size_t k) {
    return (columns * k + 15) / 16 * 16;
}

static struct kn_quant_product_arguments quant_arguments(unsigned kind,
                                                         const struct kn_product *p) {
    const size_t scales_at = kind == KN_PRODUCT_WGMMA || kind == KN_PRODUCT_SPLIT
                                 ? kn_quant_wgmma_workspace(p->columns, p->k)
                                 : kn_product_scales_at(p->columns, p->k);
    return (struct kn_quant_product_arguments){.weights = p->weights.address,
                                               .x = p->x.address,
                                               .y = p->y.address,
                                               .quants = p->workspace.address,
                                               .scales = p->workspace.address + scales_at,
                                               .x_stride = p->x_stride,
                                               .y_stride = p->y_stride,
                                               .rows = (uint32_t)p->rows,
                                               .columns = (uint32_t)p->columns,
                                               .blocks =
                                                   (uint32_t)(p->k / kn_weight_grain(p->format)),
                                               .k = (uint32_t)p->k};
}

static struct linear_arguments linear_arguments_of(const struct kn_product *p) {
    return (struct linear_arguments){.weights = p->weights.address,
                                     .gate = p->gate.address,
                                     .x = p->x.address,
                                     .y = p->y.address,
                                     .bias = p->bias.address,
                                     .split = p->workspace.address,
                                     .x_stride = p->x_stride,
                                     .y_stride = p->y_stride,
                                     .rows = (uint32_t)p->rows,
                                     .columns = (uint32_t)p->columns,
                                     .k = (uint32_t)p->k,
                                     .adds = p->adds};
}

tol_status kn_product_bytes_arguments(const struct kn_product *p,
                                      struct linear_bytes_arguments *arguments) {
    tol_status status = TOL_OK;
    *arguments = (struct linear_bytes_arguments){.linear = linear_arguments_of(p)};
    if (p->rounded.address == 0) return TOL_OK;
    const size_t tiles = product_launch_product_parts(p->columns, ROUNDED_COLUMNS);
    TOL_CHECK(p->gate.address != 0 && p->rows % LINEAR_CHUNK == 0, TOL_INVALID_ARGUMENT,
              "linear: %zu rows %s gate cannot be rounded", p->rows,
              p->gate.address != 0 ? "with a" : "without a");
    TOL_TRY(kn_place_check("the rounded y", p->rounded, kn_rounded_bytes(p->columns, p->rows), 16));
    TOL_TRY(kn_place_check("tickets", p->tickets,
                           tiles * (p->rows / LINEAR_CHUNK) * sizeof(uint32_t), 4));
    arguments->rounded = p->rounded.address;
    arguments->tickets = p->tickets.address;
    assert(arguments->rounded % 16 == 0 && arguments->tickets != 0);
out:
    return status;
}

/* The bytes of a row of weights that a block loads at once, in whole units. */
static int product_launch_chunk_bytes(enum kn_weight_format format) {
    const size_t bytes = kn_weight_row_bytes(format, KN_QUANT_WGMMA_CHUNK);
    return (int)((bytes + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES);
}

/* Weights are copied as elements of two bytes: a TMA box has at most 256 elements of a row, and 256
 * weights of Q8_0 have 272 bytes. */
static tol_status make_maps(struct kn_kernels *kernels, const struct kn_variant *row,
                            const struct kn_product *p, struct product_parameters *parameters) {
    tol_status status = TOL_OK;
    const bool is_cut = row->tile[2] == KN_PRODUCT_SPLIT && p->columns < row->tile[1];
    const int length = (int)(kn_weight_row_bytes(p->format, p->k) / HALF_BYTES);
    TOL_TRY(
        kn_kernels_map(kernels,
                       &(struct kn_tensor){.name = "quant product's weights",
                                           .address = p->weights.address,
                                           .type = KN_F16,
                                           .columns = length,
                                           .rows = (int)p->rows,
                                           .matrices = 1,
                                           .leading = length,
                                           .box_rows = (int)row->tile[0],
                                           .plain_bytes = product_launch_chunk_bytes(p->format)},
                       &parameters->weights));
    status =
        kn_kernels_map(kernels,
                       &(struct kn_tensor){.name = "quant product's x",
                                           .address = p->workspace.address,
                                           .type = KN_F16,
                                           .columns = (int)p->k,
                                           .rows = (int)p->columns,
                                           .matrices = 1,
                                           .leading = (long long)p->k,
                                           .box_rows = (int)(is_cut ? p->columns : row->tile[1])},
                       &parameters->x);
out:
    return status;
}

static tol_status make_parameters(struct kn_kernels *kernels, const struct kn_variant *row,
                                  const struct kn_product *p,
                                  struct product_parameters *parameters) {
    tol_status status = TOL_OK;
    const unsigned kind = row->tile[2];
    if (kind >= KN_PRODUCT_BYTES) {
        parameters->bytes = sizeof(struct linear_bytes_arguments);
        return kn_product_bytes_arguments(p, &parameters->is.linear);
    }
    if (kn_product_is_linear(p)) {
        parameters->bytes = sizeof(struct linear_arguments);
        parameters->is.linear.linear = linear_arguments_of(p);
        return TOL_OK;
    }
    parameters->bytes = sizeof(struct kn_quant_product_arguments);
    parameters->is.quant = quant_arguments(kind, p);
    if (row->cluster != 0) status = make_maps(kernels, row, p, parameters);
    return status;
}

/* ---- grids ----------------------------------------------------------------------------------- */

/* The persistent thread blocks of a multiprocessor; 0: each block computes one tile. */
static unsigned persistent_blocks(unsigned kind) {
    if (kind == KN_PRODUCT_STAY) return 2;
    return kind == KN_PRODUCT_BULK || kind == KN_PRODUCT_COLUMNS || kind == KN_PRODUCT_MANY;
}

/* Warps of a block share x, and shared memory limits a multiprocessor to two or three blocks. So a
 * block has the most warps with which three quarters of the multiprocessors have a block. */
static void shape_wide(struct tol_launch_shape *shape, size_t multiprocessors) {
    unsigned warps = LINEAR_WIDE_WARPS;
    const size_t tiles = shape->grid_x;
    while (warps > 1 && product_launch_product_parts(tiles, warps) * (size_t)shape->grid_y * 4 <
                            multiprocessors * 3) {
        warps /= 2;
    }
    shape->grid_x = product_launch_product_parts(tiles, warps);
    shape->block_x = 32 * warps;
    shape->shared_bytes =
        (unsigned)(LINEAR_WIDE_BYTES + warps * LINEAR_WIDE_TOTALS * sizeof(float));
}

static struct tol_launch_shape product_launch_shape_of(const struct kn_variant *row,
                                                       const struct kn_product *p,
                                                       const struct tol_device *device) {
    const unsigned kind = row->tile[2], multiprocessors = (unsigned)device->multiprocessors;
    const unsigned most = persistent_blocks(kind) * multiprocessors;
    struct tol_launch_shape shape = {product_launch_product_parts(p->rows, row->tile[0]),
                                     product_launch_product_parts(p->columns, row->tile[1]),
                                     1,
                                     row->threads,
                                     1,
                                     1,
                                     row->shared_bytes};
    if (most > 0 && shape.grid_x > most) shape.grid_x = most;
    if (kind == KN_PRODUCT_STAGED || kind == KN_PRODUCT_BULK) {
        shape.shared_bytes = (unsigned)kn_product_staged_bytes(p->k) +
                             (kind == KN_PRODUCT_BULK ? KN_QUANT_BULK_RING_BYTES : 0);
    }
    if (kind == KN_PRODUCT_SPLIT) {
        shape.grid_z =
            kn_quant_split_shares((size_t)shape.grid_x * shape.grid_y, p->k / KN_QUANT_WGMMA_CHUNK);
    }
    if (kind == KN_PRODUCT_WIDE) shape_wide(&shape, multiprocessors);
    assert(shape.shared_bytes <= row->shared_bytes && shape.grid_x > 0 && shape.grid_y > 0);
    return shape;
}

/* ---- the launch ------------------------------------------------------------------------------ */

static tol_status product_launch_launch_product(struct tol_stream *stream,
                                                const struct tol_kernel *kernel,
                                                struct tol_launch_shape shape, bool is_pdl,
                                                bool takes_maps,
                                                struct product_parameters *parameters) {
    void *values[] = {&parameters->weights, &parameters->x, &parameters->is};
    const unsigned bytes[] = {sizeof(CUtensorMap), sizeof(CUtensorMap), parameters->bytes};
    const struct tol_arguments arguments = {takes_maps ? 3 : 1, values + (takes_maps ? 0 : 2),
                                            bytes + (takes_maps ? 0 : 2)};
    return is_pdl ? tol_launch_programmatic(stream, kernel, shape, arguments)
                  : tol_launch(stream, kernel, shape, arguments);
}

tol_status kn_product_launch(struct kn_kernels *kernels, struct tol_stream *stream,
                             const struct kn_variant *row, const struct tol_kernel *kernel,
                             const struct kn_product *p) {
    tol_status status = TOL_OK;
    const unsigned kind = row->tile[2];
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    const struct tol_launch_shape shape = product_launch_shape_of(row, p, device);
    const bool is_preceded = has_prologue(kind, p);
    struct product_parameters parameters;
    TOL_CHECK(shape.grid_y <= GRID_Y_MAX &&
                  (!is_preceded || kn_product_is_linear(p) || p->columns <= GRID_Y_MAX),
              TOL_OVER_LIMIT, "%s: %zu columns are too many for %s", p->operation, p->columns,
              row->name);
    TOL_TRY(make_parameters(kernels, row, p, &parameters));
    if (is_preceded) TOL_TRY(launch_prologue(kernels, stream, kind, p, &parameters));
    /* "columns" reads weights without waiting, which is safe only after its prologue. */
    const bool is_pdl = row->pdl && (kind != KN_PRODUCT_COLUMNS || is_preceded);
    TOL_TRY(product_launch_launch_product(stream, kernel, shape, is_pdl, row->cluster != 0,
                                          &parameters));
    if (kind == KN_PRODUCT_MANY && p->rounded.address != 0) {
        /* Persistent thread blocks end together, so the last would round most chunks alone. */
        status = round_columns(kernels, stream, p->y, p->y_stride, p->columns, p->rows, p->rounded);
    }
out:
    return status;
}

/*
 * The rows of all products, what they refuse and what they decline.
 */
#include "quantised/product/product_table.h"

#include "quantised/formats/linear_arguments.h"
#include "quantised/product/many_shape.h"
#include "quantised/product/product_split.h"

KN_IMAGES(quant_product_1_naive);
KN_IMAGES(quant_product_2_rows);
KN_IMAGES(quant_product_3_integers);
KN_IMAGES(quant_product_4_tensor);
KN_IMAGES(quant_product_5_staged);
KN_IMAGES(quant_product_6_early);
KN_IMAGES(quant_product_7_bulk);
KN_IMAGES(quant_product_8_wgmma);
KN_IMAGES(quant_product_9_split);
KN_IMAGES(quant_product_10_columns);
KN_IMAGES(linear_1_warp);
KN_IMAGES(linear_2_tile);
KN_IMAGES(linear_3_tensor);
KN_IMAGES(linear_4_wide);
KN_IMAGES(linear_5_bytes);
KN_IMAGES(linear_6_early);
KN_IMAGES(linear_7_stay);
KN_IMAGES(linear_8_many);

enum {
    ROW_ALIGNMENT = 16,                      /* of weights in a tensor map */
    WIDE_FROM = LINEAR_WIDE_COLUMNS / 2 + 1, /* columns: more than half of a tile */
    SPLIT_FROM = 9,                          /* columns */
    WGMMA_FROM = 33,                         /* so too */
    COLUMNS_WEIGHTS = 1 << 24,               /* as few as an H100 was timed with */
    STAY_TILES = 16,                         /* per block; the output matrix has more */
    FILLED = 132                             /* multiprocessors of an H100 */
};

/* ---- what a row refuses ---------------------------------------------------------------------- */

static const char *product_refuse_columns(const struct kn_variant *row,
                                          const struct kn_product *p) {
    if (row->size > 0 && p->columns > row->size) {
        return row->size == 1    ? "there are several columns"
               : row->size == 8  ? "there are more than 8 columns"
               : row->size == 32 ? "there are more than 32 columns"
                                 : "there are more than 64 columns";
    }
    if ((row->needs & KN_PRODUCT_SEVERAL) != 0 && p->columns == 1) return "there is one column";
    return (row->needs & KN_PRODUCT_OVER_8) != 0 && p->columns <= 8 ? "there are few columns"
                                                                    : NULL;
}

static const char *product_refuse_x(const struct kn_variant *row, const struct kn_product *p) {
    if ((row->needs & KN_PRODUCT_FLOATS) != 0 && p->is_rounded) {
        return "it does not take a rounded x";
    }
    if ((row->needs & KN_PRODUCT_X_16) != 0 &&
        (p->x.address % 16 != 0 || (p->x_stride % 4 != 0 && p->columns > 1))) {
        return "x or its columns are not aligned to 16 bytes";
    }
    const size_t ring = row->tile[2] == KN_PRODUCT_BULK ? KN_QUANT_BULK_RING_BYTES : 0;
    if ((row->needs & KN_PRODUCT_FITS) != 0 &&
        kn_product_staged_bytes(p->k) > row->shared_bytes - ring) {
        return "x as bytes does not fit shared memory";
    }
    const size_t kept = (size_t)LINEAR_KEPT_CHUNKS * LINEAR_BYTES_WARPS * LINEAR_CHUNK;
    return (row->needs & KN_PRODUCT_SHORT) != 0 && p->k > kept ? "columns are too long to be kept"
                                                               : NULL;
}

static const char *product_refuse_maps(const struct kn_product *p) {
    if (!p->has_maps) return "the driver makes no tensor maps";
    if (p->k == 0 || p->k % KN_QUANT_WGMMA_CHUNK != 0) return "k is 0 or no multiple of 256";
    return p->weights.address % ROW_ALIGNMENT != 0 ||
                   kn_weight_row_bytes(p->format, p->k) % ROW_ALIGNMENT != 0
               ? "a row of weights does not begin at a multiple of 16 bytes"
               : NULL;
}

static const char *product_refuse_weights(const struct kn_variant *row,
                                          const struct kn_product *p) {
    if ((row->needs & KN_PRODUCT_MAPS) != 0) return product_refuse_maps(p);
    if ((row->needs & KN_PRODUCT_WEIGHTS_16) != 0 && p->format == KN_WEIGHT_Q4_K &&
        p->weights.address % 16 != 0) {
        return "the weights are not aligned to 16 bytes";
    }
    const bool has_words = p->weights.address % 4 == 0 && p->gate.address % 4 == 0;
    return (row->needs & KN_PRODUCT_WORDS) != 0 && p->format == KN_WEIGHT_Q6_K && !has_words
               ? "weights begin at no multiple of 4"
               : NULL;
}

static const char *product_refuse_workspace(const struct kn_variant *row,
                                            const struct kn_product *p) {
    if ((row->needs & KN_PRODUCT_WORKSPACE) != 0 && p->workspace.address == 0) {
        return "there is no workspace";
    }
    const size_t bytes =
        (row->needs & KN_PRODUCT_SHARES) != 0   ? kn_quant_split_workspace(p->columns, p->k)
        : (row->needs & KN_PRODUCT_HALVES) != 0 ? kn_quant_wgmma_workspace(p->columns, p->k)
                                                : 0;
    return p->workspace.bytes < bytes ? "the workspace is too small" : NULL;
}

static const char *product_refuse_rows(const struct kn_variant *row, const struct kn_product *p) {
    if ((row->needs & KN_PRODUCT_Y_16) != 0 && p->rounded.address != 0 &&
        (p->y.address % 16 != 0 || p->y_stride % 4 != 0)) {
        return "y is not aligned to 16 bytes";
    }
    return (row->needs & KN_PRODUCT_WHOLE) != 0 && p->rows % row->tile[0] != 0
               ? "there is a tile that has not all rows"
               : NULL;
}

const char *kn_product_refuse(const struct kn_variant *row, const void *product) {
    const struct kn_product *p = product;
    const char *why = product_refuse_columns(row, p);
    if (why == NULL) why = product_refuse_weights(row, p);
    if (why == NULL) why = product_refuse_x(row, p);
    if (why == NULL) why = product_refuse_rows(row, p);
    return why != NULL ? why : product_refuse_workspace(row, p);
}

/* ---- what a row declines --------------------------------------------------------------------- */

static size_t product_table_product_parts(size_t count, size_t of_one) {
    return (count - 1) / of_one + 1;
}

static const char *product_decline_split(const struct kn_product *p) {
    if (p->columns < SPLIT_FROM) return "there are fewer than 9 columns";
    const size_t tiles =
        product_table_product_parts(p->rows, KN_QUANT_WGMMA_ROWS) *
        product_table_product_parts(p->columns, kn_quant_split_columns(p->columns));
    return kn_quant_split_shares(tiles, p->k / KN_QUANT_WGMMA_CHUNK) == 1 ? "k is in one share"
                                                                          : NULL;
}

/* Tiles of 256 columns pay where tiles of 128 take more than one round. */
static const char *product_decline_wgmma(const struct kn_variant *row, const struct kn_product *p) {
    if (p->columns < WGMMA_FROM) return "there are at most 32 columns";
    const size_t tiles = product_table_product_parts(p->rows, KN_QUANT_WGMMA_ROWS) *
                         product_table_product_parts(p->columns, 128);
    return row->tile[1] == 256 && tiles <= FILLED ? "all tiles of 128 columns run at once" : NULL;
}

/* Persistent thread blocks pay for few columns and more tiles than blocks. Alone such a kernel is
 * slower, so the output matrix, which has thousands of tiles, does not take it. */
static const char *product_decline_stay(const struct kn_variant *row, const struct kn_product *p,
                                        const struct tol_device *device) {
    const size_t blocks = 2 * (size_t)device->multiprocessors, tiles = p->rows / row->tile[0];
    if (p->columns > LINEAR_STAY_COLUMNS) return "there are more than 4 columns";
    if (tiles <= blocks) return "there is a block for each tile";
    return tiles > STAY_TILES * blocks ? "there are more than 16 tiles per block" : NULL;
}

static const char *product_decline(const struct kn_variant *row, const void *product,
                                   const struct tol_device *device) {
    const struct kn_product *p = product;
    switch (row->tile[2]) {
    case KN_PRODUCT_COLUMNS:
        return p->rows * p->k < COLUMNS_WEIGHTS ? "there are few weights" : NULL;
    case KN_PRODUCT_SPLIT:
        return product_decline_split(p);
    case KN_PRODUCT_WGMMA:
        return product_decline_wgmma(row, p);
    case KN_PRODUCT_WIDE:
        return p->columns < WIDE_FROM ? "there are few columns" : NULL;
    case KN_PRODUCT_STAY:
        return product_decline_stay(row, p, device);
    default:
        return NULL;
    }
}

/* ---- the rows -------------------------------------------------------------------------------- */

#define NEEDS(bit) KN_PRODUCT_##bit
#define ALIGNED (NEEDS(WEIGHTS_16) | NEEDS(X_16))

/* Name, entry, image, least compute capability, needs, most columns, threads and dynamic shared
 * memory of a block, rows and columns of its tile, kind, and whether it is launched by PDL. */
#define ROW(name_, entry_, image, capability, needs_, most, threads_, shared, rows, columns, kind, \
            pdl_)                                                                                  \
    {                                                                                              \
        .name = name_, .entry = entry_, .images = kn_images_##image,                               \
        .compute_capability_min = capability, .needs = needs_, .size = most,                       \
        .refuse = kn_product_refuse, .decline = product_decline, .threads = threads_,              \
        .shared_bytes = shared, .tile = {rows, columns, KN_PRODUCT_##kind}, .pdl = pdl_            \
    }
#define MAPS_ROW(name, entry, image, needs, most, columns, kind)                                   \
    {                                                                                              \
        KN_PRODUCT_MAPS_ROW(name, entry, kn_images_##image, needs, most, columns, kind),           \
            .decline = product_decline                                                             \
    }

#define F32(f)                                                                                     \
    ROW("rows", "quant_product_rows_" f "_1", quant_product_2_rows, 75, ALIGNED, 1, 128, 0, 4, 1,  \
        PLAIN, false),                                                                             \
        ROW("rows", "quant_product_rows_" f "_4", quant_product_2_rows, 75, ALIGNED, 0, 128, 0, 2, \
            4, PLAIN, false),                                                                      \
        ROW("naive", "quant_product_naive_" f, quant_product_1_naive, 75, 0, 0, 128, 0, 128, 1,    \
            ALONE, false)
#define SPLIT(f, columns, most)                                                                    \
    MAPS_ROW("wgmma_split", "quant_product_split_" f "_128x" #columns, quant_product_9_split,      \
             NEEDS(SHARES), most, columns, KN_PRODUCT_SPLIT)
#define WGMMA(name, f, columns)                                                                    \
    MAPS_ROW(name, "quant_product_wgmma_" f "_" #columns, quant_product_8_wgmma, NEEDS(HALVES), 0, \
             columns, KN_PRODUCT_WGMMA)
#define F16(f)                                                                                     \
    SPLIT(f, 32, 32), SPLIT(f, 64, 64), SPLIT(f, 128, 0), WGMMA("wgmma_256", f, 256),              \
        WGMMA("wgmma", f, 128),                                                                    \
        ROW("tensor", "quant_product_tensor_" f "_8", quant_product_4_tensor, 80, ALIGNED, 32,     \
            128, 0, 16, 8, PLAIN, false),                                                          \
        ROW("tensor", "quant_product_tensor_" f "_64", quant_product_4_tensor, 80, ALIGNED, 0,     \
            128, 0, 64, 64, PLAIN, false)
#define Q8_1(f)                                                                                    \
    ROW("integers", "quant_product_integers_" f "_1", quant_product_3_integers, 75,                \
        NEEDS(WEIGHTS_16), 1, 128, 0, 4, 1, APART, false),                                         \
        ROW("integers", "quant_product_integers_" f "_8", quant_product_3_integers, 75,            \
            NEEDS(WEIGHTS_16), 0, 128, 0, 2, 8, APART, false)

/* The shared memory for x that a block of 227 KiB has left beside its ring and its mbarriers, and
 * what every device has. */
enum { BULK_X_BYTES = 46 << 10, STAGED_X_BYTES = 48 << 10, STAGED_THREADS = 512 };
#define Q8_1_Q4_K                                                                                  \
    ROW("columns", "quant_product_columns", quant_product_10_columns, 90,                          \
        NEEDS(WEIGHTS_16) | NEEDS(SEVERAL), KN_QUANT_COLUMNS_MOST, KN_QUANT_COLUMNS_THREADS,       \
        KN_QUANT_COLUMNS_BYTES, KN_QUANT_COLUMNS_ROWS_LEAST, KN_QUANT_COLUMNS_MOST, COLUMNS,       \
        true),                                                                                     \
        ROW("bulk_early", "quant_product_bulk", quant_product_7_bulk, 90, ALIGNED | NEEDS(FITS),   \
            1, STAGED_THREADS, KN_QUANT_BULK_RING_BYTES + BULK_X_BYTES, KN_QUANT_BULK_ROWS, 1,     \
            BULK, true),                                                                           \
        ROW("early_1", "quant_product_early_1", quant_product_6_early, 90, ALIGNED | NEEDS(FITS),  \
            1, STAGED_THREADS, STAGED_X_BYTES, 16, 1, STAGED, true),                               \
        ROW("staged_1", "quant_product_staged_1", quant_product_5_staged, 75,                      \
            ALIGNED | NEEDS(FITS), 1, STAGED_THREADS, STAGED_X_BYTES, 16, 1, STAGED, false),       \
        Q8_1("q4_k")

/* Of kn_linear. rows: of a tile of 16 rows of weights, which are 8 of each matrix with a gate. */
enum { BYTES_THREADS = 32 * LINEAR_BYTES_WARPS, WIDE_THREADS = 32 * LINEAR_WIDE_WARPS };
#define WIDE_SHARED                                                                                \
    (LINEAR_WIDE_BYTES + LINEAR_WIDE_WARPS * LINEAR_WIDE_TOTALS * (int)sizeof(float))
#define FMA(f, gate, rows)                                                                         \
    ROW("fma", "linear_" gate f "_1", linear_1_warp, 75, NEEDS(FLOATS), 1, 128, 0, rows / 2, 1,    \
        TILES, false),                                                                             \
        ROW("fma", "linear_" gate f "_4", linear_2_tile, 75, NEEDS(FLOATS), 0, 128, 0, rows / 2,   \
            4, TILES, false)
#define BLOCKS(f, gate, rows)                                                                      \
    ROW("wide", "linear_wide_" gate f, linear_4_wide, 80,                                          \
        NEEDS(FLOATS) | NEEDS(WORDS) | NEEDS(WORKSPACE), 0, WIDE_THREADS, WIDE_SHARED, 2 * (rows), \
        LINEAR_WIDE_COLUMNS, WIDE, false),                                                         \
        ROW("tensor", "linear_tensor_" gate f, linear_3_tensor, 80, NEEDS(FLOATS) | NEEDS(WORDS),  \
            0, LINEAR_TENSOR_THREADS, LINEAR_TENSOR_BYTES, 16, 8, TILES, false),                   \
        FMA(f, gate, rows)
/* One tile of columns per block, or `columns` of them, of which `stages` chunks are in flight. */
#define BYTES(name, capability, pdl, image, entry, needs, stride, tiles, own, columns, stages)     \
    ROW(name, entry, image, capability, NEEDS(WORKSPACE) | (needs), 0, BYTES_THREADS,              \
        LINEAR_BYTES_SHARED(stride, tiles, columns, stages), 16 * (own),                           \
        (columns) * (int)ROUNDED_COLUMNS, BYTES, pdl)
#define PLAIN_BYTES(name, capability, pdl, image, ending, f, stride)                               \
    BYTES(name, capability, pdl, image, "linear_bytes_" f "_4" ending, NEEDS(OVER_8), stride,      \
          LINEAR_BYTES_TILES(stride), LINEAR_BYTES_TILES(stride), 4, 2),                           \
        BYTES(name, capability, pdl, image, "linear_bytes_" f "_1" ending, 0, stride, 1, 1, 1,     \
              LINEAR_BYTES_STAGES(stride))
#define GATED_BYTES(name, capability, pdl, image, ending, f, stride)                               \
    BYTES(name, capability, pdl, image, "linear_bytes_gated_" f "_2" ending, NEEDS(OVER_8),        \
          stride, 2, 1, 2, 2),                                                                     \
        BYTES(name, capability, pdl, image, "linear_bytes_gated_" f "_1" ending, 0, stride, 2, 1,  \
              1, 2)
#define MANY (NEEDS(WORKSPACE) | NEEDS(OVER_8) | NEEDS(Y_16) | NEEDS(WHOLE))
#define SUPER_BLOCKS(f, gate, rows, stride, one_pass)                                              \
    ROW("stay", "linear_stay_" gate f, linear_7_stay, 90, NEEDS(WORKSPACE) | NEEDS(WHOLE),         \
        ROUNDED_COLUMNS, BYTES_THREADS, LINEAR_STAY_SHARED(stride), rows, ROUNDED_COLUMNS, STAY,   \
        true),                                                                                     \
        ROW("kept", "linear_kept_" gate f, linear_8_many, 90, MANY | NEEDS(SHORT), 0,              \
            BYTES_THREADS, LINEAR_KEPT_SHARED(stride), rows, LINEAR_MANY_COLUMNS, MANY, true),     \
        ROW("long", "linear_long_" gate f, linear_8_many, 90, MANY, 0, BYTES_THREADS,              \
            LINEAR_LONG_SHARED(stride), (rows)*LINEAR_LONG_TILES, LINEAR_MANY_COLUMNS, MANY,       \
            true),                                                                                 \
        one_pass("early", 90, true, linear_6_early, "_early", f, stride),                          \
        one_pass("bytes", 80, false, linear_5_bytes, "", f, stride), BLOCKS(f, gate, rows)

/* ---- the tables ------------------------------------------------------------------------------ */

#define TABLE(operation, ...)                                                                      \
    {                                                                                              \
        operation, (const struct kn_variant[]){__VA_ARGS__},                                       \
            sizeof((const struct kn_variant[]){__VA_ARGS__}) / sizeof(struct kn_variant)           \
    }
#define QUANT(rows, f) TABLE("quant product", rows(f))
#define LINEAR(rows, ...) TABLE("linear", rows(__VA_ARGS__))
#define LINEARS(gate, rows, one_pass)                                                              \
    {                                                                                              \
        [KN_WEIGHT_F32] = LINEAR(FMA, "f32", gate, rows),                                          \
        [KN_WEIGHT_F16] = LINEAR(FMA, "f16", gate, rows),                                          \
        [KN_WEIGHT_BF16] = LINEAR(FMA, "bf16", gate, rows),                                        \
        [KN_WEIGHT_Q8_0] = LINEAR(BLOCKS, "q8_0", gate, rows),                                     \
        [KN_WEIGHT_Q4_K] = LINEAR(SUPER_BLOCKS, "q4_k", gate, rows, LINEAR_STRIDE_Q4_K, one_pass), \
        [KN_WEIGHT_Q5_K] = LINEAR(SUPER_BLOCKS, "q5_k", gate, rows, LINEAR_STRIDE_Q5_K, one_pass), \
        [KN_WEIGHT_Q6_K] = LINEAR(SUPER_BLOCKS, "q6_k", gate, rows, LINEAR_STRIDE_Q6_K, one_pass)  \
    }

static const struct kn_variants tables[KN_PRODUCT_WAYS][KN_WEIGHT_FORMATS] = {
    [KN_PRODUCT_F32] = {[KN_WEIGHT_Q4_K] = QUANT(F32, "q4_k"),
                        [KN_WEIGHT_Q6_K] = QUANT(F32, "q6_k"),
                        [KN_WEIGHT_Q8_0] = QUANT(F32, "q8_0")},
    [KN_PRODUCT_F16] = {[KN_WEIGHT_Q4_K] = QUANT(F16, "q4_k"),
                        [KN_WEIGHT_Q6_K] = QUANT(F16, "q6_k"),
                        [KN_WEIGHT_Q8_0] = QUANT(F16, "q8_0")},
    [KN_PRODUCT_Q8_1] = {[KN_WEIGHT_Q4_K] = TABLE("quant product", Q8_1_Q4_K),
                         [KN_WEIGHT_Q6_K] = QUANT(Q8_1, "q6_k"),
                         [KN_WEIGHT_Q8_0] = QUANT(Q8_1, "q8_0")},
    [KN_PRODUCT_LINEAR] = LINEARS("", 16, PLAIN_BYTES),
    [KN_PRODUCT_GATED] = LINEARS("gated_", 8, GATED_BYTES)};

const struct kn_variants *kn_product_rows(enum kn_product_way way, enum kn_weight_format format) {
    return &tables[way][format];
}

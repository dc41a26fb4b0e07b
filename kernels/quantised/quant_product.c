/*
 * Quant product: a table for each kind of blocks and arithmetic, and the checks before a launch.
 */
#include "quant_product.h"

#include "boxes.h"
#include "core/check.h"
#include "quant_product_arguments.h"
#include "quant_product_wgmma.h"

#include <limits.h>

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

enum {
    THREADS = 128,
    STAGED_THREADS = 512,
    GRID_Y_MAX = 65535,
    SHARED_BYTES_ALWAYS = 48 << 10,
    BULK_X_BYTES = 46 << 10 /* what a block of 227 KiB has left, less its mbarriers */
};

/* How x comes to be bytes, or halves where maps are taken: the third number of a tile. */
enum {
    APART,      /* by a kernel in front */
    STAGED,     /* in shared memory, by the kernel itself */
    EARLY,      /* so too, and it may begin before the kernel in front of it has ended */
    BULK,       /* as STAGED, and its blocks stay, one a multiprocessor, beside a ring of weights */
    BULK_EARLY, /* so too, and it may begin early */
    COLUMNS     /* by a kernel in front that stores bytes and scales side by side; blocks stay */
};

static bool is_aligned(const struct kn_quant_product *p) {
    return (p->quant != KN_Q4_K || p->weights.address % 16 == 0) && p->x.address % 16 == 0 &&
           (p->x_stride % 4 == 0 || p->columns == 1);
}

static const char *wide_refuses(const struct kn_variant *row, const void *problem) {
    (void)row;
    return is_aligned(problem) ? NULL : "weights, x or its columns are not aligned to 16 bytes";
}

static const char *single_refuses(const struct kn_variant *row, const void *problem) {
    const struct kn_quant_product *p = problem;
    if (p->columns > 1) return "there are several columns";
    return wide_refuses(row, problem);
}

/* Bytes of x are aligned in the workspace. */
static const char *integers_refuses(const struct kn_variant *row, const void *problem) {
    (void)row;
    const struct kn_quant_product *p = problem;
    return p->quant != KN_Q4_K || p->weights.address % 16 == 0
               ? NULL
               : "the weights are not aligned to 16 bytes";
}

static const char *integers_single_refuses(const struct kn_variant *row, const void *problem) {
    const struct kn_quant_product *p = problem;
    return p->columns > 1 ? "there are several columns" : integers_refuses(row, problem);
}

/* A block's shared memory: x as bytes, and 16 bytes for each 64 of them. */
static unsigned staged_bytes(size_t k) {
    return (unsigned)(k + k / 64 * 16);
}

static const char *staged_refuses(const struct kn_variant *row, const void *problem) {
    const struct kn_quant_product *p = problem;
    if (p->k > SHARED_BYTES_ALWAYS || staged_bytes(p->k) > SHARED_BYTES_ALWAYS) {
        return "x as bytes does not fit 48 KiB";
    }
    return single_refuses(row, problem);
}

static const char *bulk_refuses(const struct kn_variant *row, const void *problem) {
    const struct kn_quant_product *p = problem;
    if (p->k > BULK_X_BYTES || staged_bytes(p->k) > BULK_X_BYTES) {
        return "x as bytes does not fit 46 KiB";
    }
    return single_refuses(row, problem);
}

static const char *few_refuses(const struct kn_variant *row, const void *problem) {
    const struct kn_quant_product *p = problem;
    return p->columns > 32 ? "there are more than 32 columns" : wide_refuses(row, problem);
}

static const char *columns_refuses(const struct kn_variant *row, const void *problem) {
    const struct kn_quant_product *p = problem;
    if (p->columns == 1) return "there is one column";
    if (p->columns > KN_QUANT_COLUMNS_MOST) return "there are more than 8 columns";
    return integers_refuses(row, problem);
}

/* With 9 MB of weights and more they are the faster ones on an H100; with fewer no GPU has timed
 * them. */
static const char *columns_are_slower(const struct kn_variant *row, const void *problem) {
    const struct kn_quant_product *p = problem;
    if (p->rows * p->k < 1 << 24) return "there are few weights";
    return columns_refuses(row, problem);
}

/* tile: rows and columns of y. */
#define ROW(of, kernel, file, capability, refuses, rows, columns)                                  \
    {                                                                                              \
        .name = of, .entry = kernel, .images = kn_images_quant_product_##file,                     \
        .compute_capability_min = capability, .refuse = refuses, .threads = THREADS, .tile = {     \
            rows,                                                                                  \
            columns                                                                                \
        }                                                                                          \
    }

/* For one column; the kernel itself rounds x. */
#define ROW_STAGED(of, kernel, file, capability, rows, how)                                        \
    {                                                                                              \
        .name = of, .entry = kernel, .images = kn_images_quant_product_##file,                     \
        .compute_capability_min = capability, .refuse = staged_refuses, .threads = STAGED_THREADS, \
        .tile = {                                                                                  \
            rows,                                                                                  \
            1,                                                                                     \
            how                                                                                    \
        }                                                                                          \
    }

#define ROW_BULK(of, how)                                                                          \
    {                                                                                              \
        .name = of, .entry = "quant_product_bulk", .images = kn_images_quant_product_7_bulk,       \
        .compute_capability_min = 90, .refuse = bulk_refuses, .threads = STAGED_THREADS,           \
        .shared_bytes = KN_QUANT_BULK_RING_BYTES + BULK_X_BYTES, .tile = {                         \
            KN_QUANT_BULK_ROWS,                                                                    \
            1,                                                                                     \
            how                                                                                    \
        }                                                                                          \
    }

/* Twice in a table: where it is the fastest, and behind the others by its name. */
#define ROW_WGMMA(of, blocks, columns, refuses)                                                    \
    KN_QUANT_WGMMA_ROW(of, "quant_product_wgmma_" blocks "_" #columns,                             \
                       kn_images_quant_product_8_wgmma, refuses, columns)

#define ROW_SPLIT(blocks, columns, refuses)                                                        \
    KN_QUANT_WGMMA_ROW("wgmma_split", "quant_product_split_" blocks "_128x" #columns,              \
                       kn_images_quant_product_9_split, refuses, columns, KN_QUANT_WGMMA_SPLIT)

#define ROW_COLUMNS(refuses)                                                                       \
    {                                                                                              \
        .name = "columns", .entry = "quant_product_columns",                                       \
        .images = kn_images_quant_product_10_columns, .compute_capability_min = 90,                \
        .refuse = refuses, .threads = KN_QUANT_COLUMNS_THREADS,                                    \
        .shared_bytes = KN_QUANT_COLUMNS_BYTES, .tile = {                                          \
            KN_QUANT_COLUMNS_ROWS_LEAST,                                                           \
            KN_QUANT_COLUMNS_MOST,                                                                 \
            COLUMNS                                                                                \
        }                                                                                          \
    }

#define F32(blocks)                                                                                \
    {                                                                                              \
        ROW("rows", "quant_product_rows_" blocks "_1", 2_rows, 75, single_refuses, 4, 1),          \
            ROW("rows", "quant_product_rows_" blocks "_4", 2_rows, 75, wide_refuses, 2, 4),        \
            ROW("naive", "quant_product_naive_" blocks, 1_naive, 75, NULL, THREADS, 1)             \
    }
#define F16(blocks)                                                                                \
    {                                                                                              \
        ROW_SPLIT(blocks, 32, kn_quant_split_32_is_slower),                                        \
            ROW_SPLIT(blocks, 64, kn_quant_split_64_is_slower),                                    \
            ROW_SPLIT(blocks, 128, kn_quant_split_is_slower),                                      \
            ROW_WGMMA("wgmma_256", blocks, 256, kn_quant_wgmma_256_is_slower),                     \
            ROW_WGMMA("wgmma", blocks, 128, kn_quant_wgmma_is_slower),                             \
            ROW("tensor", "quant_product_tensor_" blocks "_8", 4_tensor, 80, few_refuses, 16, 8),  \
            ROW("tensor", "quant_product_tensor_" blocks "_64", 4_tensor, 80, wide_refuses, 64,    \
                64),                                                                               \
            ROW_WGMMA("wgmma", blocks, 128, kn_quant_wgmma_refuses),                               \
            ROW_WGMMA("wgmma_256", blocks, 256, kn_quant_wgmma_refuses),                           \
            ROW_SPLIT(blocks, 32, kn_quant_split_32_refuses),                                      \
            ROW_SPLIT(blocks, 64, kn_quant_split_64_refuses),                                      \
            ROW_SPLIT(blocks, 128, kn_quant_split_refuses)                                         \
    }
#define Q8_1(blocks)                                                                               \
    ROW("integers", "quant_product_integers_" blocks "_1", 3_integers, 75,                         \
        integers_single_refuses, 4, 1),                                                            \
        ROW("integers", "quant_product_integers_" blocks "_8", 3_integers, 75, integers_refuses,   \
            2, 8)

static const struct kn_variant f32_rows[KN_QUANTS][3] = {F32("q4_k"), F32("q6_k"), F32("q8_0")};
static const struct kn_variant f16_rows[KN_QUANTS][12] = {F16("q4_k"), F16("q6_k"), F16("q8_0")};
static const struct kn_variant q8_1_q4_k_rows[] = {
    ROW_COLUMNS(columns_are_slower),
    ROW_BULK("bulk_early", BULK_EARLY),
    ROW_STAGED("early_1", "quant_product_early_1", 6_early, 90, 16, EARLY),
    ROW_STAGED("early_2", "quant_product_early_2", 6_early, 90, 32, EARLY),
    ROW_STAGED("staged_1", "quant_product_staged_1", 5_staged, 75, 16, STAGED),
    ROW_STAGED("staged_2", "quant_product_staged_2", 5_staged, 75, 32, STAGED),
    ROW_BULK("bulk", BULK),
    Q8_1("q4_k"),
    ROW_COLUMNS(columns_refuses)};
static const struct kn_variant q8_1_q6_k_rows[] = {Q8_1("q6_k")};
static const struct kn_variant q8_1_q8_0_rows[] = {Q8_1("q8_0")};

#define TABLES(i, q8_1)                                                                            \
    {                                                                                              \
        {"quant product", f32_rows[i], 3}, {"quant product", f16_rows[i], 12}, {                   \
            "quant product", q8_1, sizeof(q8_1) / sizeof(q8_1)[0]                                  \
        }                                                                                          \
    }

static const struct kn_variants tables[KN_QUANTS][KN_QUANT_ARITHMETICS] = {
    TABLES(0, q8_1_q4_k_rows), TABLES(1, q8_1_q6_k_rows), TABLES(2, q8_1_q8_0_rows)};

static const struct kn_variant quantise_row =
    ROW("quantise", "quant_product_quantise", 3_integers, 75, NULL, THREADS, 1);
static const struct kn_variant columns_x_row =
    ROW("columns_x", "quant_product_columns_x", 10_columns, 90, NULL, THREADS, 1);

const struct kn_variants *kn_quant_product_variants(enum kn_quant quant,
                                                    enum kn_quant_arithmetic arithmetic) {
    return &tables[quant][arithmetic];
}

const char *kn_quant_arithmetic_name(enum kn_quant_arithmetic arithmetic) {
    static const char *const names[KN_QUANT_ARITHMETICS] = {"f32", "f16", "q8_1"};
    return (unsigned)arithmetic < KN_QUANT_ARITHMETICS ? names[arithmetic] : "?";
}

/* Bytes of x, k of a column; scales from a multiple of 16 on, and as many bytes for the sums of
 * "columns", which has all of them in another order. */
static size_t scales_offset(size_t columns, size_t k) {
    return (columns * k + 15) / 16 * 16;
}

size_t kn_quant_product_workspace(enum kn_quant_arithmetic arithmetic, size_t columns, size_t k) {
    if (arithmetic == KN_QUANT_F16) return kn_quant_split_workspace(columns, k);
    if (arithmetic != KN_QUANT_Q8_1) return 0;
    return scales_offset(columns, k) + columns * (k / 32) * 2 * sizeof(float);
}

/* Columns of so many floats, so far apart. */
static tol_status check_columns(const char *what, struct kn_place place, size_t columns,
                                size_t stride, size_t length) {
    tol_status status = TOL_OK;
    TOL_CHECK(place.address != 0, TOL_INVALID_ARGUMENT, "quant product: %s is NULL", what);
    TOL_CHECK(place.address % sizeof(float) == 0, TOL_INVALID_ARGUMENT,
              "quant product: %s at %#llx is not aligned to 4 bytes", what,
              (unsigned long long)place.address);
    TOL_CHECK(stride >= length, TOL_INVALID_ARGUMENT,
              "quant product: columns of %s have %zu elements, and are %zu apart", what, length,
              stride);
    const size_t room = place.bytes / sizeof(float);
    TOL_CHECK(length <= room && (columns == 1 || (room - length) / (columns - 1) >= stride),
              TOL_OUT_OF_RANGE,
              "quant product: %zu columns of %s of %zu elements, %zu apart, do not fit %zu bytes",
              columns, what, length, stride, place.bytes);
out:
    return status;
}

static size_t columns_bytes(size_t columns, size_t stride, size_t length) {
    return ((columns - 1) * stride + length) * sizeof(float);
}

static tol_status check_kind(const struct kn_quant_product *p) {
    tol_status status = TOL_OK;
    TOL_CHECK((unsigned)p->quant < KN_QUANTS && (unsigned)p->arithmetic < KN_QUANT_ARITHMETICS,
              TOL_INVALID_ARGUMENT, "quant product: there is no quantisation %d or arithmetic %d",
              (int)p->quant, (int)p->arithmetic);
    TOL_CHECK(p->k % kn_quant_block_elements(p->quant) == 0, TOL_INVALID_ARGUMENT,
              "quant product: k is %zu, no whole blocks of %s, which have %zu", p->k,
              kn_quant_name(p->quant), kn_quant_block_elements(p->quant));
    TOL_CHECK(p->rows <= INT_MAX && p->columns <= INT_MAX && p->k <= INT_MAX, TOL_OVER_LIMIT,
              "quant product: %zu rows, %zu columns and k of %zu; each must be below 2^31", p->rows,
              p->columns, p->k);
out:
    return status;
}

/* What a variant may use of the workspace; what KN_QUANT_Q8_1 needs of it. */
static size_t used_workspace(const struct kn_quant_product *p) {
    const size_t useful = kn_quant_product_workspace(p->arithmetic, p->columns, p->k);
    if (p->arithmetic != KN_QUANT_F16 || p->workspace.bytes >= useful) return useful;
    const size_t halves = kn_quant_wgmma_workspace(p->columns, p->k);
    return p->workspace.bytes >= halves ? halves : 0;
}

/* Strides have been filled in. */
static tol_status check_places(const struct kn_quant_product *p) {
    tol_status status = TOL_OK;
    const size_t row_bytes =
        p->k / kn_quant_block_elements(p->quant) * kn_quant_block_bytes(p->quant);
    const size_t workspace = used_workspace(p);
    const size_t y_bytes = columns_bytes(p->columns, p->y_stride, p->rows);
    TOL_TRY(check_columns("y", p->y, p->columns, p->y_stride, p->rows));
    if (p->k == 0) return TOL_OK;
    TOL_CHECK(p->weights.address != 0 && p->weights.address % 2 == 0, TOL_INVALID_ARGUMENT,
              "quant product: the weights at %#llx are NULL or not aligned to 2 bytes",
              (unsigned long long)p->weights.address);
    TOL_CHECK(p->rows <= p->weights.bytes / row_bytes, TOL_OUT_OF_RANGE,
              "quant product: %zu rows of %zu bytes do not fit %zu", p->rows, row_bytes,
              p->weights.bytes);
    TOL_TRY(check_columns("x", p->x, p->columns, p->x_stride, p->k));
    TOL_CHECK(workspace == 0 || (p->workspace.address != 0 && p->workspace.address % 16 == 0),
              TOL_INVALID_ARGUMENT,
              "quant product: the workspace at %#llx is NULL or not aligned to 16 bytes",
              (unsigned long long)p->workspace.address);
    TOL_CHECK(workspace <= p->workspace.bytes, TOL_OUT_OF_RANGE,
              "quant product: a workspace of %zu bytes is needed, and there are %zu", workspace,
              p->workspace.bytes);
    const size_t x_bytes = columns_bytes(p->columns, p->x_stride, p->k);
    TOL_CHECK(!kn_place_overlap(p->y, y_bytes, p->x, x_bytes) &&
                  !kn_place_overlap(p->y, y_bytes, p->weights, p->rows * row_bytes) &&
                  !kn_place_overlap(p->y, y_bytes, p->workspace, workspace) &&
                  !kn_place_overlap(p->workspace, workspace, p->x, x_bytes) &&
                  !kn_place_overlap(p->workspace, workspace, p->weights, p->rows * row_bytes),
              TOL_INVALID_ARGUMENT,
              "quant product: y or the workspace overlaps what is read, or each other");
out:
    return status;
}

static unsigned tiles(size_t count, unsigned tile) {
    return (unsigned)((count - 1) / tile + 1);
}

static struct tol_launch_shape shape_of(const struct kn_variant *variant,
                                        const struct kn_quant_product *p,
                                        const struct tol_device *device) {
    const unsigned how = variant->tile[2];
    struct tol_launch_shape shape = {tiles(p->rows, variant->tile[0]),
                                     tiles(p->columns, variant->tile[1]),
                                     1,
                                     variant->threads,
                                     1,
                                     1,
                                     how == APART ? 0 : staged_bytes(p->k)};
    if (how == BULK || how == BULK_EARLY) shape.shared_bytes += KN_QUANT_BULK_RING_BYTES;
    if (how == COLUMNS) shape.shared_bytes = KN_QUANT_COLUMNS_BYTES;
    if (how >= BULK && shape.grid_x > (unsigned)device->multiprocessors) {
        shape.grid_x = (unsigned)device->multiprocessors;
    }
    return shape;
}

/* At most a block a multiprocessor, beside which a block of "columns" has room. */
static struct tol_launch_shape columns_x_shape(const struct kn_quant_product *p,
                                               const struct tol_device *device) {
    const unsigned columns = (unsigned)p->columns, threads = KN_QUANT_COLUMNS_X_THREADS;
    const unsigned whole = tiles(p->k, threads);
    const unsigned most = (unsigned)device->multiprocessors / columns;
    return (struct tol_launch_shape){whole <= most ? whole : most > 0 ? most : 1,
                                     columns,
                                     1,
                                     threads,
                                     1,
                                     1,
                                     KN_QUANT_COLUMNS_X_BYTES};
}

static tol_status launch(struct kn_kernels *kernels, struct tol_stream *stream,
                         const struct kn_quant_problem *problem) {
    tol_status status = TOL_OK;
    const struct kn_quant_product *p = &problem->product;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL, *quantise = NULL;
    const struct kn_variants *table =
        p->variants != NULL ? p->variants : kn_quant_product_variants(p->quant, p->arithmetic);
    struct kn_quant_product_arguments arguments = {
        .weights = p->weights.address,
        .x = p->x.address,
        .y = p->y.address,
        .quants = p->workspace.address,
        .scales = p->workspace.address + scales_offset(p->columns, p->k),
        .x_stride = p->x_stride,
        .y_stride = p->y_stride,
        .rows = (uint32_t)p->rows,
        .columns = (uint32_t)p->columns,
        .blocks = (uint32_t)(p->k / kn_quant_block_elements(p->quant)),
        .k = (uint32_t)p->k};
    const unsigned bytes = sizeof arguments;
    void *value = &arguments;
    const struct tol_arguments passed = {1, &value, &bytes};
    TOL_TRY(kn_kernels_pick(kernels, table, p->variant, problem, &variant, &kernel));
    const unsigned how = variant->tile[2];
    const bool takes_maps = variant->cluster != 0;
    const bool is_rounded = p->k > 0 && (takes_maps || how == COLUMNS ||
                                         (how == APART && p->arithmetic == KN_QUANT_Q8_1));
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    const struct tol_launch_shape shape = shape_of(variant, p, device);
    TOL_CHECK(shape.grid_y <= GRID_Y_MAX && (!is_rounded || p->columns <= GRID_Y_MAX),
              TOL_OVER_LIMIT, "quant product: %zu columns are too many for %s", p->columns,
              variant->name);
    if (takes_maps) {
        return kn_quant_wgmma_launch(kernels, stream, variant, kernel, problem, arguments);
    }
    if (is_rounded) {
        TOL_TRY(
            kn_kernels_find(kernels, how == COLUMNS ? &columns_x_row : &quantise_row, &quantise));
        TOL_TRY(tol_launch(stream, quantise,
                           how == COLUMNS ? columns_x_shape(p, device)
                                          : (struct tol_launch_shape){tiles(p->k, THREADS),
                                                                      (unsigned)p->columns, 1,
                                                                      THREADS, 1, 1, 0},
                           passed));
    }
    /* "columns" reads weights without waiting: only because of the kernel in front of it. */
    status = how == EARLY || how == BULK_EARLY || (how == COLUMNS && is_rounded)
                 ? tol_launch_programmatic(stream, kernel, shape, passed)
                 : tol_launch(stream, kernel, shape, passed);
out:
    return status;
}

tol_status kn_quant_product(struct kn_kernels *kernels, struct tol_stream *stream,
                            const struct kn_quant_product *problem) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && problem != NULL, TOL_INVALID_ARGUMENT,
              "quant product needs kernels, a stream and a problem");
    struct kn_quant_problem whole = {.product = *problem};
    struct kn_quant_product *p = &whole.product;
    TOL_TRY(check_kind(p));
    if (p->rows == 0 || p->columns == 0) return TOL_OK;
    if (p->x_stride == 0) p->x_stride = p->k;
    if (p->y_stride == 0) p->y_stride = p->rows;
    TOL_TRY(check_places(p));
    whole.has_maps = kn_tensor_map_has(kn_kernels_context(kernels));
    status = launch(kernels, stream, &whole);
out:
    return status;
}

/*
 * The maps of steps 8 and 9: weights as elements of two bytes, which are copied as they are, since
 * a box has at most 256 elements of a row and 256 weights of Q8_0 have 272 bytes.
 */
#include "quant_product_wgmma.h"

#include "boxes.h"
#include "core/check.h"

KN_IMAGES(quant_product_8_wgmma);
KN_IMAGES(quant_product_9_split);

enum {
    HALF = 2,
    HALVES_THREADS = 128,
    HALVES_OF_A_THREAD = 8,
    ROW_ALIGNMENT = 16,
    FEW_COLUMNS = 32,
    SPLIT_COLUMNS = 9 /* and more are split */
};

static const struct kn_variant halves_row = {.name = "halves",
                                             .entry = "quant_product_halves",
                                             .images = kn_images_quant_product_8_wgmma,
                                             .compute_capability_min = 90,
                                             .threads = HALVES_THREADS};

/* The same, and sets tickets to 0. */
static const struct kn_variant halves_split_row = {.name = "halves",
                                                   .entry = "quant_product_halves_split",
                                                   .images = kn_images_quant_product_9_split,
                                                   .compute_capability_min = 90,
                                                   .threads = HALVES_THREADS};

size_t kn_quant_wgmma_workspace(size_t columns, size_t k) {
    return columns * k * HALF;
}

/* Those of a tile of step 9. */
static size_t split_columns(size_t columns) {
    return columns <= 32 ? 32 : columns <= 64 ? 64 : 128;
}

size_t kn_quant_split_workspace(size_t columns, size_t k) {
    const size_t tile = KN_QUANT_WGMMA_ROWS * split_columns(columns);
    const size_t sums = KN_QUANT_SPLIT_BLOCKS * tile * sizeof(float);
    return kn_quant_wgmma_workspace(columns, k) + KN_QUANT_SPLIT_TICKETS * sizeof(uint32_t) + sums;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t parts(size_t count, size_t of_one) {
    return (count - 1) / of_one + 1;
}

unsigned kn_quant_split_shares(size_t tiles, size_t chunks) {
    const size_t at_once = KN_QUANT_SPLIT_BLOCKS / tiles;
    if (at_once <= 1) return 1;
    const size_t most = smaller(smaller(at_once, KN_QUANT_SPLIT_SHARES), chunks);
    const size_t each = (chunks - 1) / most + 1;
    return (unsigned)((chunks - 1) / each + 1);
}

static size_t row_bytes(const struct kn_quant_product *p) {
    return p->k / kn_quant_block_elements(p->quant) * kn_quant_block_bytes(p->quant);
}

const char *kn_quant_wgmma_refuses(const struct kn_variant *row, const void *problem) {
    (void)row;
    const struct kn_quant_problem *with = problem;
    const struct kn_quant_product *p = &with->product;
    if (!with->has_maps) return "the driver makes no tensor maps";
    if (p->k == 0 || p->k % KN_QUANT_WGMMA_CHUNK != 0) return "k is 0 or no multiple of 256";
    if (p->weights.address % ROW_ALIGNMENT != 0 || row_bytes(p) % ROW_ALIGNMENT != 0) {
        return "a row of weights does not begin at a multiple of 16 bytes";
    }
    /* As "tensor" has it, which so serves what this serves. */
    if (p->x.address % 16 != 0 || (p->x_stride % 4 != 0 && p->columns > 1)) {
        return "x or its columns are not aligned to 16 bytes";
    }
    return p->workspace.bytes < kn_quant_wgmma_workspace(p->columns, p->k)
               ? "the workspace is too small"
               : NULL;
}

const char *kn_quant_split_refuses(const struct kn_variant *row, const void *problem) {
    const struct kn_quant_problem *with = problem;
    const struct kn_quant_product *p = &with->product;
    return p->workspace.bytes < kn_quant_split_workspace(p->columns, p->k)
               ? "the workspace is too small"
               : kn_quant_wgmma_refuses(row, problem);
}

const char *kn_quant_split_64_refuses(const struct kn_variant *row, const void *problem) {
    const struct kn_quant_problem *with = problem;
    return with->product.columns > 64 ? "there are more than 64 columns"
                                      : kn_quant_split_refuses(row, problem);
}

const char *kn_quant_split_32_refuses(const struct kn_variant *row, const void *problem) {
    const struct kn_quant_problem *with = problem;
    return with->product.columns > 32 ? "there are more than 32 columns"
                                      : kn_quant_split_refuses(row, problem);
}

static const char *split_is_slower(const void *problem, const char *refusal) {
    const struct kn_quant_product *p = &((const struct kn_quant_problem *)problem)->product;
    if (refusal != NULL) return refusal;
    if (p->columns < SPLIT_COLUMNS) return "there are fewer than 9 columns";
    const size_t tiles =
        parts(p->rows, KN_QUANT_WGMMA_ROWS) * parts(p->columns, split_columns(p->columns));
    return kn_quant_split_shares(tiles, p->k / KN_QUANT_WGMMA_CHUNK) == 1 ? "k is in one share"
                                                                          : NULL;
}

const char *kn_quant_split_32_is_slower(const struct kn_variant *row, const void *problem) {
    return split_is_slower(problem, kn_quant_split_32_refuses(row, problem));
}

const char *kn_quant_split_64_is_slower(const struct kn_variant *row, const void *problem) {
    return split_is_slower(problem, kn_quant_split_64_refuses(row, problem));
}

const char *kn_quant_split_is_slower(const struct kn_variant *row, const void *problem) {
    return split_is_slower(problem, kn_quant_split_refuses(row, problem));
}

const char *kn_quant_wgmma_is_slower(const struct kn_variant *row, const void *problem) {
    const struct kn_quant_problem *with = problem;
    return with->product.columns <= FEW_COLUMNS ? "there are at most 32 columns"
                                                : kn_quant_wgmma_refuses(row, problem);
}

const char *kn_quant_wgmma_256_is_slower(const struct kn_variant *row, const void *problem) {
    enum { COLUMNS = 128, MULTIPROCESSORS = 132 };
    const struct kn_quant_problem *with = problem;
    const size_t rows = parts(with->product.rows, KN_QUANT_WGMMA_ROWS);
    const size_t columns = parts(with->product.columns, COLUMNS);
    return rows * columns <= MULTIPROCESSORS ? "all tiles of 128 columns run at once"
                                             : kn_quant_wgmma_is_slower(row, problem);
}

/* The bytes of a row of weights that a block loads at once, in whole units of 16. */
static int chunk_bytes(enum kn_quant quant) {
    const size_t bytes =
        KN_QUANT_WGMMA_CHUNK / kn_quant_block_elements(quant) * kn_quant_block_bytes(quant);
    return (int)((bytes + ROW_ALIGNMENT - 1) / ROW_ALIGNMENT * ROW_ALIGNMENT);
}

static bool is_split(const struct kn_variant *variant) {
    return variant->tile[2] == KN_QUANT_WGMMA_SPLIT;
}

static tol_status make_maps(struct kn_kernels *kernels, const struct kn_quant_product *p,
                            const struct kn_variant *variant, CUtensorMap *weights,
                            CUtensorMap *x) {
    tol_status status = TOL_OK;
    const size_t x_rows =
        is_split(variant) ? smaller(p->columns, variant->tile[1]) : variant->tile[1];
    const int row = (int)(row_bytes(p) / HALF);
    TOL_TRY(kn_tensor_map_make(kn_kernels_context(kernels),
                               &(struct kn_tensor){.name = "quant product's weights",
                                                   .address = p->weights.address,
                                                   .type = KN_F16,
                                                   .columns = row,
                                                   .rows = (int)p->rows,
                                                   .matrices = 1,
                                                   .leading = row,
                                                   .box_rows = (int)variant->tile[0],
                                                   .plain_bytes = chunk_bytes(p->quant)},
                               weights));
    status = kn_tensor_map_make(kn_kernels_context(kernels),
                                &(struct kn_tensor){.name = "quant product's x",
                                                    .address = p->workspace.address,
                                                    .type = KN_F16,
                                                    .columns = (int)p->k,
                                                    .rows = (int)p->columns,
                                                    .matrices = 1,
                                                    .leading = (long long)p->k,
                                                    .box_rows = (int)x_rows},
                                x);
out:
    return status;
}

tol_status kn_quant_wgmma_launch(struct kn_kernels *kernels, struct tol_stream *stream,
                                 const struct kn_variant *variant, const struct tol_kernel *kernel,
                                 const struct kn_quant_problem *problem,
                                 struct kn_quant_product_arguments arguments) {
    tol_status status = TOL_OK;
    const struct kn_quant_product *p = &problem->product;
    const struct tol_kernel *halves = NULL;
    CUtensorMap weights, x;
    void *values[] = {&weights, &x, &arguments};
    const unsigned bytes[] = {sizeof weights, sizeof x, sizeof arguments};
    TOL_TRY(make_maps(kernels, p, variant, &weights, &x));
    TOL_TRY(kn_kernels_find(kernels, is_split(variant) ? &halves_split_row : &halves_row, &halves));
    arguments.scales = p->workspace.address + kn_quant_wgmma_workspace(p->columns, p->k);
    TOL_TRY(tol_launch(stream, halves,
                       (struct tol_launch_shape){
                           (unsigned)parts(p->k, (size_t)HALVES_THREADS * HALVES_OF_A_THREAD),
                           (unsigned)p->columns, 1, HALVES_THREADS, 1, 1, 0},
                       (struct tol_arguments){1, values + 2, bytes + 2}));
    /* Its blocks ask for weights while the last of x is rounded. */
    const size_t rows = parts(p->rows, variant->tile[0]);
    const size_t columns = parts(p->columns, variant->tile[1]);
    const size_t chunks = p->k / KN_QUANT_WGMMA_CHUNK;
    const struct tol_launch_shape shape = {
        .grid_x = (unsigned)rows,
        .grid_y = (unsigned)columns,
        .grid_z = is_split(variant) ? kn_quant_split_shares(rows * columns, chunks) : 1,
        .block_x = variant->threads,
        .block_y = 1,
        .block_z = 1,
        .shared_bytes = variant->shared_bytes};
    status =
        tol_launch_programmatic(stream, kernel, shape, (struct tol_arguments){3, values, bytes});
out:
    return status;
}

/*
 * Which kernel computes a product, and how it is launched.
 *
 * The kernels take matrices of any strides. BLAS stores columns, so a product is turned into that
 * of the transposes, whose rows are contiguous: neighbours in a warp then write neighbours.
 */
#include "cublas_product.h"

#include "number.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define REAL CUBLAS_PRODUCT_REAL, 64
#define COMPLEX CUBLAS_PRODUCT_COMPLEX, 256
static const struct cublas_numbers product_numbers[] = {
    {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, "f32", REAL},
    {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, "f64", REAL},
    {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, "f16", REAL},
    {CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, "f16", REAL},
    {CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, "f16_f32", REAL},
    {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, "bf16", REAL},
    {CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, "bf16_f32", REAL},
    {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUDA_R_32I, "i8_i32", REAL},
    {CUDA_R_8I, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, "i8_f32", REAL},
    {CUDA_C_32F, CUDA_C_32F, CUDA_R_32F, CUDA_C_32F, "c32", COMPLEX},
    {CUDA_C_64F, CUDA_C_64F, CUDA_R_64F, CUDA_C_64F, "c64", COMPLEX}};
enum { NUMBERS = sizeof product_numbers / sizeof product_numbers[0] };

/* The modes that are to be fast or exact are all computed as the type itself. */
static const struct {
    int compute, sum_type;
} product_computes[] = {{CUBLAS_COMPUTE_16F, CUDA_R_16F},
                        {CUBLAS_COMPUTE_16F_PEDANTIC, CUDA_R_16F},
                        {CUBLAS_COMPUTE_32F, CUDA_R_32F},
                        {CUBLAS_COMPUTE_32F_PEDANTIC, CUDA_R_32F},
                        {CUBLAS_COMPUTE_32F_FAST_16F, CUDA_R_32F},
                        {CUBLAS_COMPUTE_32F_FAST_16BF, CUDA_R_32F},
                        {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F},
                        {CUBLAS_COMPUTE_32F_EMULATED_16BFX9, CUDA_R_32F},
                        {CUBLAS_COMPUTE_64F, CUDA_R_64F},
                        {CUBLAS_COMPUTE_64F_PEDANTIC, CUDA_R_64F},
                        {CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT, CUDA_R_64F},
                        {CUBLAS_COMPUTE_32I, CUDA_R_32I},
                        {CUBLAS_COMPUTE_32I_PEDANTIC, CUDA_R_32I}};
enum { COMPUTES = sizeof product_computes / sizeof product_computes[0] };

static int product_sum_type(int compute) {
    for (int i = 0; i < COMPUTES; i++) {
        if (product_computes[i].compute == compute) return product_computes[i].sum_type;
    }
    return -1;
}

bool cublas_is_compute(int compute) {
    return product_sum_type(compute) != -1;
}

const struct cublas_numbers *cublas_numbers_find(int a_type, int b_type, int c_type, int compute) {
    const int sum_type = product_sum_type(compute);
    for (int i = 0; i < NUMBERS; i++) {
        const struct cublas_numbers *row = &product_numbers[i];
        if (row->type == a_type && row->type == b_type && row->result_type == c_type &&
            row->sum_type == sum_type) {
            return row;
        }
    }
    return NULL;
}

const struct cublas_numbers *cublas_numbers_of(int type) {
    int i = 0;
    while (i < NUMBERS &&
           (product_numbers[i].type != type || product_numbers[i].result_type != type)) {
        i++;
    }
    return i < NUMBERS ? &product_numbers[i] : NULL;
}

size_t cublas_type_bytes(int type) {
    static const unsigned char bytes[] = {
        [CUDA_R_32F] = 4, [CUDA_R_64F] = 8,  [CUDA_R_16F] = 2, [CUDA_R_8I] = 1,
        [CUDA_C_32F] = 8, [CUDA_C_64F] = 16, [CUDA_R_32I] = 4, [CUDA_R_16BF] = 2};
    return type >= 0 && (size_t)type < sizeof bytes ? bytes[type] : 0;
}

/* ---- arguments ---- */

struct blas_matrix cublas_matrix(const void *address, int64_t leading, int operation,
                                 int64_t stride) {
    struct blas_matrix matrix = {.address = (CUdeviceptr)(uintptr_t)address,
                                 .row = 1,
                                 .column = leading,
                                 .batch = stride,
                                 .is_conjugate = operation == CUBLAS_OP_C};
    return operation == CUBLAS_OP_N ? matrix : cublas_transposed(matrix);
}

struct blas_matrix cublas_matrices(const void *addresses, int64_t leading, int operation) {
    struct blas_matrix matrix = cublas_matrix(addresses, leading, operation, 1);
    matrix.is_array = 1;
    return matrix;
}

struct blas_matrix cublas_column(const void *address, int64_t count, int64_t increment,
                                 size_t bytes) {
    const int64_t first = increment < 0 && count > 0 ? (1 - count) * increment : 0;
    return (struct blas_matrix){.address =
                                    (CUdeviceptr)(uintptr_t)address + (CUdeviceptr)first * bytes,
                                .row = increment,
                                .column = 1};
}

struct blas_matrix cublas_transposed(struct blas_matrix matrix) {
    const long long row = matrix.row;
    matrix.row = matrix.column;
    matrix.column = row;
    return matrix;
}

int cublas_scale(int scale_type) {
    return scale_type == CUDA_R_16F    ? BLAS_SCALE_F16
           : scale_type == CUDA_R_16BF ? BLAS_SCALE_BF16
                                       : BLAS_SCALE_SUM;
}

struct blas_scalar cublas_scalar(int pointer_mode, int scale_type, const void *value) {
    struct blas_scalar scalar = {{0, 0}, 0, 0, 0, 0};
    float pair[2] = {0, 0};
    int32_t whole = 0;
    uint16_t bits = 0;
    if (pointer_mode != CUBLAS_POINTER_MODE_HOST) {
        scalar.address = (CUdeviceptr)(uintptr_t)value;
    } else if (scale_type == CUDA_R_64F || scale_type == CUDA_C_64F) {
        memcpy(scalar.value, value, cublas_type_bytes(scale_type));
    } else if (scale_type == CUDA_R_32I) {
        memcpy(&whole, value, sizeof whole);
        scalar.value[0] = whole;
    } else if (scale_type == CUDA_R_16F || scale_type == CUDA_R_16BF) {
        memcpy(&bits, value, sizeof bits);
        scalar.value[0] = scale_type == CUDA_R_16F ? kn_f16_value(bits) : kn_bf16_value(bits);
    } else {
        memcpy(pair, value, cublas_type_bytes(scale_type));
        scalar.value[0] = pair[0];
        scalar.value[1] = pair[1];
    }
    return scalar;
}

/* ---- launches ---- */

static void scalar_transpose(struct blas_scalar *scalar) {
    const long long row = scalar->row;
    scalar->row = scalar->column;
    scalar->column = row;
}

/* D becomes its transpose, and A B becomes (B' A')'. */
static void product_transpose(struct blas_product *product) {
    const struct blas_matrix a = product->a;
    const int m = product->m;
    product->m = product->n;
    product->n = m;
    product->a = cublas_transposed(product->b);
    product->b = cublas_transposed(a);
    product->c = cublas_transposed(product->c);
    product->d = cublas_transposed(product->d);
    product->bias = cublas_transposed(product->bias);
    scalar_transpose(&product->alpha);
    scalar_transpose(&product->beta);
    if (product->fill != BLAS_FILL_ALL)
        product->fill = BLAS_FILL_LOWER + BLAS_FILL_UPPER - product->fill;
}

static int64_t product_tiles(const struct blas_product *product) {
    return (int64_t)((product->m + BLAS_TILE - 1) / BLAS_TILE) *
           ((product->n + BLAS_TILE - 1) / BLAS_TILE);
}

/* The instructions of warps that each way to compute a product executes on the soft device, where
 * they are what takes time: a step of a tile takes about 75 of each of its two warps, and storing
 * it 2000; an element takes 60, each of its steps 8, and adding 32 lanes 60. */
struct product_cost {
    int64_t tiles, threads, warps;
};

static struct product_cost product_costs(const struct blas_product *product) {
    const int64_t elements = (int64_t)product->m * product->n, k = product->k;
    return (struct product_cost){.tiles = product_tiles(product) * (4000 + 150 * k),
                                 .threads = (elements + 31) / 32 * (60 + 8 * k),
                                 .warps = elements * (120 + 8 * ((k + 31) / 32))};
}

/* The grid of a kernel whose blocks walk elements, and a batch or rows: no more blocks than keep
 * the device busy, since beginning one takes as long as an element or more. */
static void product_walk(const struct cublas_handle *handle, int64_t blocks, int rows,
                         unsigned per_processor, struct cublas_launch *launch) {
    const unsigned most = handle->processors * per_processor;
    launch->blocks = blocks < most ? (unsigned)blocks : most;
    const unsigned lines = (most + launch->blocks - 1) / launch->blocks;
    launch->batch = (unsigned)rows < lines ? (unsigned)rows : lines;
}

static cublasStatus_t product_tile(const struct blas_product *product,
                                   const struct cublas_numbers *numbers,
                                   struct cublas_launch *launch) {
    const int64_t tiles = product_tiles(product);
    if (tiles > INT_MAX) return cublas_refuse("gemm", "a product of more than 2^31 - 1 tiles");
    launch->blocks = (unsigned)tiles;
    launch->batch = product->batch < USHRT_MAX ? (unsigned)product->batch : USHRT_MAX;
    launch->threads = numbers->threads;
    snprintf(launch->name, sizeof launch->name, "blas_tile_%s", numbers->suffix);
    return CUBLAS_STATUS_SUCCESS;
}

/* A thread per element, a warp, or if few elements are long, a block of more. */
static cublasStatus_t product_element(const struct cublas_handle *handle,
                                      struct blas_product *product,
                                      const struct cublas_numbers *numbers,
                                      struct cublas_launch *launch) {
    enum { LONG = 1 << 14, FEW = 64, PER_PROCESSOR = 32 };
    const struct product_cost costs = product_costs(product);
    const int64_t elements = (int64_t)product->m * product->n;
    product->is_shared = costs.warps < costs.threads;
    const bool is_long = product->is_shared && product->k >= LONG && elements < FEW;
    launch->threads = is_long ? BLAS_THREADS : 32;
    product_walk(handle, product->is_shared ? elements : (elements + 31) / 32, product->batch,
                 PER_PROCESSOR, launch);
    snprintf(launch->name, sizeof launch->name, "blas_element_%s", numbers->suffix);
    return CUBLAS_STATUS_SUCCESS;
}

/* Kernels of elements count them in 32 bits. */
static bool product_is_small(const struct blas_product *product) {
    const struct product_cost costs = product_costs(product);
    return (int64_t)product->m * product->n <= 1 << 20 &&
           (costs.threads < costs.tiles || costs.warps < costs.tiles);
}

cublasStatus_t cublas_product(struct cublas_handle *handle, CUstream stream,
                              const struct cublas_numbers *numbers, struct blas_product *product) {
    struct cublas_launch launch = {.image = numbers->image, .stream = stream, .argument = product};
    if (product->m == 0 || product->n == 0 || product->batch == 0) return CUBLAS_STATUS_SUCCESS;
    if (product->d.row == 1 && product->d.column != 1) product_transpose(product);
    product->scale = cublas_scale(numbers->scale_type);
    const cublasStatus_t status = product_is_small(product)
                                      ? product_element(handle, product, numbers, &launch)
                                      : product_tile(product, numbers, &launch);
    return status == CUBLAS_STATUS_SUCCESS ? cublas_launch(handle, &launch) : status;
}

/* Its columns become those of D that are contiguous, or else the many of a tall D. */
static void sum_transpose(struct blas_product *sum) {
    const struct blas_matrix a = sum->a, b = sum->b;
    const bool by_columns = sum->d.row == 1 && sum->d.column != 1;
    if (!by_columns && (sum->n >= 32 || sum->m <= sum->n)) return;
    product_transpose(sum);
    sum->a = cublas_transposed(a);
    sum->b = cublas_transposed(b);
}

cublasStatus_t cublas_sum(struct cublas_handle *handle, int type, struct blas_product *sum) {
    enum { PER_PROCESSOR = 8 };
    const struct cublas_numbers *numbers = cublas_numbers_of(type);
    if (sum->m == 0 || sum->n == 0) return CUBLAS_STATUS_SUCCESS;
    sum_transpose(sum);
    struct cublas_launch launch = {
        .image = CUBLAS_SUM, .stream = handle->stream, .threads = BLAS_THREADS, .argument = sum};
    product_walk(handle, ((int64_t)sum->n + BLAS_THREADS - 1) / BLAS_THREADS, sum->m, PER_PROCESSOR,
                 &launch);
    snprintf(launch.name, sizeof launch.name, "blas_sum_%s", numbers->suffix);
    return cublas_launch(handle, &launch);
}

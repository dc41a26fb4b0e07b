/*
 * cublasLtMatmul: D = epilogue(alpha op(A) op(B) + beta C + bias), and the algorithms of it, of
 * which there is one. Source: cuBLAS Library 13.0, "cublasLt API Reference".
 */
#include "base/cublas_product.h"
#include "lt/cublas_lt_descriptor.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { ALGORITHM = 1 };
struct lt_algorithm { /* cublasLtMatmulAlgo_t */
    uint64_t data[8];
};
struct lt_heuristic { /* cublasLtMatmulHeuristicResult_t */
    struct lt_algorithm algorithm;
    size_t workspace;
    cublasStatus_t status;
    float waves;
    int reserved[4];
};

/* A call: descriptors, and addresses where the call has some. */
struct lt_call {
    const struct lt_matmul *matmul;
    const struct lt_layout *a, *b, *c, *d;
    const void *alpha, *beta, *a_at, *b_at, *c_at;
    void *d_at;
};

/* Rows and columns of op(matrix). */
static uint64_t lt_rows(const struct lt_layout *layout, int operation) {
    return operation == CUBLAS_OP_N ? layout->rows : layout->columns;
}
static uint64_t lt_columns(const struct lt_layout *layout, int operation) {
    return operation == CUBLAS_OP_N ? layout->columns : layout->rows;
}

static bool lt_is_layout(const struct lt_layout *layout) {
    const bool by_rows = layout->order == LT_ORDER_ROWS;
    const uint64_t inner = by_rows ? layout->columns : layout->rows;
    return layout->rows <= INT_MAX && layout->columns <= INT_MAX && layout->leading >= 0 &&
           (uint64_t)layout->leading >= inner && layout->batch >= 0;
}

enum { LT_FOLLOWS = LT_EPILOGUE_RELU | LT_EPILOGUE_GELU };

/* Types that are computed have one type of alpha and beta. */
static bool lt_has_scale(const struct lt_call *x) {
    const struct cublas_numbers *numbers =
        cublas_numbers_find(x->a->type, x->b->type, x->d->type, x->matmul->compute);
    return numbers == NULL || numbers->scale_type == x->matmul->scale_type;
}

/* INVALID_VALUE: what no cublasLt computes. */
static cublasStatus_t lt_check(const struct lt_call *x) {
    if (x->matmul == NULL || x->a == NULL || x->b == NULL || x->c == NULL || x->d == NULL)
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct lt_matmul *matmul = x->matmul;
    const bool valid =
        matmul->op_a >= CUBLAS_OP_N && matmul->op_a <= CUBLAS_OP_C && matmul->op_b >= CUBLAS_OP_N &&
        matmul->op_b <= CUBLAS_OP_C && lt_is_layout(x->a) && lt_is_layout(x->b) &&
        lt_is_layout(x->c) && lt_is_layout(x->d) && lt_rows(x->a, matmul->op_a) == x->d->rows &&
        lt_columns(x->b, matmul->op_b) == x->d->columns &&
        lt_columns(x->a, matmul->op_a) == lt_rows(x->b, matmul->op_b) && x->c->rows == x->d->rows &&
        x->c->columns == x->d->columns && x->a->batch == x->d->batch &&
        x->b->batch == x->d->batch && x->c->batch == x->d->batch && x->c->order == x->d->order &&
        matmul->pointer_mode >= 0 && matmul->pointer_mode <= LT_POINTER_ALPHA_VECTOR_BETA_HOST &&
        (matmul->epilogue & LT_FOLLOWS) != LT_FOLLOWS && !lt_matmul_has_scales(matmul) &&
        ((matmul->epilogue & LT_EPILOGUE_BIAS) == 0 || matmul->bias_type == -1 ||
         matmul->bias_type == x->d->type) &&
        lt_has_scale(x);
    return valid ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

/* ---- what is modelled ---- */

static const struct cublas_numbers *lt_numbers(const struct lt_call *x) {
    const struct cublas_numbers *numbers =
        cublas_numbers_find(x->a->type, x->b->type, x->d->type, x->matmul->compute);
    return numbers != NULL && x->c->type == x->d->type ? numbers : NULL;
}

static bool lt_is_ordered(const struct lt_layout *layout) {
    return layout->plane == 0 &&
           (layout->order == LT_ORDER_COLUMNS || layout->order == LT_ORDER_ROWS) &&
           (layout->batch_mode == LT_BATCH_STRIDED || layout->batch_mode == LT_BATCH_ARRAY);
}

/* An epilogue's bits: each alone or with the bias. GELU is of floats, all are of real numbers. */
static bool lt_is_epilogue(uint32_t epilogue, const struct cublas_numbers *numbers) {
    const uint32_t follow = epilogue & ~(uint32_t)LT_EPILOGUE_BIAS;
    const bool is_real = numbers->image == CUBLAS_PRODUCT_REAL;
    if (epilogue == LT_EPILOGUE_NONE) return true;
    if (epilogue == LT_EPILOGUE_BIAS || follow == LT_EPILOGUE_RELU) return is_real;
    return follow == LT_EPILOGUE_GELU && numbers->scale_type == CUDA_R_32F;
}

/* Why a problem is not computed; NULL: it is. text has room for 120 bytes. */
static const char *lt_refusal(const struct lt_call *x, char *text) {
    const struct lt_matmul *matmul = x->matmul;
    const struct cublas_numbers *numbers = lt_numbers(x);
    if (numbers == NULL) {
        snprintf(text, 120,
                 "a product of types %d and %d to %d and %d with compute type %d and scale type %d",
                 x->a->type, x->b->type, x->c->type, x->d->type, matmul->compute,
                 matmul->scale_type);
        return text;
    }
    if (!lt_is_ordered(x->a) || !lt_is_ordered(x->b) || !lt_is_ordered(x->c) ||
        !lt_is_ordered(x->d)) {
        return "an order of elements other than by columns or rows";
    }
    if (!lt_is_epilogue(matmul->epilogue, numbers)) {
        snprintf(text, 120, "the epilogue %u for type %d", matmul->epilogue, x->d->type);
        return text;
    }
    if ((matmul->epilogue & LT_EPILOGUE_BIAS) != 0 && x->d->order == LT_ORDER_ROWS)
        return "a bias of a D by rows";
    if (matmul->op_c != CUBLAS_OP_N || matmul->fill != 2) return "a transposed C or half of D";
    return lt_matmul_has_rest(matmul) ? "scaling of D, or one of these modes" : NULL;
}

static cublasStatus_t lt_judge(const char *name, const struct lt_call *x) {
    char text[120];
    const cublasStatus_t status = lt_check(x);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const char *why = lt_refusal(x, text);
    return why != NULL ? cublas_refuse(name, why) : CUBLAS_STATUS_SUCCESS;
}

/* ---- the product ---- */

static struct blas_matrix lt_matrix(const struct lt_layout *layout, const void *address,
                                    int operation) {
    struct blas_matrix matrix =
        layout->batch_mode == LT_BATCH_ARRAY
            ? cublas_matrices(address, layout->leading, CUBLAS_OP_N)
            : cublas_matrix(address, layout->leading, CUBLAS_OP_N, layout->stride);
    if (layout->order == LT_ORDER_ROWS) matrix = cublas_transposed(matrix);
    matrix.is_conjugate = operation == CUBLAS_OP_C;
    return operation == CUBLAS_OP_N ? matrix : cublas_transposed(matrix);
}

/* alpha: in the vector modes a number per row of D. */
static struct blas_scalar lt_alpha(const struct lt_call *x) {
    struct blas_scalar alpha =
        cublas_scalar(x->matmul->pointer_mode, x->matmul->scale_type, x->alpha);
    if (x->matmul->pointer_mode >= LT_POINTER_DEVICE_VECTORS) {
        alpha.row = 1;
        alpha.batch = x->matmul->alpha_stride;
    }
    return alpha;
}

static struct blas_scalar lt_beta(const struct lt_call *x) {
    const int mode = x->matmul->pointer_mode;
    struct blas_scalar beta = {{0, 0}, 0, 0, 0, 0};
    if (mode == LT_POINTER_ALPHA_VECTOR_BETA_ZERO) return beta;
    beta =
        cublas_scalar(mode == LT_POINTER_ALPHA_VECTOR_BETA_HOST ? CUBLAS_POINTER_MODE_HOST : mode,
                      x->matmul->scale_type, x->beta);
    if (mode == LT_POINTER_DEVICE_VECTORS) beta.row = 1;
    return beta;
}

static cublasStatus_t lt_matmul(struct cublas_handle *handle, const struct lt_call *x,
                                CUstream stream) {
    const cublasStatus_t status = lt_judge("cublasLtMatmul", x);
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const struct lt_matmul *matmul = x->matmul;
    const bool has_beta = matmul->pointer_mode != LT_POINTER_ALPHA_VECTOR_BETA_ZERO;
    const bool has_bias = (matmul->epilogue & LT_EPILOGUE_BIAS) != 0;
    if (x->alpha == NULL || (has_beta && x->beta == NULL) || has_bias != (matmul->bias != 0))
        return CUBLAS_STATUS_INVALID_VALUE;
    struct blas_product product = {
        .a = lt_matrix(x->a, x->a_at, matmul->op_a),
        .b = lt_matrix(x->b, x->b_at, matmul->op_b),
        .c = lt_matrix(x->c, x->c_at, CUBLAS_OP_N),
        .d = lt_matrix(x->d, x->d_at, CUBLAS_OP_N),
        .alpha = lt_alpha(x),
        .beta = lt_beta(x),
        .m = (int)x->d->rows,
        .n = (int)x->d->columns,
        .k = (int)lt_columns(x->a, matmul->op_a),
        .batch = x->d->batch,
        .follow = (matmul->epilogue & LT_EPILOGUE_RELU) != 0   ? BLAS_FOLLOW_RELU
                  : (matmul->epilogue & LT_EPILOGUE_GELU) != 0 ? BLAS_FOLLOW_GELU
                                                               : BLAS_FOLLOW_NONE};
    if (has_bias) {
        product.bias =
            (struct blas_matrix){.address = matmul->bias, .row = 1, .batch = matmul->bias_stride};
    }
    return cublas_product(handle, stream, lt_numbers(x), &product);
}

CUBLAS(cublasLtMatmul,
       (struct cublas_handle * handle, const struct lt_matmul *matmul, const void *alpha,
        const void *a, const struct lt_layout *a_layout, const void *b,
        const struct lt_layout *b_layout, const void *beta, const void *c,
        const struct lt_layout *c_layout, void *d, const struct lt_layout *d_layout,
        const struct lt_algorithm *algorithm, void *workspace, size_t bytes, CUstream stream),
       ((void)algorithm, (void)workspace, (void)bytes,
        lt_matmul(handle,
                  &(struct lt_call){.matmul = matmul,
                                    .a = a_layout,
                                    .b = b_layout,
                                    .c = c_layout,
                                    .d = d_layout,
                                    .alpha = alpha,
                                    .beta = beta,
                                    .a_at = a,
                                    .b_at = b,
                                    .c_at = c,
                                    .d_at = d},
                  stream)))

/* ---- algorithms: one, without a workspace ---- */

static cublasStatus_t lt_found(const char *name, const struct cublas_handle *handle,
                               const struct lt_call *x, struct lt_heuristic *result) {
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (result == NULL) return CUBLAS_STATUS_INVALID_VALUE;
    memset(result, 0, sizeof *result);
    result->algorithm.data[0] = ALGORITHM;
    result->waves = 1;
    result->status = lt_judge(name, x);
    return result->status;
}

static cublasStatus_t lt_find(const struct cublas_handle *handle, const struct lt_call *x,
                              const struct lt_preference *preference, int room,
                              struct lt_heuristic *results, int *count) {
    if (count == NULL || room < 1 || preference == NULL) return CUBLAS_STATUS_INVALID_VALUE;
    const cublasStatus_t status = lt_found("cublasLtMatmulAlgoGetHeuristic", handle, x, results);
    *count = status == CUBLAS_STATUS_SUCCESS;
    return status;
}

#define LAYOUTS                                                                                    \
    const struct lt_layout *a, const struct lt_layout *b, const struct lt_layout *c,               \
        const struct lt_layout *d
#define PROBLEM                                                                                    \
    &(struct lt_call) {                                                                            \
        .matmul = matmul, .a = a, .b = b, .c = c, .d = d                                           \
    }
CUBLAS(cublasLtMatmulAlgoGetHeuristic,
       (struct cublas_handle * handle, const struct lt_matmul *matmul, LAYOUTS,
        const struct lt_preference *preference, int room, struct lt_heuristic *results, int *count),
       lt_find(handle, PROBLEM, preference, room, results, count))
CUBLAS(cublasLtMatmulAlgoCheck,
       (struct cublas_handle * handle, const struct lt_matmul *matmul, LAYOUTS,
        const struct lt_algorithm *algorithm, struct lt_heuristic *result),
       ((void)algorithm, lt_found("cublasLtMatmulAlgoCheck", handle, PROBLEM, result)))

#define TYPES                                                                                      \
    struct cublas_handle *handle, int compute, int scale_type, int a_type, int b_type, int c_type, \
        int d_type
/* Whether any problem of these types is computed. */
static cublasStatus_t lt_judge_types(const struct cublas_handle *handle, int compute,
                                     int scale_type, const int *types) {
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    const struct cublas_numbers *numbers =
        cublas_numbers_find(types[0], types[1], types[3], compute);
    return numbers != NULL && numbers->scale_type == scale_type && types[2] == types[3]
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_NOT_SUPPORTED;
}

static cublasStatus_t lt_ids(cublasStatus_t status, int room, int *ids, int *count) {
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (room < 1 || ids == NULL) return CUBLAS_STATUS_INVALID_VALUE;
    ids[0] = ALGORITHM;
    if (count != NULL) *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}
CUBLAS(cublasLtMatmulAlgoGetIds, (TYPES, int room, int *ids, int *count),
       lt_ids(lt_judge_types(handle, compute, scale_type,
                             (const int[]){a_type, b_type, c_type, d_type}),
              room, ids, count))

static cublasStatus_t lt_init(cublasStatus_t status, int id, struct lt_algorithm *algorithm) {
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (id != ALGORITHM || algorithm == NULL) return CUBLAS_STATUS_INVALID_VALUE;
    *algorithm = (struct lt_algorithm){{ALGORITHM}};
    return CUBLAS_STATUS_SUCCESS;
}
CUBLAS(cublasLtMatmulAlgoInit, (TYPES, int id, struct lt_algorithm *algorithm),
       lt_init(lt_judge_types(handle, compute, scale_type,
                              (const int[]){a_type, b_type, c_type, d_type}),
               id, algorithm))

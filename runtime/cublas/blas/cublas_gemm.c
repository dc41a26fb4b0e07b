/*
 * C = alpha op(A) op(B) + beta C: cublas<t>gemm, its batches, and cublasGemmEx. Each function has a
 * variant whose name ends in _64 and whose sizes have 64 bits. Source: cuBLAS Library 13.0, "BLAS
 * Level-3 Functions" and "BLAS-like Extension".
 */
#include "base/cublas_product.h"

#include <stdio.h>

/* A call of any of these functions. */
struct gemm {
    const char *name;
    int op_a, op_b;
    int64_t m, n, k;
    const void *alpha, *a, *b, *beta; /* a, b, c: matrices, or arrays of their addresses */
    void *c;
    int64_t lda, ldb, ldc, stride_a, stride_b, stride_c, batch;
    int a_type, b_type, c_type, compute;
    bool is_array;
};

static cublasStatus_t gemm_check(const struct cublas_handle *handle, const struct gemm *g) {
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    const bool valid = cublas_is_operation(g->op_a) && cublas_is_operation(g->op_b) &&
                       cublas_is_size(g->m) && cublas_is_size(g->n) && cublas_is_size(g->k) &&
                       cublas_is_size(g->batch) &&
                       cublas_is_leading(g->lda, g->op_a == CUBLAS_OP_N ? g->m : g->k) &&
                       cublas_is_leading(g->ldb, g->op_b == CUBLAS_OP_N ? g->k : g->n) &&
                       cublas_is_leading(g->ldc, g->m) && g->alpha != NULL && g->beta != NULL &&
                       cublas_is_compute(g->compute);
    return valid ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

static struct blas_matrix gemm_operand(const struct gemm *g, const void *address, int64_t leading,
                                       int operation, int64_t stride) {
    return g->is_array ? cublas_matrices(address, leading, operation)
                       : cublas_matrix(address, leading, operation, stride);
}

static cublasStatus_t gemm_refuse(const struct gemm *g) {
    char why[120];
    snprintf(why, sizeof why, "a product of types %d and %d to %d with compute type %d", g->a_type,
             g->b_type, g->c_type, g->compute);
    return cublas_refuse(g->name, why);
}

static cublasStatus_t gemm_queue(struct cublas_handle *handle, const struct gemm *g) {
    const cublasStatus_t status = gemm_check(handle, g);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const struct cublas_numbers *numbers =
        cublas_numbers_find(g->a_type, g->b_type, g->c_type, g->compute);
    if (numbers == NULL) return gemm_refuse(g);
    struct blas_product product = {
        .a = gemm_operand(g, g->a, g->lda, g->op_a, g->stride_a),
        .b = gemm_operand(g, g->b, g->ldb, g->op_b, g->stride_b),
        .c = gemm_operand(g, g->c, g->ldc, CUBLAS_OP_N, g->stride_c),
        .d = gemm_operand(g, g->c, g->ldc, CUBLAS_OP_N, g->stride_c),
        .alpha = cublas_scalar(handle->pointer_mode, numbers->scale_type, g->alpha),
        .beta = cublas_scalar(handle->pointer_mode, numbers->scale_type, g->beta),
        .m = (int)g->m,
        .n = (int)g->n,
        .k = (int)g->k,
        .batch = (int)g->batch};
    return cublas_product(handle, handle->stream, numbers, &product);
}

/* ---- what functions have in common ---- */

#define SIZES(integer)                                                                             \
    struct cublas_handle *handle, int op_a, int op_b, integer m, integer n, integer k
#define CALL(function, a_is, b_is, c_is, mode, ...)                                                \
    gemm_queue(handle, &(struct gemm){.name = function,                                            \
                                      .a_type = a_is,                                              \
                                      .b_type = b_is,                                              \
                                      .c_type = c_is,                                              \
                                      .compute = mode,                                             \
                                      .op_a = op_a,                                                \
                                      .op_b = op_b,                                                \
                                      .m = m,                                                      \
                                      .n = n,                                                      \
                                      .k = k,                                                      \
                                      .alpha = alpha,                                              \
                                      .a = a,                                                      \
                                      .lda = lda,                                                  \
                                      .b = b,                                                      \
                                      .ldb = ldb,                                                  \
                                      .beta = beta,                                                \
                                      .c = c,                                                      \
                                      .ldc = ldc,                                                  \
                                      __VA_ARGS__})
#define STRIDES .stride_a = stride_a, .stride_b = stride_b, .stride_c = stride_c, .batch = batch

/* ---- one product ---- */

#define GEMM(function, type, mode, integer)                                                        \
    CUBLAS(function,                                                                               \
           (SIZES(integer), const void *alpha, const void *a, integer lda, const void *b,          \
            integer ldb, const void *beta, void *c, integer ldc),                                  \
           CALL(#function, type, type, type, mode, .batch = 1))
#define GEMM_BATCHED(function, type, mode, integer)                                                \
    CUBLAS(function,                                                                               \
           (SIZES(integer), const void *alpha, const void *a, integer lda, const void *b,          \
            integer ldb, const void *beta, void *c, integer ldc, integer batch),                   \
           CALL(#function, type, type, type, mode, .batch = batch, .is_array = true))
#define GEMM_STRIDED(function, type, mode, integer)                                                \
    CUBLAS(function,                                                                               \
           (SIZES(integer), const void *alpha, const void *a, integer lda, long long stride_a,     \
            const void *b, integer ldb, long long stride_b, const void *beta, void *c,             \
            integer ldc, long long stride_c, integer batch),                                       \
           CALL(#function, type, type, type, mode, STRIDES))

#define GEMMS(letter, version, type, mode)                                                         \
    GEMM(cublas##letter##gemm##version, type, mode, int)                                           \
    GEMM(cublas##letter##gemm##version##_64, type, mode, int64_t)                                  \
    GEMM_BATCHED(cublas##letter##gemmBatched, type, mode, int)                                     \
    GEMM_BATCHED(cublas##letter##gemmBatched_64, type, mode, int64_t)                              \
    GEMM_STRIDED(cublas##letter##gemmStridedBatched, type, mode, int)                              \
    GEMM_STRIDED(cublas##letter##gemmStridedBatched_64, type, mode, int64_t)
GEMMS(S, _v2, CUDA_R_32F, CUBLAS_COMPUTE_32F)
GEMMS(D, _v2, CUDA_R_64F, CUBLAS_COMPUTE_64F)
GEMMS(C, _v2, CUDA_C_32F, CUBLAS_COMPUTE_32F)
GEMMS(Z, _v2, CUDA_C_64F, CUBLAS_COMPUTE_64F)
GEMMS(H, , CUDA_R_16F, CUBLAS_COMPUTE_16F)

/* ---- with types as arguments; algorithms all mean the same ---- */

#define GEMM_TYPED(function, integer)                                                              \
    CUBLAS(function,                                                                               \
           (SIZES(integer), const void *alpha, const void *a, int a_type, integer lda,             \
            const void *b, int b_type, integer ldb, const void *beta, void *c, int c_type,         \
            integer ldc),                                                                          \
           CALL(#function, a_type, b_type, c_type, CUBLAS_COMPUTE_32F, .batch = 1))
GEMM_TYPED(cublasSgemmEx, int)
GEMM_TYPED(cublasSgemmEx_64, int64_t)
GEMM_TYPED(cublasCgemmEx, int)
GEMM_TYPED(cublasCgemmEx_64, int64_t)

#define GEMM_EX(function, integer)                                                                 \
    CUBLAS(function,                                                                               \
           (SIZES(integer), const void *alpha, const void *a, int a_type, integer lda,             \
            const void *b, int b_type, integer ldb, const void *beta, void *c, int c_type,         \
            integer ldc, int compute, int algorithm),                                              \
           ((void)algorithm, CALL(#function, a_type, b_type, c_type, compute, .batch = 1)))
GEMM_EX(cublasGemmEx, int)
GEMM_EX(cublasGemmEx_64, int64_t)

#define GEMM_BATCHED_EX(function, integer)                                                         \
    CUBLAS(function,                                                                               \
           (SIZES(integer), const void *alpha, const void *a, int a_type, integer lda,             \
            const void *b, int b_type, integer ldb, const void *beta, void *c, int c_type,         \
            integer ldc, integer batch, int compute, int algorithm),                               \
           ((void)algorithm,                                                                       \
            CALL(#function, a_type, b_type, c_type, compute, .batch = batch, .is_array = true)))
GEMM_BATCHED_EX(cublasGemmBatchedEx, int)
GEMM_BATCHED_EX(cublasGemmBatchedEx_64, int64_t)

#define GEMM_STRIDED_EX(function, integer)                                                         \
    CUBLAS(function,                                                                               \
           (SIZES(integer), const void *alpha, const void *a, int a_type, integer lda,             \
            long long stride_a, const void *b, int b_type, integer ldb, long long stride_b,        \
            const void *beta, void *c, int c_type, integer ldc, long long stride_c, integer batch, \
            int compute, int algorithm),                                                           \
           ((void)algorithm, CALL(#function, a_type, b_type, c_type, compute, STRIDES)))
GEMM_STRIDED_EX(cublasGemmStridedBatchedEx, int)
GEMM_STRIDED_EX(cublasGemmStridedBatchedEx_64, int64_t)

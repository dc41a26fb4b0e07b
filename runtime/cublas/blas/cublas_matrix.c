/*
 * Matrices and vectors: cublas<t>gemv with its batches, ger, geam, dgmm and syrk. Source: cuBLAS
 * Library 13.0, "BLAS Level-2 Functions", "BLAS Level-3 Functions" and "BLAS-like Extension".
 */
#include "base/cublas_product.h"

/* A call of any of these functions. */
struct matrix {
    const char *name;
    const struct cublas_numbers *numbers;
    int op_a, op_b;
    int64_t m, n, k, lda, ldb, ldc, incx, incy, batch;
    int64_t stride_a, stride_x, stride_y;
    const void *alpha, *beta, *a, *b, *x, *y;
    void *c;
    bool is_array;
    int fill; /* cublasFillMode_t */
};

static struct blas_scalar matrix_scalar(const struct cublas_handle *handle, const struct matrix *g,
                                        const void *value) {
    return cublas_scalar(handle->pointer_mode, g->numbers->scale_type, value);
}

/* A vector of a batch: x of a call, or one of an array of vectors. */
static struct blas_matrix matrix_vector(const struct matrix *g, const void *address, int64_t count,
                                        int64_t increment, int64_t stride, int type) {
    struct blas_matrix vector =
        cublas_column(address, g->is_array ? 0 : count, increment, cublas_type_bytes(type));
    vector.batch = g->is_array ? 1 : stride;
    vector.is_array = g->is_array;
    return vector;
}

/* ---- y = alpha op(A) x + beta y ---- */

static cublasStatus_t matrix_gemv(struct cublas_handle *handle, const struct matrix *g) {
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!cublas_is_operation(g->op_a) || !cublas_is_size(g->m) || !cublas_is_size(g->n) ||
        !cublas_is_size(g->batch) || !cublas_is_leading(g->lda, g->m) || g->alpha == NULL ||
        g->beta == NULL) { /* an increment of 0 is one number for all, as cuBLAS takes it */
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (g->is_array && (g->incx < 0 || g->incy < 0))
        return cublas_refuse(g->name, "a negative increment");
    const bool is_plain = g->op_a == CUBLAS_OP_N;
    const int64_t rows = is_plain ? g->m : g->n, steps = is_plain ? g->n : g->m;
    struct blas_product product = {
        .a = g->is_array ? cublas_matrices(g->a, g->lda, g->op_a)
                         : cublas_matrix(g->a, g->lda, g->op_a, g->stride_a),
        .b = matrix_vector(g, g->x, steps, g->incx, g->stride_x, g->numbers->type),
        .c = matrix_vector(g, g->c, rows, g->incy, g->stride_y, g->numbers->result_type),
        .alpha = matrix_scalar(handle, g, g->alpha),
        .beta = matrix_scalar(handle, g, g->beta),
        .m = (int)rows,
        .n = 1,
        .k = (int)steps,
        .batch = (int)g->batch};
    product.d = product.c;
    return cublas_product(handle, handle->stream, g->numbers, &product);
}

/* ---- A = alpha x y' + A ---- */

static cublasStatus_t matrix_ger(struct cublas_handle *handle, const struct matrix *g,
                                 bool is_conjugate) {
    const size_t bytes = cublas_type_bytes(g->numbers->type);
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!cublas_is_size(g->m) || !cublas_is_size(g->n) || !cublas_is_leading(g->ldc, g->m) ||
        g->incx == 0 || g->incy == 0 || g->alpha == NULL) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    struct blas_product product = {.a = cublas_column(g->x, g->m, g->incx, bytes),
                                   .b =
                                       cublas_transposed(cublas_column(g->y, g->n, g->incy, bytes)),
                                   .c = cublas_matrix(g->c, g->ldc, CUBLAS_OP_N, 0),
                                   .alpha = matrix_scalar(handle, g, g->alpha),
                                   .beta = {.value = {1, 0}},
                                   .m = (int)g->m,
                                   .n = (int)g->n,
                                   .k = 1,
                                   .batch = 1};
    product.b.is_conjugate = is_conjugate;
    product.d = product.c;
    return cublas_product(handle, handle->stream, g->numbers, &product);
}

/* ---- C = alpha op(A) op(A)' + beta C, one triangle of it ---- */

static cublasStatus_t matrix_syrk(struct cublas_handle *handle, const struct matrix *g) {
    static const int fills[] = {BLAS_FILL_LOWER, BLAS_FILL_UPPER};
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!cublas_is_operation(g->op_a) || !cublas_is_size(g->n) || !cublas_is_size(g->k) ||
        g->fill < 0 || g->fill > 1 || !cublas_is_leading(g->ldc, g->n) || g->alpha == NULL ||
        g->beta == NULL || !cublas_is_leading(g->lda, g->op_a == CUBLAS_OP_N ? g->n : g->k)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    struct blas_product product = {.a = cublas_matrix(g->a, g->lda, g->op_a, 0),
                                   .c = cublas_matrix(g->c, g->ldc, CUBLAS_OP_N, 0),
                                   .alpha = matrix_scalar(handle, g, g->alpha),
                                   .beta = matrix_scalar(handle, g, g->beta),
                                   .m = (int)g->n,
                                   .n = (int)g->n,
                                   .k = (int)g->k,
                                   .batch = 1,
                                   .fill = fills[g->fill]};
    product.a.is_conjugate = false; /* the transpose; herk has the conjugate */
    product.b = cublas_transposed(product.a);
    product.d = product.c;
    return cublas_product(handle, handle->stream, g->numbers, &product);
}

/* ---- C = alpha op(A) + beta op(B) ---- */

static cublasStatus_t matrix_geam(struct cublas_handle *handle, const struct matrix *g) {
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!cublas_is_operation(g->op_a) || !cublas_is_operation(g->op_b) || !cublas_is_size(g->m) ||
        !cublas_is_size(g->n) || g->alpha == NULL || g->beta == NULL ||
        !cublas_is_leading(g->lda, g->op_a == CUBLAS_OP_N ? g->m : g->n) ||
        !cublas_is_leading(g->ldb, g->op_b == CUBLAS_OP_N ? g->m : g->n) ||
        !cublas_is_leading(g->ldc, g->m)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    struct blas_product sum = {.a = cublas_matrix(g->a, g->lda, g->op_a, 0),
                               .b = cublas_matrix(g->b, g->ldb, g->op_b, 0),
                               .d = cublas_matrix(g->c, g->ldc, CUBLAS_OP_N, 0),
                               .alpha = matrix_scalar(handle, g, g->alpha),
                               .beta = matrix_scalar(handle, g, g->beta),
                               .m = (int)g->m,
                               .n = (int)g->n,
                               .batch = 1};
    return cublas_sum(handle, g->numbers->type, &sum);
}

/* ---- C = diag(x) A or A diag(x): beta C of a product with a beta for each row or column ---- */

static cublasStatus_t matrix_dgmm(struct cublas_handle *handle, const struct matrix *g, int side) {
    const bool is_right = side == 1;
    const int64_t count = is_right ? g->n : g->m;
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!cublas_is_size(g->m) || !cublas_is_size(g->n) || !cublas_is_leading(g->lda, g->m) ||
        !cublas_is_leading(g->ldc, g->m) || side < 0 || side > 1) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    const struct blas_matrix x =
        cublas_column(g->x, count, g->incx, cublas_type_bytes(g->numbers->type));
    struct blas_product product = {.c = cublas_matrix(g->a, g->lda, CUBLAS_OP_N, 0),
                                   .d = cublas_matrix(g->c, g->ldc, CUBLAS_OP_N, 0),
                                   .beta = {.address = x.address,
                                            .row = is_right ? 0 : g->incx,
                                            .column = is_right ? g->incx : 0},
                                   .m = (int)g->m,
                                   .n = (int)g->n,
                                   .batch = 1};
    return cublas_product(handle, handle->stream, g->numbers, &product);
}

/* ---- the functions ---- */

#define MATRIX(function, row, ...)                                                                 \
    &(struct matrix) {                                                                             \
        .name = #function, .numbers = row, __VA_ARGS__                                             \
    }
#define GEMV(function, row, integer)                                                               \
    CUBLAS(function,                                                                               \
           (struct cublas_handle * handle, int op_a, integer m, integer n, const void *alpha,      \
            const void *a, integer lda, const void *x, integer incx, const void *beta, void *c,    \
            integer incy),                                                                         \
           matrix_gemv(handle, MATRIX(function, row, .op_a = op_a, .m = m, .n = n, .alpha = alpha, \
                                      .a = a, .lda = lda, .x = x, .incx = incx, .beta = beta,      \
                                      .c = c, .incy = incy, .batch = 1)))
#define GEMV_BATCHED(function, row, integer)                                                       \
    CUBLAS(function,                                                                               \
           (struct cublas_handle * handle, int op_a, integer m, integer n, const void *alpha,      \
            const void *a, integer lda, const void *x, integer incx, const void *beta, void *c,    \
            integer incy, integer batch),                                                          \
           matrix_gemv(handle, MATRIX(function, row, .op_a = op_a, .m = m, .n = n, .alpha = alpha, \
                                      .a = a, .lda = lda, .x = x, .incx = incx, .beta = beta,      \
                                      .c = c, .incy = incy, .batch = batch, .is_array = true)))
#define GEMV_STRIDED(function, row, integer)                                                       \
    CUBLAS(function,                                                                               \
           (struct cublas_handle * handle, int op_a, integer m, integer n, const void *alpha,      \
            const void *a, integer lda, long long stride_a, const void *x, integer incx,           \
            long long stride_x, const void *beta, void *c, integer incy, long long stride_y,       \
            integer batch),                                                                        \
           matrix_gemv(handle, MATRIX(function, row, .op_a = op_a, .m = m, .n = n, .alpha = alpha, \
                                      .a = a, .lda = lda, .x = x, .incx = incx, .beta = beta,      \
                                      .c = c, .incy = incy, .batch = batch, .stride_a = stride_a,  \
                                      .stride_x = stride_x, .stride_y = stride_y)))
#define GER(function, row, conjugate, integer)                                                     \
    CUBLAS(function,                                                                               \
           (struct cublas_handle * handle, integer m, integer n, const void *alpha, const void *x, \
            integer incx, const void *y, integer incy, void *c, integer ldc),                      \
           matrix_ger(handle,                                                                      \
                      MATRIX(function, row, .m = m, .n = n, .alpha = alpha, .x = x, .incx = incx,  \
                             .y = y, .incy = incy, .c = c, .ldc = ldc),                            \
                      conjugate))
#define SYRK(function, row, integer)                                                               \
    CUBLAS(function,                                                                               \
           (struct cublas_handle * handle, int fill, int op_a, integer n, integer k,               \
            const void *alpha, const void *a, integer lda, const void *beta, void *c,              \
            integer ldc),                                                                          \
           matrix_syrk(handle, MATRIX(function, row, .fill = fill, .op_a = op_a, .n = n, .k = k,   \
                                      .alpha = alpha, .a = a, .lda = lda, .beta = beta, .c = c,    \
                                      .ldc = ldc)))
#define GEAM(function, row, integer)                                                               \
    CUBLAS(function,                                                                               \
           (struct cublas_handle * handle, int op_a, int op_b, integer m, integer n,               \
            const void *alpha, const void *a, integer lda, const void *beta, const void *b,        \
            integer ldb, void *c, integer ldc),                                                    \
           matrix_geam(handle, MATRIX(function, row, .op_a = op_a, .op_b = op_b, .m = m, .n = n,   \
                                      .alpha = alpha, .a = a, .lda = lda, .beta = beta, .b = b,    \
                                      .ldb = ldb, .c = c, .ldc = ldc)))

#define DGMM(function, row, integer)                                                               \
    CUBLAS(function,                                                                               \
           (struct cublas_handle * handle, int side, integer m, integer n, const void *a,          \
            integer lda, const void *x, integer incx, void *c, integer ldc),                       \
           matrix_dgmm(handle,                                                                     \
                       MATRIX(function, row, .m = m, .n = n, .a = a, .lda = lda, .x = x,           \
                              .incx = incx, .c = c, .ldc = ldc),                                   \
                       side))

#define BATCHES(letters, row)                                                                      \
    GEMV_BATCHED(cublas##letters##gemvBatched, row, int)                                           \
    GEMV_BATCHED(cublas##letters##gemvBatched_64, row, int64_t)                                    \
    GEMV_STRIDED(cublas##letters##gemvStridedBatched, row, int)                                    \
    GEMV_STRIDED(cublas##letters##gemvStridedBatched_64, row, int64_t)
#define MATRICES(letter, type)                                                                     \
    GEMV(cublas##letter##gemv_v2, cublas_numbers_of(type), int)                                    \
    GEMV(cublas##letter##gemv_v2_64, cublas_numbers_of(type), int64_t)                             \
    BATCHES(letter, cublas_numbers_of(type))                                                       \
    SYRK(cublas##letter##syrk_v2, cublas_numbers_of(type), int)                                    \
    SYRK(cublas##letter##syrk_v2_64, cublas_numbers_of(type), int64_t)                             \
    DGMM(cublas##letter##dgmm, cublas_numbers_of(type), int)                                       \
    DGMM(cublas##letter##dgmm_64, cublas_numbers_of(type), int64_t)                                \
    GEAM(cublas##letter##geam, cublas_numbers_of(type), int)                                       \
    GEAM(cublas##letter##geam_64, cublas_numbers_of(type), int64_t)
MATRICES(S, CUDA_R_32F)
MATRICES(D, CUDA_R_64F)
MATRICES(C, CUDA_C_32F)
MATRICES(Z, CUDA_C_64F)

#define HALVES(type, result) cublas_numbers_find(type, type, result, CUBLAS_COMPUTE_32F)
BATCHES(HSH, HALVES(CUDA_R_16F, CUDA_R_16F))
BATCHES(HSS, HALVES(CUDA_R_16F, CUDA_R_32F))
BATCHES(TST, HALVES(CUDA_R_16BF, CUDA_R_16BF))
BATCHES(TSS, HALVES(CUDA_R_16BF, CUDA_R_32F))

#define GERS(name, type, conjugate)                                                                \
    GER(cublas##name##_v2, cublas_numbers_of(type), conjugate, int)                                \
    GER(cublas##name##_v2_64, cublas_numbers_of(type), conjugate, int64_t)
GERS(Sger, CUDA_R_32F, false)
GERS(Dger, CUDA_R_64F, false)
GERS(Cgeru, CUDA_C_32F, false)
GERS(Cgerc, CUDA_C_32F, true)
GERS(Zgeru, CUDA_C_64F, false)
GERS(Zgerc, CUDA_C_64F, true)

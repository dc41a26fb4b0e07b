/*
 * Operations on vectors: cublas<t>axpy, scal, copy, dot, nrm2, asum, iamax, iamin and their
 * variants with types as arguments. Source: cuBLAS Library 13.0, "BLAS Level-1 Functions".
 *
 * As in BLAS, a vector whose increment is negative begins at its end, where there are two vectors;
 * a function of one vector takes it for empty.
 */
#include "base/cublas_product.h"

#include <limits.h>
#include <stdio.h>

/* A call of any of these functions. Types are cudaDataType_t. */
struct vector {
    const char *name;
    int64_t n, incx, incy;
    const void *alpha, *x, *y;
    void *result; /* of a reduction */
    int type, y_type, alpha_type, result_type, compute;
    bool is_conjugate, is_wide;
    int kind; /* enum blas_kind */
};

static cublasStatus_t vector_check(const struct cublas_handle *handle, const struct vector *v) {
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    return v->n > INT_MAX ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

/* Whether sums of this type are kept in the type that the call names. */
static bool vector_is_computed(const struct vector *v) {
    const bool is_double = v->type == CUDA_R_64F || v->type == CUDA_C_64F;
    return cublas_numbers_of(v->type) != NULL && v->type == v->y_type &&
           (v->compute == v->type || v->compute == (is_double ? CUDA_R_64F : CUDA_R_32F));
}

/* alpha has the type of the vectors, but is a float if they are halves. */
static bool vector_has_alpha(const struct vector *v) {
    const struct cublas_numbers *numbers = cublas_numbers_of(v->type);
    return numbers != NULL && v->alpha_type == numbers->scale_type;
}

static cublasStatus_t vector_refuse(const struct vector *v) {
    char why[120];
    snprintf(why, sizeof why,
             "vectors of types %d and %d computed in type %d with alpha of type %d", v->type,
             v->y_type, v->compute, v->alpha_type);
    return cublas_refuse(v->name, why);
}

/* ---- y = alpha x + y; x = alpha x; y = x ---- */

enum vector_form { VECTOR_AXPY, VECTOR_SCAL, VECTOR_COPY };

static cublasStatus_t vector_sum(struct cublas_handle *handle, enum vector_form form,
                                 const struct vector *v) {
    static const float one = 1;
    const cublasStatus_t status = vector_check(handle, v);
    const size_t bytes = cublas_type_bytes(v->type);
    const bool is_copy = form == VECTOR_COPY, is_scal = form == VECTOR_SCAL;
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (!vector_is_computed(v) || (!is_copy && !vector_has_alpha(v))) return vector_refuse(v);
    if (v->alpha == NULL && !is_copy) return CUBLAS_STATUS_INVALID_VALUE;
    if (v->n <= 0 || (is_scal && v->incx <= 0)) return CUBLAS_STATUS_SUCCESS;
    struct blas_product sum = {.a = cublas_column(v->x, v->n, v->incx, bytes),
                               .m = (int)v->n,
                               .n = 1,
                               .k = !is_copy && is_scal, /* 0 NaN is NaN */
                               .batch = 1,
                               .scale = cublas_scale(v->alpha_type)};
    sum.alpha = is_copy ? cublas_scalar(CUBLAS_POINTER_MODE_HOST, CUDA_R_32F, &one)
                        : cublas_scalar(handle->pointer_mode, v->alpha_type, v->alpha);
    sum.d = is_scal ? sum.a : cublas_column(v->y, v->n, v->incy, bytes);
    sum.b = sum.d;
    sum.beta.value[0] = form == VECTOR_AXPY;
    return cublas_sum(handle, v->type, &sum);
}

/* Complex numbers times a real one: pairs of real numbers. */
static cublasStatus_t vector_scal_pairs(struct cublas_handle *handle, const struct vector *v) {
    const cublasStatus_t status = vector_check(handle, v);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (v->alpha == NULL) return CUBLAS_STATUS_INVALID_VALUE;
    if (v->n <= 0 || v->incx <= 0) return CUBLAS_STATUS_SUCCESS;
    struct blas_product sum = {
        .a = {.address = (CUdeviceptr)(uintptr_t)v->x, .row = 2 * v->incx, .column = 1},
        .alpha = cublas_scalar(handle->pointer_mode, v->type, v->alpha),
        .m = (int)v->n,
        .n = 2,
        .k = 1,
        .batch = 1};
    sum.b = sum.d = sum.a;
    return cublas_sum(handle, v->type, &sum);
}

/* ---- reductions ---- */

static cublasStatus_t vector_dot(struct cublas_handle *handle, const struct vector *v) {
    static const double one[2] = {1, 0};
    CUdeviceptr result = 0;
    cublasStatus_t status = vector_check(handle, v);
    const size_t bytes = cublas_type_bytes(v->type);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (!vector_is_computed(v) || v->result_type != v->type) return vector_refuse(v);
    status = cublas_result_begin(handle, v->result, &result);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const int64_t n = v->n > 0 ? v->n : 0;
    struct blas_product product = {.a = cublas_transposed(cublas_column(v->x, n, v->incx, bytes)),
                                   .b = cublas_column(v->y, n, v->incy, bytes),
                                   .d = {.address = result, .row = 1, .column = 1},
                                   .alpha =
                                       cublas_scalar(CUBLAS_POINTER_MODE_HOST, CUDA_C_64F, one),
                                   .m = 1,
                                   .n = 1,
                                   .k = (int)n,
                                   .batch = 1};
    product.a.is_conjugate = v->is_conjugate;
    status = cublas_product(handle, handle->stream, cublas_numbers_of(v->type), &product);
    return cublas_result_end(handle, status, v->result, bytes);
}

/* The type of a number's real part. */
static int vector_real_type(const struct vector *v) {
    return v->type == CUDA_C_32F ? CUDA_R_32F : v->type == CUDA_C_64F ? CUDA_R_64F : v->type;
}

static size_t vector_reduced_bytes(const struct vector *v) {
    if (v->kind == BLAS_LARGEST || v->kind == BLAS_SMALLEST) return v->is_wide ? 8 : 4;
    return cublas_type_bytes(vector_real_type(v));
}

static cublasStatus_t vector_reduce(struct cublas_handle *handle, const struct vector *v) {
    cublasStatus_t status = vector_check(handle, v);
    struct blas_reduction reduction = {.x = (CUdeviceptr)(uintptr_t)v->x,
                                       .stride = v->incx,
                                       .count = v->n > 0 && v->incx > 0 ? v->n : 0,
                                       .kind = v->kind,
                                       .is_wide = v->is_wide};
    struct cublas_launch launch = {.image = CUBLAS_REDUCE,
                                   .blocks = 1,
                                   .batch = 1,
                                   .threads = BLAS_THREADS,
                                   .argument = &reduction};
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (!vector_is_computed(v) ||
        (v->result_type != v->type && v->result_type != vector_real_type(v)))
        return vector_refuse(v);
    status = cublas_result_begin(handle, v->result, &reduction.result);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    launch.stream = handle->stream;
    snprintf(launch.name, sizeof launch.name, "blas_reduce_%s", cublas_numbers_of(v->type)->suffix);
    status = cublas_launch(handle, &launch);
    return cublas_result_end(handle, status, v->result, vector_reduced_bytes(v));
}

/* ---- the functions of one type ---- */

#define TYPED(function, x_is, y_is, alpha_is, result_is, mode, ...)                                \
    &(struct vector) {                                                                             \
        .name = #function, .type = x_is, .y_type = y_is, .alpha_type = alpha_is,                   \
        .result_type = result_is, .compute = mode, .n = n, .x = x, .incx = incx, __VA_ARGS__       \
    }
#define VECTOR(function, each, ...) TYPED(function, each, each, each, each, each, __VA_ARGS__)

#define SUMS(letter, end, type, integer)                                                           \
    CUBLAS(cublas##letter##axpy##end,                                                              \
           (struct cublas_handle * handle, integer n, const void *alpha, const void *x,            \
            integer incx, void *y, integer incy),                                                  \
           vector_sum(handle, VECTOR_AXPY,                                                         \
                      VECTOR(cublas##letter##axpy, type, .alpha = alpha, .y = y, .incy = incy)))   \
    CUBLAS(cublas##letter##scal##end,                                                              \
           (struct cublas_handle * handle, integer n, const void *alpha, void *x, integer incx),   \
           vector_sum(handle, VECTOR_SCAL, VECTOR(cublas##letter##scal, type, .alpha = alpha)))    \
    CUBLAS(                                                                                        \
        cublas##letter##copy##end,                                                                 \
        (struct cublas_handle * handle, integer n, const void *x, integer incx, void *y,           \
         integer incy),                                                                            \
        vector_sum(handle, VECTOR_COPY, VECTOR(cublas##letter##copy, type, .y = y, .incy = incy)))
#define SCAL_PAIRS(name, end, type, integer)                                                       \
    CUBLAS(cublas##name##end,                                                                      \
           (struct cublas_handle * handle, integer n, const void *alpha, void *x, integer incx),   \
           vector_scal_pairs(handle, VECTOR(cublas##name, type, .alpha = alpha)))
#define DOT(name, end, type, conjugate, integer)                                                   \
    CUBLAS(cublas##name##end,                                                                      \
           (struct cublas_handle * handle, integer n, const void *x, integer incx, const void *y,  \
            integer incy, void *result),                                                           \
           vector_dot(handle, VECTOR(cublas##name, type, .y = y, .incy = incy, .result = result,   \
                                     .is_conjugate = conjugate)))
#define REDUCE(name, end, type, integer, reduced, of, wide)                                        \
    CUBLAS(                                                                                        \
        cublas##name##end,                                                                         \
        (struct cublas_handle * handle, integer n, const void *x, integer incx, reduced *result),  \
        vector_reduce(handle,                                                                      \
                      VECTOR(cublas##name, type, .result = result, .kind = of, .is_wide = wide)))
#define REDUCTIONS(letter, norm, magnitude, end, type, integer, wide)                              \
    REDUCE(norm, end, type, integer, void, BLAS_NORM, wide)                                        \
    REDUCE(magnitude, end, type, integer, void, BLAS_MAGNITUDE, wide)                              \
    REDUCE(I##letter##amax, end, type, integer, integer, BLAS_LARGEST, wide)                       \
    REDUCE(I##letter##amin, end, type, integer, integer, BLAS_SMALLEST, wide)

#define VECTORS(end, integer, wide)                                                                \
    SUMS(S, end, CUDA_R_32F, integer)                                                              \
    SUMS(D, end, CUDA_R_64F, integer)                                                              \
    SUMS(C, end, CUDA_C_32F, integer)                                                              \
    SUMS(Z, end, CUDA_C_64F, integer)                                                              \
    SCAL_PAIRS(Csscal, end, CUDA_R_32F, integer)                                                   \
    SCAL_PAIRS(Zdscal, end, CUDA_R_64F, integer)                                                   \
    DOT(Sdot, end, CUDA_R_32F, false, integer)                                                     \
    DOT(Ddot, end, CUDA_R_64F, false, integer)                                                     \
    DOT(Cdotu, end, CUDA_C_32F, false, integer)                                                    \
    DOT(Zdotu, end, CUDA_C_64F, false, integer)                                                    \
    DOT(Cdotc, end, CUDA_C_32F, true, integer)                                                     \
    DOT(Zdotc, end, CUDA_C_64F, true, integer)                                                     \
    REDUCTIONS(s, Snrm2, Sasum, end, CUDA_R_32F, integer, wide)                                    \
    REDUCTIONS(d, Dnrm2, Dasum, end, CUDA_R_64F, integer, wide)                                    \
    REDUCTIONS(c, Scnrm2, Scasum, end, CUDA_C_32F, integer, wide)                                  \
    REDUCTIONS(z, Dznrm2, Dzasum, end, CUDA_C_64F, integer, wide)
VECTORS(_v2, int, false)
VECTORS(_v2_64, int64_t, true)

/* ---- with types as arguments ---- */

#define EXTENDED(end, integer)                                                                     \
    CUBLAS(cublasAxpyEx##end,                                                                      \
           (struct cublas_handle * handle, integer n, const void *alpha, int alpha_type,           \
            const void *x, int x_type, integer incx, void *y, int y_type, integer incy,            \
            int execution),                                                                        \
           vector_sum(handle, VECTOR_AXPY,                                                         \
                      TYPED(cublasAxpyEx, x_type, y_type, alpha_type, y_type, execution,           \
                            .alpha = alpha, .y = y, .incy = incy)))                                \
    CUBLAS(cublasScalEx##end,                                                                      \
           (struct cublas_handle * handle, integer n, const void *alpha, int alpha_type, void *x,  \
            int x_type, integer incx, int execution),                                              \
           vector_sum(handle, VECTOR_SCAL,                                                         \
                      TYPED(cublasScalEx, x_type, x_type, alpha_type, x_type, execution,           \
                            .alpha = alpha)))                                                      \
    CUBLAS(cublasNrm2Ex##end,                                                                      \
           (struct cublas_handle * handle, integer n, const void *x, int x_type, integer incx,     \
            void *result, int result_type, int execution),                                         \
           vector_reduce(handle, TYPED(cublasNrm2Ex, x_type, x_type, x_type, result_type,          \
                                       execution, .result = result, .kind = BLAS_NORM)))           \
    DOT_TYPED(DotEx, end, integer, false)                                                          \
    DOT_TYPED(DotcEx, end, integer, true)
#define DOT_TYPED(name, end, integer, conjugate)                                                   \
    CUBLAS(cublas##name##end,                                                                      \
           (struct cublas_handle * handle, integer n, const void *x, int x_type, integer incx,     \
            const void *y, int y_type, integer incy, void *result, int result_type,                \
            int execution),                                                                        \
           vector_dot(handle,                                                                      \
                      TYPED(cublas##name, x_type, y_type, x_type, result_type, execution, .y = y,  \
                            .incy = incy, .result = result, .is_conjugate = conjugate)))
EXTENDED(, int)
EXTENDED(_64, int64_t)

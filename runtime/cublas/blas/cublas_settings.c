/*
 * What cuBLAS keeps in a handle, its version, its statuses' names, and copies of vectors and
 * matrices. Source: cuBLAS Library 13.0, "cuBLAS Helper Functions".
 */
#include "base/cublas_handle.h"
#include "base/cublas_status.h"

#include <limits.h>
#include <string.h>

CUBLAS(cublasCreate_v2, (struct cublas_handle * *handle), cublas_handle_create(handle))
CUBLAS(cublasDestroy_v2, (struct cublas_handle * handle), cublas_handle_destroy(handle))

/* ---- settings ---- */

static cublasStatus_t settings_get(const struct cublas_handle *handle, const void *setting,
                                   void *value, size_t bytes) {
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (value == NULL) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(value, setting, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t settings_set(struct cublas_handle *handle, int *setting, int value,
                                   int last) {
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (value < 0 || value > last) return CUBLAS_STATUS_INVALID_VALUE;
    *setting = value;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t settings_set_stream(struct cublas_handle *handle, CUstream stream) {
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

/* The address of a setting is computed and not read if handle is NULL. */
#define SETTING(what, version, member, last)                                                       \
    CUBLAS(cublasSet##what##version, (struct cublas_handle * handle, int value),                   \
           settings_set(handle, handle != NULL ? &handle->member : NULL, value, last))             \
    CUBLAS(cublasGet##what##version, (struct cublas_handle * handle, int *value),                  \
           settings_get(handle, handle != NULL ? &handle->member : NULL, value, sizeof *value))
SETTING(PointerMode, _v2, pointer_mode, CUBLAS_POINTER_MODE_DEVICE)
SETTING(AtomicsMode, , atomics_mode, 1)
SETTING(MathMode, , math_mode, 31)
SETTING(SmCountTarget, , sm_count_target, INT_MAX)
SETTING(EmulationStrategy, , emulation, 2)

CUBLAS(cublasSetStream_v2, (struct cublas_handle * handle, CUstream stream),
       settings_set_stream(handle, stream))
CUBLAS(cublasGetStream_v2, (struct cublas_handle * handle, CUstream *stream),
       settings_get(handle, handle != NULL ? &handle->stream : NULL, stream, sizeof *stream))

/* No kernel here needs a workspace. */
CUBLAS(cublasSetWorkspace_v2, (struct cublas_handle * handle, void *workspace, size_t bytes),
       ((void)workspace, (void)bytes,
        handle != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED))

/* ---- copies ---- */

/* A matrix to copy: a column of rows elements each; leading from column to column. */
struct settings_copy {
    int64_t rows, columns, element;
    const void *from;
    int64_t from_leading;
    void *to;
    int64_t to_leading;
    CUstream stream;
    bool is_set, is_waited; /* from the host to the device; until it is complete */
};

/* The function needs no handle: it works in the current context, as the CUDA runtime. */
static cublasStatus_t settings_copy(const struct settings_copy *x) {
    const struct tol_driver_table *driver = NULL;
    CUcontext context = NULL;
    if (x->rows < 0 || x->columns < 0 || x->element <= 0 || x->from_leading < x->rows ||
        x->to_leading < x->rows || x->from_leading <= 0 || x->to_leading <= 0) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (x->rows == 0 || x->columns == 0) return CUBLAS_STATUS_SUCCESS;
    const cublasStatus_t status = cublas_find_context(&driver, &context);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const CUDA_MEMCPY2D copy = {
        .srcMemoryType = x->is_set ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .srcHost = x->from,
        .srcDevice = (CUdeviceptr)(uintptr_t)x->from,
        .srcPitch = (size_t)(x->from_leading * x->element),
        .dstMemoryType = x->is_set ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
        .dstHost = x->to,
        .dstDevice = (CUdeviceptr)(uintptr_t)x->to,
        .dstPitch = (size_t)(x->to_leading * x->element),
        .WidthInBytes = (size_t)(x->rows * x->element),
        .Height = (size_t)x->columns};
    CUresult result = driver->cuMemcpy2DAsync_v2(&copy, x->stream);
    if (result == CUDA_SUCCESS && x->is_waited) result = driver->cuStreamSynchronize(x->stream);
    return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

#define COPY(...) settings_copy(&(struct settings_copy){__VA_ARGS__})
#define VECTOR(stream, is_set, is_waited)                                                          \
    COPY(1, n, element, x, incx, y, incy, stream, is_set, is_waited)
#define MATRIX(stream, is_set, is_waited)                                                          \
    COPY(rows, columns, element, a, lda, b, ldb, stream, is_set, is_waited)
#define VECTOR_OF(integer)                                                                         \
    integer n, integer element, const void *x, integer incx, void *y, integer incy
#define MATRIX_OF(integer)                                                                         \
    integer rows, integer columns, integer element, const void *a, integer lda, void *b, integer ldb
#define COPIES(end, integer)                                                                       \
    CUBLAS(cublasSetVector##end, (VECTOR_OF(integer)), VECTOR(NULL, true, true))                   \
    CUBLAS(cublasGetVector##end, (VECTOR_OF(integer)), VECTOR(NULL, false, true))                  \
    CUBLAS(cublasSetMatrix##end, (MATRIX_OF(integer)), MATRIX(NULL, true, true))                   \
    CUBLAS(cublasGetMatrix##end, (MATRIX_OF(integer)), MATRIX(NULL, false, true))                  \
    CUBLAS(cublasSetVectorAsync##end, (VECTOR_OF(integer), CUstream stream),                       \
           VECTOR(stream, true, false))                                                            \
    CUBLAS(cublasGetVectorAsync##end, (VECTOR_OF(integer), CUstream stream),                       \
           VECTOR(stream, false, false))                                                           \
    CUBLAS(cublasSetMatrixAsync##end, (MATRIX_OF(integer), CUstream stream),                       \
           MATRIX(stream, true, false))                                                            \
    CUBLAS(cublasGetMatrixAsync##end, (MATRIX_OF(integer), CUstream stream),                       \
           MATRIX(stream, false, false))
COPIES(, int)
COPIES(_64, int64_t)

/* ---- versions and names ---- */

CUBLAS(cublasGetVersion_v2, (struct cublas_handle * handle, int *version),
       ((void)handle, version == NULL ? CUBLAS_STATUS_INVALID_VALUE
                                      : (*version = cublas_version, CUBLAS_STATUS_SUCCESS)))
CUBLAS(cublasGetProperty, (int property, int *value), cublas_property(property, value))

CUBLAS_VISIBLE size_t cublasGetCudartVersion(void);
size_t cublasGetCudartVersion(void) {
    return (size_t)cublas_cudart_version;
}

CUBLAS_VISIBLE const char *cublasGetStatusName(cublasStatus_t status);
const char *cublasGetStatusName(cublasStatus_t status) {
    return cublas_status_name(status);
}

CUBLAS_VISIBLE const char *cublasGetStatusString(cublasStatus_t status);
const char *cublasGetStatusString(cublasStatus_t status) {
    return cublas_status_text(status);
}

/* A log would be of NVIDIA's own kernels. */
CUBLAS(cublasLoggerConfigure, (int is_on, int to_output, int to_error, const char *file),
       ((void)is_on, (void)to_output, (void)to_error, (void)file, CUBLAS_STATUS_SUCCESS))
static void (*settings_log)(const char *text);
CUBLAS(cublasSetLoggerCallback, (void (*callback)(const char *text)),
       (settings_log = callback, CUBLAS_STATUS_SUCCESS))
CUBLAS(cublasGetLoggerCallback, (void (**callback)(const char *text)),
       callback == NULL ? CUBLAS_STATUS_INVALID_VALUE
                        : (*callback = settings_log, CUBLAS_STATUS_SUCCESS))

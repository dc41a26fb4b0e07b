/*
 * Handles of cublasLt, its version, its statuses' names, and what of it is not modelled.
 */
#include "base/cublas_handle.h"
#include "base/cublas_status.h"

CUBLAS(cublasLtCreate, (struct cublas_handle * *handle), cublas_handle_create(handle))
CUBLAS(cublasLtDestroy, (struct cublas_handle * handle), cublas_handle_destroy(handle))
CUBLAS(cublasLtGetProperty, (int property, int *value), cublas_property(property, value))

CUBLAS_VISIBLE size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void) {
    return (size_t)cublas_version;
}

CUBLAS_VISIBLE size_t cublasLtGetCudartVersion(void);
size_t cublasLtGetCudartVersion(void) {
    return (size_t)cublas_cudart_version;
}

CUBLAS_VISIBLE const char *cublasLtGetStatusName(cublasStatus_t status);
const char *cublasLtGetStatusName(cublasStatus_t status) {
    return cublas_status_name(status);
}

CUBLAS_VISIBLE const char *cublasLtGetStatusString(cublasStatus_t status);
const char *cublasLtGetStatusString(cublasStatus_t status) {
    return cublas_status_text(status);
}

/* ---- functions that return CUBLAS_STATUS_NOT_SUPPORTED ---- */

CUBLAS_REFUSED(cublasLtEmulationDescCreate)
CUBLAS_REFUSED(cublasLtEmulationDescDestroy)
CUBLAS_REFUSED(cublasLtEmulationDescGetAttribute)
CUBLAS_REFUSED(cublasLtEmulationDescInit_internal)
CUBLAS_REFUSED(cublasLtEmulationDescSetAttribute)
CUBLAS_REFUSED(cublasLtHeuristicsCacheGetCapacity)
CUBLAS_REFUSED(cublasLtHeuristicsCacheSetCapacity)
CUBLAS_REFUSED(cublasLtLoggerForceDisable)
CUBLAS_REFUSED(cublasLtLoggerOpenFile)
CUBLAS_REFUSED(cublasLtLoggerSetCallback)
CUBLAS_REFUSED(cublasLtLoggerSetFile)
CUBLAS_REFUSED(cublasLtLoggerSetLevel)
CUBLAS_REFUSED(cublasLtLoggerSetMask)
CUBLAS_REFUSED(cublasLtMatmulAlgoCapGetAttribute)
CUBLAS_REFUSED(cublasLtMatmulAlgoConfigGetAttribute)
CUBLAS_REFUSED(cublasLtMatmulAlgoConfigSetAttribute)
CUBLAS_REFUSED(cublasLtMatrixTransform)
CUBLAS_REFUSED(cublasLtMatrixTransformDescCreate)
CUBLAS_REFUSED(cublasLtMatrixTransformDescDestroy)
CUBLAS_REFUSED(cublasLtMatrixTransformDescGetAttribute)
CUBLAS_REFUSED(cublasLtMatrixTransformDescInit_internal)
CUBLAS_REFUSED(cublasLtMatrixTransformDescSetAttribute)

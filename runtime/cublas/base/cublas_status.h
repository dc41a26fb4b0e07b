/*
 * What cuBLAS and cublasLt say of themselves: their version, and the names of statuses.
 * Thread-safe.
 */
#ifndef CUBLAS_STATUS_H
#define CUBLAS_STATUS_H

#include "cublas_types.h"

/* 10000 major + 100 minor + patch, of cuBLAS; 1000 major + 10 minor of the CUDA runtime. */
extern const int cublas_version, cublas_cudart_version;

const char *cublas_status_name(cublasStatus_t status); /* "CUBLAS_STATUS_SUCCESS"; static */
const char *cublas_status_text(cublasStatus_t status);

/* A part of the version, by a libraryPropertyType. INVALID_VALUE: there is no such part. */
cublasStatus_t cublas_property(int property, int *value);

#endif

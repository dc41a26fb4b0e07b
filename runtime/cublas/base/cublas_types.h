/*
 * The ABI of cuBLAS that this library answers: numbers and structures of the public headers
 * cublas_api.h, cublasLt.h and library_types.h of CUDA 13.0; those of CUDA 12 are the same.
 */
#ifndef CUBLAS_TYPES_H
#define CUBLAS_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef int cublasStatus_t;
enum {
#define CUBLAS_STATUS(name, value, text) CUBLAS_STATUS_##name = value,
#include "cublas_statuses.def"
};

/* cudaDataType_t */
enum {
    CUDA_R_32F = 0,
    CUDA_R_64F = 1,
    CUDA_R_16F = 2,
    CUDA_R_8I = 3,
    CUDA_C_32F = 4,
    CUDA_C_64F = 5,
    CUDA_R_32I = 10,
    CUDA_R_16BF = 14
};

enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };

/* cublasComputeType_t */
enum {
    CUBLAS_COMPUTE_16F = 64,
    CUBLAS_COMPUTE_16F_PEDANTIC = 65,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    CUBLAS_COMPUTE_32I = 72,
    CUBLAS_COMPUTE_32I_PEDANTIC = 73,
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
    CUBLAS_COMPUTE_32F_EMULATED_16BFX9 = 78,
    CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT = 79
};

/* libraryPropertyType */
enum { LIBRARY_MAJOR = 0, LIBRARY_MINOR = 1, LIBRARY_PATCH = 2 };

#endif

/*
 * cuBLAS as a ceiling: opened if it is found, declared by hand, never linked.
 *
 * Source: cuBLAS Library, cublasGemmEx; library_types.h and cublas_api.h for the numbers of types.
 * One thread. Internal: not installed.
 */
#ifndef KN_CUBLAS_H
#define KN_CUBLAS_H

#include "gemm/gemm.h"

struct kn_cublas;

/* Opens a library by its path; NULL: by the names libcublas.so.13 and .12. It works on the stream.
 * Returns NULL if there is none, or if it does not work on this device. */
struct kn_cublas *kn_cublas_open(const char *path, struct tol_stream *stream);
void kn_cublas_close(struct kn_cublas *cublas);

/* Queues the same product by cuBLAS. TOL_UNSUPPORTED: cuBLAS refused; the message has its code.
 * Batches and offsets are not supported. */
tol_status kn_cublas_gemm(struct kn_cublas *cublas, const struct kn_gemm *gemm);

#endif

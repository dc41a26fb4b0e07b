/*
 * Copies as the driver describes them. Graph nodes have the same.
 */
#ifndef CUDART_COPY_H
#define CUDART_COPY_H

#include "cudart_types.h"

/* A copy of the runtime's as the driver has it. cudaErrorInvalidMemcpyDirection: the kind is none;
 * cudaErrorInvalidPitchValue: a row is longer than its pitch. */
cudaError_t cudart_copy_3d(const cudaMemcpy3DParms *from, CUDA_MEMCPY3D *to);
cudaError_t cudart_copy_1d(void *destination, const void *source, size_t bytes, cudaMemcpyKind kind,
                           CUDA_MEMCPY3D *to);

/* And back. */
void cudart_copy_runtime(const CUDA_MEMCPY3D *from, cudaMemcpy3DParms *to);

/* The address in a variable that a copy of so many bytes from offset on has, in the current
 * context. cudaErrorInvalidValue: the copy is beyond its end. */
cudaError_t cudart_copy_symbol(const void *symbol, size_t offset, size_t bytes, void **address);

#endif

/*
 * The driver's descriptions of copies, also used by graph nodes.
 */
#ifndef CUDART_COPY_H
#define CUDART_COPY_H

#include "cudart/cudart_types.h"

#include <stdbool.h>

/* The kinds of memory of a copy's two ends. */
struct cudart_sides {
    CUmemorytype from, to;
};

/* Those of a copy whose ends may be CUDA arrays. false: the kind is invalid, or puts an array in
 * host memory. */
bool cudart_copy_sides(cudaMemcpyKind kind, bool to_array, bool from_array,
                       struct cudart_sides *sides);

/* Converts the runtime's description of a copy to the driver's. If an array takes part, the width
 * and the place in it are in elements. cudaErrorInvalidMemcpyDirection: as above;
 * cudaErrorInvalidPitchValue: a row is longer than its pitch; cudaErrorInvalidValue: an end is
 * memory and an array, or two arrays have elements of different sizes; or the driver's error. */
cudaError_t cudart_copy_3d(const cudaMemcpy3DParms *from, CUDA_MEMCPY3D *to);
cudaError_t cudart_copy_1d(void *destination, const void *source, size_t bytes, cudaMemcpyKind kind,
                           CUDA_MEMCPY3D *to);

/* And back. Fails if an array was destroyed. */
cudaError_t cudart_copy_runtime(const CUDA_MEMCPY3D *from, cudaMemcpy3DParms *to);

/* The address of offset in a variable in the current context, for a copy of this many bytes.
 * cudaErrorInvalidValue: the copy exceeds the variable. */
cudaError_t cudart_copy_symbol(const void *symbol, size_t offset, size_t bytes, void **address);

#endif

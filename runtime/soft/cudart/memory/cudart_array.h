/*
 * CUDA arrays: the runtime's channel descriptors and the driver's formats, and the size of an
 * array's elements. Each needs a driver that is ready (cudart_context).
 *
 * Source: "Data types used by CUDA Runtime" and "Data types used by CUDA driver" of CUDA 13.0.
 */
#ifndef CUDART_ARRAY_H
#define CUDART_ARRAY_H

#include "cudart/cudart_types.h"

/* The driver's format and number of channels. cudaErrorInvalidChannelDescriptor: there is no such
 * format; cudaErrorNotSupported: planar, block-compressed and packed formats. */
cudaError_t cudart_channel_format(const cudaChannelFormatDesc *desc, CUarray_format *format,
                                  unsigned *channels);

/* And back. cudaErrorNotSupported: the same. */
cudaError_t cudart_channel_of(CUarray_format format, unsigned channels,
                              cudaChannelFormatDesc *desc);

/* The bytes of an element. shape, which may be NULL, receives the driver's description. The error
 * is the driver's, or that of cudart_channel_of. */
cudaError_t cudart_array_element(cudaArray_const_t array, CUDA_ARRAY3D_DESCRIPTOR *shape,
                                 size_t *bytes);

#endif

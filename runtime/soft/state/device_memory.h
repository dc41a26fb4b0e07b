/*
 * Device memory: allocations charged to a device, and their release.
 *
 * Memory is charged in granules, so that cuMemGetInfo is exact: an allocation lowers its value by
 * the rounded bytes, and the free raises it by the same.
 */
#ifndef SOFT_DEVICE_MEMORY_H
#define SOFT_DEVICE_MEMORY_H

#include "driver_state.h"

/* Allocates in a context. CUDA_ERROR_OUT_OF_MEMORY: the device or the host is out of memory. */
CUresult soft_memory_alloc(struct soft_context *context, uint64_t bytes, CUdeviceptr *address);

/* The same for a CUDA array's elements. */
CUresult soft_memory_alloc_array(struct soft_context *context, uint64_t bytes, uint64_t *address);

/* Host memory that devices may use: new, or the program's own if host is given. */
CUresult soft_memory_alloc_host(struct soft_context *context, uint64_t bytes, unsigned flags,
                                void **host);

/* Uncharges what was removed from the space. */
void soft_memory_refund(const struct soft_allocation *was);

/* Frees a context's memory or a pool's at once, even if it is in use. */
void soft_memory_free(CUdeviceptr address);

/* Frees all that a context has. */
void soft_memory_free_all(unsigned slot);

#endif

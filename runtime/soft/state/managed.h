/*
 * Managed: memory that host and devices use under one address, and the program's advice. The bytes
 * are the host's and never move, so advice only changes query results. Thread-safe.
 *
 * Source: "Unified Memory" of the CUDA Programming Guide; cuMemAdvise, cuMemPrefetchAsync and
 * cuMemRangeGetAttribute of the CUDA Driver API 13.0.
 */
#ifndef SOFT_MANAGED_H
#define SOFT_MANAGED_H

#include "driver_state.h"

#include "base/abi.h"

/* Macros in cuda.h, not enumerators. */
#ifndef CU_DEVICE_CPU
#define CU_DEVICE_CPU (-1)
#define CU_DEVICE_INVALID (-2)
#endif

/* Allocates. It is not charged to the device, whose memory it may exceed, as on a GPU. */
CUresult soft_managed_alloc(struct soft_context *context, uint64_t bytes, unsigned flags,
                            CUdeviceptr *address);

/* Discards the advice for freed memory. */
void soft_managed_forget(CUdeviceptr address);

/* A device by its number, CU_DEVICE_CPU or a NUMA node as a location. false: there is none such. */
bool soft_managed_place(int device, CUmemLocation *location);
bool soft_managed_is_place(const CUmemLocation *location);

/* Sets the advice for the pages of a range. */
CUresult soft_managed_advise(CUdeviceptr address, uint64_t bytes, CUmem_advise advice,
                             const CUmemLocation *location);
CUresult soft_managed_prefetch(CUdeviceptr address, uint64_t bytes, const CUmemLocation *location);

/* The value of a range on which all its pages agree. bytes_of is the size of the value. */
CUresult soft_managed_ask(CUdeviceptr address, uint64_t bytes, CUmem_range_attribute attribute,
                          void *answer, size_t bytes_of);

#endif

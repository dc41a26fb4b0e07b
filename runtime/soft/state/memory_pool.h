/*
 * Memory pools: stream-ordered allocation.
 *
 * A pool reserves memory of its device in chunks and allocates from them. Freed memory stays
 * reserved until a synchronization finds more of it than the release threshold, or until the
 * program trims the pool. An allocation has its address at once; a free takes effect when its
 * stream reaches it.
 */
#ifndef SOFT_MEMORY_POOL_H
#define SOFT_MEMORY_POOL_H

#include "driver_state.h"

struct soft_pool {
    struct soft_device *device;
    CUmemPoolProps properties;
    bool destroyed;              /* freed when nothing is left of it */
    bool on_host;                /* the host uses its memory too, under the same address */
    bool imported;               /* another process's: it has the allocations of that process */
    struct soft_backing *shared; /* its shared file, if it is exported; or NULL */
    uint64_t used, used_high, reserved, reserved_high, threshold, bytes_max;
    uint64_t unseen; /* freed in stream order, without a host wait since: a GPU's driver does not
                      * release such memory, not even if a query returned that all is done */
    int reuse[3]; /* CU_MEMPOOL_ATTR_REUSE_: stored without effect, because streams share a space */
    uint32_t readers, writers;      /* a bit for each device */
    struct soft_pool *next, **link; /* in the list of all */
};

/* Makes a pool and registers it; NULL without memory. The caller holds soft_lock. */
struct soft_pool *soft_pool_new(struct soft_device *device, const CUmemPoolProps *properties);

/* Ends a pool: at once, or when its last allocation is freed. The caller holds soft_lock. */
void soft_pool_drop(struct soft_pool *pool);

/* Whether a handle is a live pool. The caller holds soft_lock. */
bool soft_pool_is(const void *handle);

/* Allocates. CUDA_ERROR_OUT_OF_MEMORY: the pool or the device is full. */
CUresult soft_pool_alloc(struct soft_pool *pool, uint64_t bytes, CUdeviceptr *address);

/* The same for a fully specified allocation, including its address. */
CUresult soft_pool_alloc_at(struct soft_pool *pool, const struct soft_allocation *wanted);

/* Adds another process's allocation to an imported pool; takes over the bytes. */
CUresult soft_pool_import(struct soft_pool *pool, struct soft_backing *backing,
                          CUdeviceptr *address);

/* Frees what begins at an address. */
void soft_pool_free(CUdeviceptr address);

/* Returns a pool's unused memory to its device, down to this many bytes. The caller holds
 * soft_lock. */
void soft_pool_trim(struct soft_pool *pool, uint64_t bytes);

/* The same for all pools of a device: at a synchronization, down to each release threshold; or
 * completely, when the device is out of memory. */
void soft_pools_release(const struct soft_device *device, bool all_of_it);

#endif

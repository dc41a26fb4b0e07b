/*
 * Reserves, allocates and frees.
 */
#include "memory_pool.h"

#include "base/round_up.h"
#include "handle_set.h"
#include "memory/shared_bytes.h"

#include <stdlib.h>

enum { CHUNK_BYTES = 2 << 20 };

static struct soft_pool *all;

/* Whether the pool's memory is on its device. */
static bool is_charged(const struct soft_pool *pool) {
    return !pool->on_host && !pool->imported;
}

static uint64_t in_chunks(uint64_t bytes) {
    return soft_round_up(bytes, CHUNK_BYTES);
}

struct soft_pool *soft_pool_new(struct soft_device *device, const CUmemPoolProps *properties) {
    struct soft_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL || !soft_handle_add(SOFT_HANDLE_POOL, pool)) {
        free(pool);
        return NULL;
    }
    pool->device = device;
    pool->properties = *properties;
    pool->bytes_max = properties->maxSize != 0 ? in_chunks(properties->maxSize) : UINT64_MAX;
    for (int i = 0; i < 3; i++) pool->reuse[i] = 1;
    pool->on_host = properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    /* Only the host may use host memory until the program grants more. */
    pool->readers = pool->writers = pool->on_host ? 0 : 1u << device->ordinal;
    pool->next = all;
    pool->link = &all;
    if (all != NULL) all->link = &pool->next;
    all = pool;
    return pool;
}

bool soft_pool_is(const void *handle) {
    return soft_handle_is(SOFT_HANDLE_POOL, handle);
}

void soft_pool_trim(struct soft_pool *pool, uint64_t bytes) {
    uint64_t kept = in_chunks(pool->used + pool->unseen);
    if (pool->reserved <= bytes) return;
    if (kept < bytes) kept = in_chunks(bytes);
    if (pool->reserved <= kept) return;
    if (is_charged(pool)) pool->device->memory_used -= pool->reserved - kept;
    pool->reserved = kept;
}

/* Frees a destroyed pool without allocations. */
static void end_if_unused(struct soft_pool *pool) {
    if (!pool->destroyed || pool->used > 0) return;
    pool->unseen = 0;
    soft_pool_trim(pool, 0);
    *pool->link = pool->next;
    if (pool->next != NULL) pool->next->link = pool->link;
    soft_backing_release(pool->shared);
    free(pool);
}

void soft_pool_drop(struct soft_pool *pool) {
    soft_handle_remove(SOFT_HANDLE_POOL, pool);
    if (pool->device->pool == pool) pool->device->pool = pool->device->usual_pool;
    pool->destroyed = true;
    end_if_unused(pool);
}

void soft_pools_release(const struct soft_device *device, bool all_of_it) {
    pthread_mutex_lock(&soft_lock);
    for (struct soft_pool *pool = all; pool != NULL; pool = pool->next) {
        if (pool->device != device) continue;
        pool->unseen = 0;
        soft_pool_trim(pool, all_of_it ? 0 : pool->threshold);
    }
    pthread_mutex_unlock(&soft_lock);
}

/* Makes a pool reserve this many bytes in all. */
static bool memory_pool_reserve(struct soft_pool *pool, uint64_t bytes) {
    struct soft_device *device = pool->device;
    uint64_t more = bytes - pool->reserved;
    if (bytes > pool->bytes_max) return false;
    if (!is_charged(pool)) more = 0;
    if (more > device->memory_given - device->memory_used) {
        /* Memory that other pools hold in reserve is released first. */
        for (struct soft_pool *other = all; other != NULL; other = other->next) {
            if (other->device != device || other == pool) continue;
            other->unseen = 0;
            soft_pool_trim(other, 0);
        }
    }
    if (more > device->memory_given - device->memory_used) return false;
    device->memory_used += more;
    pool->reserved = bytes;
    if (bytes > pool->reserved_high) pool->reserved_high = bytes;
    return true;
}

/* Takes bytes from a pool's reserve, or reserves more. */
static bool memory_pool_take(struct soft_pool *pool, uint64_t bytes) {
    uint64_t used = pool->used + bytes;
    if (used < bytes || used > UINT64_MAX / 2) return false;
    if (used > pool->reserved && !memory_pool_reserve(pool, in_chunks(used))) return false;
    pool->used = used;
    if (used > pool->used_high) pool->used_high = used;
    if (pool->unseen > pool->reserved - used) pool->unseen = pool->reserved - used;
    return true;
}

static void memory_pool_put_back(struct soft_pool *pool, uint64_t bytes) {
    pool->used -= bytes;
    pool->unseen += bytes;
    end_if_unused(pool);
}

/* Separate bytes for memory of the host or another process; otherwise the space allocates them. */
static bool take_bytes(const struct soft_pool *pool, struct soft_allocation *wanted) {
    bool shares = pool->properties.handleTypes != CU_MEM_HANDLE_TYPE_NONE;
    struct soft_shared_note note = {.kind = SOFT_SHARED_MEMORY, .device = wanted->device};
    if (wanted->backing == NULL) {
        if (!shares && !pool->on_host) return true;
        wanted->backing =
            shares ? soft_shared_new(wanted->bytes, &note) : soft_backing_new(wanted->bytes);
        if (wanted->backing == NULL) return false;
    }
    wanted->host = wanted->backing->host;
    if (pool->on_host) wanted->address = (uint64_t)(uintptr_t)wanted->host;
    return true;
}

/* Allocates; the space finds the address unless one is wanted. */
static CUresult memory_pool_alloc(struct soft_pool *pool, const struct soft_allocation *like,
                                  CUdeviceptr *address) {
    struct soft_allocation own = *like, *wanted = &own;
    if (wanted->bytes > UINT64_MAX / 2) return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t rounded = soft_memory_rounded(wanted->bytes);
    pthread_mutex_lock(&soft_lock);
    bool taken = memory_pool_take(pool, rounded);
    pthread_mutex_unlock(&soft_lock);
    if (!taken) return CUDA_ERROR_OUT_OF_MEMORY;
    const struct soft_allocation *allocation =
        take_bytes(pool, wanted) ? soft_space_alloc(wanted, SOFT_GRANULE_BYTES) : NULL;
    if (allocation == NULL) {
        pthread_mutex_lock(&soft_lock);
        memory_pool_put_back(pool, rounded);
        pthread_mutex_unlock(&soft_lock);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = allocation->address;
    return CUDA_SUCCESS;
}

CUresult soft_pool_alloc_at(struct soft_pool *pool, const struct soft_allocation *wanted) {
    CUdeviceptr address = 0;
    return memory_pool_alloc(pool, wanted, &address);
}

static CUresult alloc_of(struct soft_pool *pool, uint64_t bytes, struct soft_backing *backing,
                         CUdeviceptr *address) {
    const struct soft_allocation wanted = {.bytes = bytes,
                                           .kind = SOFT_KIND_POOL,
                                           .device = pool->device->ordinal,
                                           .slot = SOFT_SLOT_NONE,
                                           .readers = pool->readers,
                                           .writers = pool->writers,
                                           .source = pool,
                                           .backing = backing};
    return memory_pool_alloc(pool, &wanted, address);
}

CUresult soft_pool_alloc(struct soft_pool *pool, uint64_t bytes, CUdeviceptr *address) {
    return alloc_of(pool, bytes, NULL, address);
}

CUresult soft_pool_import(struct soft_pool *pool, struct soft_backing *backing,
                          CUdeviceptr *address) {
    return alloc_of(pool, backing->bytes, backing, address);
}

void soft_pool_free(CUdeviceptr address) {
    struct soft_allocation was;
    if (!soft_space_free(address, 1u << SOFT_KIND_POOL, &was)) return;
    pthread_mutex_lock(&soft_lock);
    memory_pool_put_back(was.source, soft_memory_rounded(was.bytes));
    pthread_mutex_unlock(&soft_lock);
}

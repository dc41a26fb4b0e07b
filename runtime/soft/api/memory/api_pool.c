/*
 * Stream-ordered memory. As in "Stream Ordered Memory Allocator" of the CUDA Driver API 13.0.
 */
#include "graph/capture.h"
#include "api/export.h"
#include "base/soft_clock.h"
#include "state/graph_memory.h"
#include "state/handle_set.h"
#include "state/managed.h"
#include "state/memory_pool.h"
#include "queue/stream_fault.h"
#include "graph/submit.h"

#include <string.h>

static CUresult pool_find(CUmemoryPool handle, struct soft_pool **pool) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    bool known = soft_pool_is(handle);
    pthread_mutex_unlock(&soft_lock);
    *pool = (struct soft_pool *)handle;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult pool_find_device(CUdevice dev, const void *answer, struct soft_device **device) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (answer == NULL) return CUDA_ERROR_INVALID_VALUE;
    *device = soft_device_of(dev);
    return *device != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* ---- a device's pools ---- */

EXPORT(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice dev)) {
    struct soft_device *device = NULL;
    CUresult result = pool_find_device(dev, pool, &device);
    if (result == CUDA_SUCCESS) *pool = (CUmemoryPool)device->usual_pool;
    return result;
}

EXPORT(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice dev)) {
    struct soft_device *device = NULL;
    CUresult result = pool_find_device(dev, pool, &device);
    if (result == CUDA_SUCCESS) *pool = (CUmemoryPool)device->pool;
    return result;
}

EXPORT(cuDeviceSetMemPool, (CUdevice dev, CUmemoryPool handle)) {
    struct soft_device *device = NULL;
    struct soft_pool *pool = NULL;
    CUresult result = pool_find_device(dev, &device, &device);
    if (result == CUDA_SUCCESS) result = pool_find(handle, &pool);
    if (result != CUDA_SUCCESS) return result;
    if (pool->device != device || pool->on_host || pool->imported) return CUDA_ERROR_INVALID_VALUE;
    device->pool = pool;
    return CUDA_SUCCESS;
}

/* Of the kinds of memory that CUDA 13 has pools for, only device memory is supported. */
static CUresult check_location(const CUmemLocation *location, CUmemAllocationType type) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (location == NULL) return CUDA_ERROR_INVALID_VALUE;
    bool known = location->type >= CU_MEM_LOCATION_TYPE_DEVICE &&
                 location->type <= CU_MEM_LOCATION_TYPE_HOST_NUMA;
    if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) return CUDA_ERROR_NOT_SUPPORTED;
    if (!known || type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT(cuMemGetDefaultMemPool,
       (CUmemoryPool * pool, CUmemLocation *location, CUmemAllocationType type)) {
    CUresult result = check_location(location, type);
    return result != CUDA_SUCCESS ? result : soft_cuDeviceGetDefaultMemPool(pool, location->id);
}

EXPORT(cuMemGetMemPool, (CUmemoryPool * pool, CUmemLocation *location, CUmemAllocationType type)) {
    CUresult result = check_location(location, type);
    return result != CUDA_SUCCESS ? result : soft_cuDeviceGetMemPool(pool, location->id);
}

EXPORT(cuMemSetMemPool, (CUmemLocation * location, CUmemAllocationType type, CUmemoryPool pool)) {
    CUresult result = check_location(location, type);
    return result != CUDA_SUCCESS ? result : soft_cuDeviceSetMemPool(location->id, pool);
}

/* ---- pools ---- */

EXPORT(cuMemPoolCreate, (CUmemoryPool * handle, const CUmemPoolProps *properties)) {
    struct soft_device *device = NULL;
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL || properties == NULL) return CUDA_ERROR_INVALID_VALUE;
    const CUmemLocation *location = &properties->location;
    bool on_host = location->type != CU_MEM_LOCATION_TYPE_DEVICE && soft_managed_is_place(location);
    result = on_host && properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED
                 ? CUDA_SUCCESS
                 : check_location(location, properties->allocType);
    if (result != CUDA_SUCCESS) return result;
    device = soft_device_of(on_host ? 0 : location->id);
    if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE &&
        properties->handleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    pthread_mutex_lock(&soft_lock);
    struct soft_pool *pool = soft_pool_new(device, properties);
    pthread_mutex_unlock(&soft_lock);
    if (pool == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = (CUmemoryPool)pool;
    return CUDA_SUCCESS;
}

EXPORT(cuMemPoolDestroy, (CUmemoryPool handle)) {
    struct soft_pool *pool = NULL;
    CUresult result = pool_find(handle, &pool);
    if (result != CUDA_SUCCESS) return result;
    if (pool == pool->device->usual_pool) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    soft_pool_drop(pool);
    pthread_mutex_unlock(&soft_lock);
    return CUDA_SUCCESS;
}

/* The number of an attribute of 64 bits, or NULL. */
static uint64_t *pool_number_of(struct soft_pool *pool, CUmemPool_attribute attribute) {
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return &pool->threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return &pool->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return &pool->reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return &pool->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return &pool->used_high;
    default:
        return NULL;
    }
}

static int *reuse_of(struct soft_pool *pool, CUmemPool_attribute attribute) {
    bool is_reuse = attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
                    attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
    int first = CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES;
    return is_reuse ? &pool->reuse[attribute - first] : NULL;
}

EXPORT(cuMemPoolGetAttribute, (CUmemoryPool handle, CUmemPool_attribute attribute, void *value)) {
    struct soft_pool *pool = NULL;
    CUresult result = pool_find(handle, &pool);
    if (result != CUDA_SUCCESS) return result;
    const uint64_t *number = pool_number_of(pool, attribute);
    const int *reuse = reuse_of(pool, attribute);
    if (value == NULL || (number == NULL && reuse == NULL)) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    if (number != NULL) memcpy(value, number, sizeof *number);
    if (reuse != NULL) memcpy(value, reuse, sizeof *reuse);
    pthread_mutex_unlock(&soft_lock);
    return CUDA_SUCCESS;
}

EXPORT(cuMemPoolSetAttribute, (CUmemoryPool handle, CUmemPool_attribute attribute, void *value)) {
    struct soft_pool *pool = NULL;
    uint64_t wanted = 0;
    CUresult result = pool_find(handle, &pool);
    if (result != CUDA_SUCCESS) return result;
    uint64_t *number = pool_number_of(pool, attribute);
    int *reuse = reuse_of(pool, attribute);
    if (value == NULL || (number == NULL && reuse == NULL)) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    if (reuse != NULL) {
        memcpy(reuse, value, sizeof *reuse);
    } else {
        memcpy(&wanted, value, sizeof wanted);
        /* High-water marks can be reset to the current value; the program cannot set the rest. */
        switch (attribute) {
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            pool->threshold = wanted;
            break;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
            if (wanted != 0) result = CUDA_ERROR_INVALID_VALUE;
            if (wanted == 0) pool->reserved_high = pool->reserved;
            break;
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            if (wanted != 0) result = CUDA_ERROR_INVALID_VALUE;
            if (wanted == 0) pool->used_high = pool->used;
            break;
        default:
            result = CUDA_ERROR_INVALID_VALUE;
            break;
        }
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

EXPORT(cuMemPoolTrimTo, (CUmemoryPool handle, size_t bytes)) {
    struct soft_pool *pool = NULL;
    CUresult result = pool_find(handle, &pool);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    soft_pool_trim(pool, bytes);
    pthread_mutex_unlock(&soft_lock);
    return CUDA_SUCCESS;
}

/* A pool's own device can always use it. */
static CUresult pool_check_access(const struct soft_pool *pool, const CUmemAccessDesc *access) {
    if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (soft_device_of(access->location.id) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    bool own = !pool->on_host && access->location.id == pool->device->ordinal;
    bool known = access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
                 (!own && (access->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                           access->flags == CU_MEM_ACCESS_FLAGS_PROT_READ));
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT(cuMemPoolSetAccess, (CUmemoryPool handle, const CUmemAccessDesc *accesses, size_t count)) {
    struct soft_pool *pool = NULL;
    CUresult result = pool_find(handle, &pool);
    if (result != CUDA_SUCCESS) return result;
    if (accesses == NULL || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = pool_check_access(pool, &accesses[i]);
    }
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    for (size_t i = 0; i < count; i++) {
        uint32_t bit = 1u << accesses[i].location.id;
        bool reads = accesses[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
        bool writes = accesses[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        pool->readers = reads ? pool->readers | bit : pool->readers & ~bit;
        pool->writers = writes ? pool->writers | bit : pool->writers & ~bit;
    }
    soft_space_allow_pool(pool, pool->readers, pool->writers);
    pthread_mutex_unlock(&soft_lock);
    return CUDA_SUCCESS;
}

EXPORT(cuMemPoolGetAccess,
       (CUmemAccess_flags * flags, CUmemoryPool handle, CUmemLocation *location)) {
    struct soft_pool *pool = NULL;
    CUresult result = pool_find(handle, &pool);
    if (result != CUDA_SUCCESS) return result;
    if (flags == NULL || location == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (pool->on_host && location->type != CU_MEM_LOCATION_TYPE_DEVICE &&
        soft_managed_is_place(location)) {
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        return CUDA_SUCCESS;
    }
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (soft_device_of(location->id) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    bool reads = pool->readers >> location->id & 1, writes = pool->writers >> location->id & 1;
    *flags = writes  ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : reads ? CU_MEM_ACCESS_FLAGS_PROT_READ
                     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

/* ---- allocations ---- */

/* A stream has its own context: only a default stream needs the calling thread's. */
static CUresult pool_find_stream(CUstream handle, struct soft_stream **stream) {
    struct soft_context *context = NULL;
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    bool own = soft_handle_is(SOFT_HANDLE_STREAM, handle);
    if (own) {
        *stream = (struct soft_stream *)handle;
        result = (*stream)->context->error;
    }
    pthread_mutex_unlock(&soft_lock);
    if (!own) return soft_stream_find(handle, &context, stream);
    return result == CUDA_SUCCESS ? soft_stream_fault_ask(*stream) : result;
}

/* In a stream that is being captured an allocation becomes a node, of memory that is the graph's.
 * */
static CUresult capture_alloc(struct soft_stream *stream, const struct soft_pool *pool,
                              size_t bytesize, CUdeviceptr *dptr) {
    struct soft_node_content content;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    params.alloc.poolProps = pool->properties;
    params.alloc.bytesize = bytesize;
    CUresult result = soft_content_of_params(&params, &content);
    if (result != CUDA_SUCCESS) return result;
    CUdeviceptr address = content.params.alloc.dptr;
    pthread_mutex_lock(&soft_lock);
    result = stream->capture != NULL ? soft_capture_add(stream, &content)
                                     : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (result != CUDA_SUCCESS) soft_content_clear(&content);
    pthread_mutex_unlock(&soft_lock);
    if (result == CUDA_SUCCESS) *dptr = address;
    return result;
}

/* If memory is short, streams execute their work up to their pending frees, so that this memory can
 * be reused. A kernel that does not end is abandoned after a second. */
static CUresult alloc_in_order(struct soft_stream *stream, struct soft_pool *pool, size_t bytesize,
                               CUdeviceptr *dptr) {
    CUresult result = soft_pool_alloc(pool, bytesize, dptr);
    if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
    const uint64_t end_ns = soft_now_ns() + 1000000000u;
    bool more = true;
    while (result == CUDA_ERROR_OUT_OF_MEMORY && more) {
        more = soft_queue_query_context(stream->context) == CUDA_ERROR_NOT_READY &&
               soft_now_ns() < end_ns;
        result = soft_pool_alloc(pool, bytesize, dptr);
    }
    return result;
}

static CUresult pool_alloc(struct soft_stream *stream, struct soft_pool *pool, size_t bytesize,
                           CUdeviceptr *dptr) {
    bool capturing = false;
    if (dptr == NULL) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    CUresult result = soft_capture_check(stream, &capturing);
    pthread_mutex_unlock(&soft_lock);
    if (result != CUDA_SUCCESS) return result;
    if (bytesize == 0) { /* zero bytes give address 0; a node must have some */
        if (!capturing) *dptr = 0;
        return capturing ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    }
    return capturing ? capture_alloc(stream, pool, bytesize, dptr)
                     : alloc_in_order(stream, pool, bytesize, dptr);
}

EXPORT(cuMemAllocFromPoolAsync,
       (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool handle, CUstream stream_handle)) {
    struct soft_stream *stream = NULL;
    struct soft_pool *pool = NULL;
    CUresult result = pool_find_stream(stream_handle, &stream);
    if (result == CUDA_SUCCESS) result = pool_find(handle, &pool);
    if (result != CUDA_SUCCESS) return result;
    return pool->imported ? CUDA_ERROR_INVALID_VALUE : pool_alloc(stream, pool, bytesize, dptr);
}

EXPORT(cuMemAllocAsync, (CUdeviceptr * dptr, size_t bytesize, CUstream stream_handle)) {
    struct soft_stream *stream = NULL;
    CUresult result = pool_find_stream(stream_handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    return pool_alloc(stream, stream->context->device->pool, bytesize, dptr);
}

/* A graph's memory is freed by a node in a capture, and outside one if a launch has allocated it.
 * */
static CUresult free_of_graph(const struct soft_stream *stream, CUdeviceptr dptr, bool *is_graphs) {
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&soft_lock);
    struct soft_graph_memory *memory = soft_graph_memory_at(dptr);
    *is_graphs = memory != NULL;
    bool capturing = stream->capture != NULL;
    if (capturing && memory == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (!capturing && memory != NULL) {
        if (!memory->out) result = CUDA_ERROR_INVALID_VALUE;
        memory->out = false;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

EXPORT(cuMemFreeAsync, (CUdeviceptr dptr, CUstream stream_handle)) {
    struct soft_stream *stream = NULL;
    struct soft_allocation found;
    bool is_graphs = false;
    CUresult result = pool_find_stream(stream_handle, &stream);
    if (result == CUDA_SUCCESS && dptr == 0) return CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) result = free_of_graph(stream, dptr, &is_graphs);
    if (result != CUDA_SUCCESS) return result;
    /* Claimed at once, so that a second free is an error however far the stream is. */
    const unsigned kinds = 1u << SOFT_KIND_POOL | 1u << SOFT_KIND_DEVICE;
    if (!is_graphs && !soft_space_claim(dptr, kinds, &found)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct soft_task task = {.kind = SOFT_TASK_FREE, .is.address = dptr};
    return soft_submit(stream, &task, false);
}

/*
 * Pools and their memory between processes. As in "Stream Ordered Memory Allocator" of the CUDA
 * Driver API 13.0.
 *
 * A pool is exported to another process as a file, and each of its allocations by a name.
 */
#include "api/export.h"
#include "memory/shared_bytes.h"
#include "state/handle_set.h"
#include "state/memory_pool.h"

#include <string.h>
#include <unistd.h>

static CUresult pool_share_find(CUmemoryPool handle, struct soft_pool **pool) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    bool known = soft_pool_is(handle);
    pthread_mutex_unlock(&soft_lock);
    *pool = (struct soft_pool *)handle;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_type(CUmemAllocationHandleType type, unsigned long long flags) {
    if (type == CU_MEM_HANDLE_TYPE_NONE || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? CUDA_SUCCESS
                                                            : CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT(cuMemPoolExportToShareableHandle,
       (void *shareable, CUmemoryPool handle, CUmemAllocationHandleType type,
        unsigned long long flags)) {
    struct soft_pool *pool = NULL;
    CUresult result = pool_share_find(handle, &pool);
    if (result == CUDA_SUCCESS) result = check_type(type, flags);
    if (result != CUDA_SUCCESS) return result;
    if (shareable == NULL || pool->imported || pool->properties.handleTypes != type) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct soft_shared_note note = {.kind = SOFT_SHARED_POOL, .device = pool->device->ordinal};
    _Static_assert(sizeof pool->properties <= sizeof note.more, "the note has room for them");
    memcpy(note.more, &pool->properties, sizeof pool->properties);
    pthread_mutex_lock(&soft_lock);
    if (pool->shared == NULL) pool->shared = soft_shared_new(1, &note);
    int file = pool->shared != NULL ? dup(pool->shared->file) : -1;
    pthread_mutex_unlock(&soft_lock);
    if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    memcpy(shareable, &file, sizeof file);
    return CUDA_SUCCESS;
}

EXPORT(cuMemPoolImportFromShareableHandle,
       (CUmemoryPool * handle, void *shareable, CUmemAllocationHandleType type,
        unsigned long long flags)) {
    struct soft_shared_note note;
    CUmemPoolProps properties;
    CUresult result = soft_state_check();
    if (result == CUDA_SUCCESS) result = check_type(type, flags);
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL) return CUDA_ERROR_INVALID_VALUE;
    struct soft_backing *backing =
        soft_shared_map((int)(intptr_t)shareable, SOFT_SHARED_POOL, &note);
    if (backing == NULL) return CUDA_ERROR_INVALID_VALUE;
    soft_backing_release(backing);
    struct soft_device *device = soft_device_of(note.device);
    if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
    memcpy(&properties, note.more, sizeof properties);
    pthread_mutex_lock(&soft_lock);
    struct soft_pool *pool = soft_pool_new(device, &properties);
    if (pool != NULL) pool->imported = true;
    pthread_mutex_unlock(&soft_lock);
    if (pool == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = (CUmemoryPool)pool;
    return CUDA_SUCCESS;
}

EXPORT(cuMemPoolExportPointer, (CUmemPoolPtrExportData * data, CUdeviceptr pointer)) {
    struct soft_allocation found;
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (data == NULL || !soft_space_find(pointer, &found) || found.kind != SOFT_KIND_POOL ||
        found.address != pointer || found.backing == NULL || !found.backing->is_shared) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const struct soft_shared_name name =
        soft_shared_name(found.backing, SOFT_SHARED_MEMORY, found.device);
    _Static_assert(sizeof name == sizeof *data, "a name fills the data");
    memcpy(data, &name, sizeof name);
    return CUDA_SUCCESS;
}

EXPORT(cuMemPoolImportPointer,
       (CUdeviceptr * pointer, CUmemoryPool handle, CUmemPoolPtrExportData *data)) {
    struct soft_pool *pool = NULL;
    struct soft_shared_name name;
    struct soft_shared_note note;
    bool is_own = false;
    CUresult result = pool_share_find(handle, &pool);
    if (result != CUDA_SUCCESS) return result;
    if (pointer == NULL || data == NULL || !pool->imported) return CUDA_ERROR_INVALID_VALUE;
    memcpy(&name, data, sizeof name);
    int file = soft_shared_open(&name, SOFT_SHARED_MEMORY, &is_own);
    if (file < 0) return CUDA_ERROR_INVALID_VALUE;
    struct soft_backing *backing = soft_shared_map(file, SOFT_SHARED_MEMORY, &note);
    close(file);
    return backing != NULL ? soft_pool_import(pool, backing, pointer) : CUDA_ERROR_OUT_OF_MEMORY;
}

/*
 * Host memory that devices use: allocated, or registered. As in "Memory Management" of the CUDA
 * Driver API 13.0.
 *
 * Addressing is unified: a device uses it under the host's address.
 */
#include "state/contexts.h"
#include "state/device_memory.h"
#include "api/export.h"
#include "queue/queue.h"

#include <sys/mman.h>
#include <unistd.h>

static CUresult host_alloc(void **pp, size_t bytesize, unsigned flags) {
    struct soft_context *context = NULL;
    void *host = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    const unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (pp == NULL || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
    *pp = NULL;
    if (bytesize == 0) return CUDA_SUCCESS; /* unlike cuMemAlloc: nothing, and NULL is freed */
    result = soft_memory_alloc_host(context, bytesize, flags, &host);
    if (result == CUDA_SUCCESS) *pp = host;
    return result;
}

EXPORT(cuMemHostAlloc, (void **pp, size_t bytesize, unsigned int flags)) {
    return host_alloc(pp, bytesize, flags);
}

EXPORT(cuMemAllocHost_v2, (void **pp, size_t bytesize)) {
    return host_alloc(pp, bytesize, 0);
}

/* Frees host memory of a kind that begins at p, once no work can use it. */
static CUresult host_end(void *p, enum soft_kind kind, CUresult otherwise) {
    struct soft_context *context = NULL;
    struct soft_allocation was;
    uint64_t address = (uint64_t)(uintptr_t)p;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (p == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (!soft_space_find(address, &was) || was.kind != kind) return otherwise;
    if (was.address != address) return CUDA_ERROR_INVALID_VALUE;
    soft_queue_wait_device(-1); /* every device may use it */
    result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    return soft_space_free(address, 1u << kind, NULL) ? CUDA_SUCCESS : otherwise;
}

EXPORT(cuMemFreeHost, (void *p)) {
    struct soft_context *context = NULL;
    if (p == NULL) return soft_context_current(&context);
    return host_end(p, SOFT_KIND_PINNED, CUDA_ERROR_INVALID_VALUE);
}

/* Whether all pages of a range are mapped, by mincore. */
static bool is_mapped(uint64_t address, size_t bytes) {
    enum { PAGES = 1024 };
    unsigned char present[PAGES];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), host_end = address + bytes;
    for (uint64_t at = address / page * page; at < host_end; at += PAGES * page) {
        size_t some = (size_t)(host_end - at < PAGES * page ? host_end - at : PAGES * page);
        if (mincore((void *)(uintptr_t)at, some, present) != 0) return false;
    }
    return true;
}

EXPORT(cuMemHostRegister_v2, (void *p, size_t bytesize, unsigned int flags)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                           CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    uint64_t address = (uint64_t)(uintptr_t)p;
    if (p == NULL || bytesize == 0 || (flags & ~known) != 0 || address + bytesize < address ||
        soft_space_holds(address, bytesize)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((flags & (CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)) != 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (soft_space_is_taken(address, bytesize)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (!is_mapped(address, bytesize)) return CUDA_ERROR_INVALID_VALUE;
    return soft_memory_alloc_host(context, bytesize, flags, &p);
}

EXPORT(cuMemHostRegister, (void *p, size_t bytesize, unsigned int flags)) {
    return soft_cuMemHostRegister_v2(p, bytesize, flags);
}

EXPORT(cuMemHostUnregister, (void *p)) {
    return host_end(p, SOFT_KIND_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

/* The host memory around a pointer. */
static CUresult host_find(const void *p, struct soft_allocation *found) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    bool known = soft_space_find((uint64_t)(uintptr_t)p, found) &&
                 (found->kind == SOFT_KIND_PINNED || found->kind == SOFT_KIND_REGISTERED);
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT(cuMemHostGetDevicePointer_v2, (CUdeviceptr * dptr, void *p, unsigned int flags)) {
    struct soft_allocation found;
    CUresult result = host_find(p, &found);
    if (result != CUDA_SUCCESS) return result;
    if (dptr == NULL || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *dptr = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}

EXPORT(cuMemHostGetFlags, (unsigned int *flags, void *p)) {
    struct soft_allocation found;
    CUresult result = host_find(p, &found);
    if (result != CUDA_SUCCESS) return result;
    if (flags == NULL || found.kind != SOFT_KIND_PINNED) return CUDA_ERROR_INVALID_VALUE;
    /* Under unified addressing every allocation is mapped. */
    *flags = found.flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
}

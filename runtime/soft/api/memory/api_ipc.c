/*
 * Memory and events of other processes. As in "Memory Management" of the CUDA Driver API 13.0.
 */
#include "api/export.h"
#include "queue/event_life.h"
#include "state/contexts.h"
#include "state/handle_set.h"
#include "state/imported.h"
#include "state/shared_event.h"

#include <stdlib.h>
#include <string.h>

EXPORT(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr pointer)) {
    const unsigned kinds = 1u << SOFT_KIND_DEVICE;
    struct soft_context *context = NULL;
    struct soft_allocation found;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL || !soft_space_find(pointer, &found) || found.kind != SOFT_KIND_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* The first export moves the bytes: no work may use them. */
    if (found.backing == NULL) soft_queue_wait_device(-1);
    struct soft_backing *backing = soft_space_share(pointer, kinds, &found);
    if (backing == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    const struct soft_shared_name name =
        soft_shared_name(backing, SOFT_SHARED_MEMORY, found.device);
    _Static_assert(sizeof name == sizeof *handle, "a name fills a handle");
    memcpy(handle, &name, sizeof name);
    soft_backing_release(backing);
    return CUDA_SUCCESS;
}

static CUresult ipc_open_memory(CUdeviceptr *pointer, const CUipcMemHandle *handle,
                                unsigned flags) {
    enum { LAZY_ENABLE_PEER_ACCESS = 1 };
    struct soft_context *context = NULL;
    struct soft_shared_name name;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (pointer == NULL || (flags & ~(unsigned)LAZY_ENABLE_PEER_ACCESS) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(&name, handle, sizeof name);
    return soft_imported_open(context, &name, pointer);
}

EXPORT(cuIpcOpenMemHandle, (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned int flags)) {
    return ipc_open_memory(pointer, &handle, flags);
}

EXPORT(cuIpcOpenMemHandle_v2, (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned int flags)) {
    return ipc_open_memory(pointer, &handle, flags);
}

EXPORT(cuIpcCloseMemHandle, (CUdeviceptr pointer)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    /* As with cuMemFree: waits for all work that may use it. */
    soft_queue_wait_device(-1);
    if (!soft_imported_close(pointer)) return CUDA_ERROR_INVALID_VALUE;
    return soft_context_current(&context);
}

EXPORT(cuIpcGetEventHandle, (CUipcEventHandle * handle, CUevent event_handle)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    const struct soft_event *event = (const struct soft_event *)event_handle;
    if (!soft_handle_is(SOFT_HANDLE_EVENT, event_handle)) {
        result = CUDA_ERROR_INVALID_HANDLE;
    } else if (event->shared == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        const struct soft_shared_name name = soft_shared_event_name(event->shared);
        memcpy(handle, &name, sizeof name);
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

EXPORT(cuIpcOpenEventHandle, (CUevent * handle, CUipcEventHandle from)) {
    struct soft_context *context = NULL;
    struct soft_shared_event *shared = NULL;
    struct soft_shared_name name;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL) return CUDA_ERROR_INVALID_VALUE;
    memcpy(&name, &from, sizeof name);
    result = soft_shared_event_new(&name, &shared);
    if (result != CUDA_SUCCESS) return result;
    return soft_event_new(context, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, shared, handle);
}

/*
 * Primary contexts and the thread's current one. As in "Primary Context Management" and "Context
 * Management" of the CUDA Driver API 13.0.
 */
#include "driver_state.h"
#include "export.h"
#include "queue.h"
#include "space.h"

#include <stdlib.h>

EXPORT(cuDevicePrimaryCtxRetain, (CUcontext * pctx, CUdevice dev)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    struct soft_device *device = soft_device_of(dev);
    if (pctx == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&soft_lock);
    struct soft_context *context = device->context;
    if (context->legacy == NULL) context->legacy = soft_stream_new(context, CU_STREAM_DEFAULT, 0);
    bool ok = context->legacy != NULL;
    if (ok) context->retained++;
    pthread_mutex_unlock(&soft_lock);
    if (!ok) return CUDA_ERROR_OUT_OF_MEMORY;
    *pctx = (CUcontext)context;
    return CUDA_SUCCESS;
}

/* The last release ends everything that was made in the context. */
static void end_context(struct soft_context *context) {
    soft_queue_wait_context(context);
    soft_queue_end_context(context);
    pthread_mutex_lock(&soft_lock);
    struct soft_module *modules = context->modules;
    context->modules = NULL;
    while (context->events != NULL) {
        struct soft_event *event = context->events;
        context->events = event->next;
        soft_handle_remove(SOFT_HANDLE_EVENT, event);
        soft_moment_release(event->moment);
        free(event);
    }
    for (struct soft_module *m = modules; m != NULL; m = m->next) {
        soft_handle_remove(SOFT_HANDLE_MODULE, m);
        for (struct soft_function *f = m->functions; f != NULL; f = f->next) {
            soft_handle_remove(SOFT_HANDLE_FUNCTION, f);
        }
    }
    context->error = CUDA_SUCCESS;
    pthread_mutex_unlock(&soft_lock);
    while (modules != NULL) {
        struct soft_module *next = modules->next;
        soft_module_release(modules);
        modules = next;
    }
    uint64_t bytes = soft_space_free_all(SOFT_KIND_DEVICE, context->device->ordinal);
    soft_device_refund(context->device, bytes);
    soft_space_free_all(SOFT_KIND_PINNED, context->device->ordinal);
}

EXPORT(cuDevicePrimaryCtxRelease_v2, (CUdevice dev)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    struct soft_device *device = soft_device_of(dev);
    if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&soft_lock);
    bool active = device->context->retained > 0;
    bool last = active && device->context->retained == 1;
    if (active) device->context->retained--;
    pthread_mutex_unlock(&soft_lock);
    if (!active) return CUDA_ERROR_INVALID_CONTEXT;
    if (last) end_context(device->context);
    return CUDA_SUCCESS;
}

EXPORT(cuCtxSetCurrent, (CUcontext ctx)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    struct soft_context *context = (struct soft_context *)ctx;
    pthread_mutex_lock(&soft_lock);
    bool known = context == NULL || soft_context_is(context);
    pthread_mutex_unlock(&soft_lock);
    if (!known) return CUDA_ERROR_INVALID_CONTEXT;
    soft_context_set(context);
    return CUDA_SUCCESS;
}

EXPORT(cuCtxGetCurrent, (CUcontext * pctx)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (pctx == NULL) return CUDA_ERROR_INVALID_VALUE;
    *pctx = (CUcontext)soft_context_get();
    return CUDA_SUCCESS;
}

EXPORT(cuCtxSynchronize, (void)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    return result != CUDA_SUCCESS ? result : soft_queue_wait_context(context);
}

EXPORT(cuCtxGetStreamPriorityRange, (int *least, int *greatest)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (least != NULL) *least = 0;
    if (greatest != NULL) *greatest = SOFT_PRIORITY_GREATEST;
    return CUDA_SUCCESS;
}

EXPORT(cuMemGetInfo_v2, (size_t * free, size_t *total)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    const struct soft_device *device = context->device;
    if (free != NULL) *free = (size_t)(device->memory_bytes - device->memory_used);
    if (total != NULL) *total = (size_t)device->memory_bytes;
    pthread_mutex_unlock(&soft_lock);
    return CUDA_SUCCESS;
}

/*
 * Contexts and the thread's stack of them. As in "Context Management" of the CUDA Driver API 13.0.
 */
#include "graph/capture.h"
#include "base/context_flags.h"
#include "driver/context_life.h"
#include "state/contexts.h"
#include "state/driver_state.h"
#include "export.h"
#include "state/memory_pool.h"
#include "queue/queue.h"

static CUresult context_create(CUcontext *pctx, unsigned flags, CUdevice dev, unsigned version) {
    struct soft_context *context = NULL;
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (pctx == NULL || !soft_context_flags_are(flags)) return CUDA_ERROR_INVALID_VALUE;
    struct soft_device *device = soft_device_of(dev);
    if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&soft_lock);
    result = soft_context_begin(device, &context);
    pthread_mutex_unlock(&soft_lock);
    if (result != CUDA_SUCCESS) return result;
    context->flags = flags;
    context->api_version = version;
    if (!soft_context_push(context)) {
        soft_context_end(context);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pctx = (CUcontext)context;
    return CUDA_SUCCESS;
}

EXPORT(cuCtxCreate, (CUcontext * pctx, unsigned int flags, CUdevice dev)) {
    return context_create(pctx, flags, dev, 3010);
}

EXPORT(cuCtxCreate_v2, (CUcontext * pctx, unsigned int flags, CUdevice dev)) {
    return context_create(pctx, flags, dev, 3020);
}

/* Partitions of a device are not supported, so requests for one are refused. */
EXPORT(cuCtxCreate_v3,
       (CUcontext * pctx, CUexecAffinityParam *params, int count, unsigned flags, CUdevice dev)) {
    if (count < 0 || (count > 0 && params == NULL)) return CUDA_ERROR_INVALID_VALUE;
    if (count > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return context_create(pctx, flags, dev, 3020);
}

EXPORT(cuCtxCreate_v4,
       (CUcontext * pctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev)) {
    if (params != NULL && params->cigParams != NULL) return CUDA_ERROR_NOT_SUPPORTED;
    CUexecAffinityParam *affinity = params != NULL ? params->execAffinityParams : NULL;
    int count = params != NULL ? params->numExecAffinityParams : 0;
    return soft_cuCtxCreate_v3(pctx, affinity, count, flags, dev);
}

EXPORT(cuCtxDestroy_v2, (CUcontext ctx)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (ctx == NULL) return CUDA_ERROR_INVALID_VALUE;
    struct soft_context *context = (struct soft_context *)ctx;
    pthread_mutex_lock(&soft_lock);
    bool known = soft_context_is(context) && context != context->device->primary;
    pthread_mutex_unlock(&soft_lock);
    if (!known) return CUDA_ERROR_INVALID_CONTEXT;
    if (soft_context_top() == context) soft_context_pop();
    soft_context_end(context);
    return CUDA_SUCCESS;
}

/* The name before CUDA 4; contexts were counted then, but are not now. */
EXPORT(cuCtxDestroy, (CUcontext ctx)) {
    return soft_cuCtxDestroy_v2(ctx);
}

/* The usage count of CUDA 2 and 3: a context ends when it was detached once more than attached. */
EXPORT(cuCtxAttach, (CUcontext * pctx, unsigned flags)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (pctx == NULL || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    struct soft_context *context = soft_context_top();
    if (context == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&soft_lock);
    context->attached++;
    pthread_mutex_unlock(&soft_lock);
    *pctx = (CUcontext)context;
    return CUDA_SUCCESS;
}

/* Of the current context alone, as the manual says; never of a primary one. */
EXPORT(cuCtxDetach, (CUcontext ctx)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (ctx == NULL) return CUDA_ERROR_INVALID_VALUE;
    struct soft_context *context = (struct soft_context *)ctx;
    pthread_mutex_lock(&soft_lock);
    const bool fits = soft_context_is(context) && context == soft_context_top() &&
                      context != context->device->primary;
    const bool is_last = fits && context->attached == 0;
    if (fits && !is_last) context->attached--;
    pthread_mutex_unlock(&soft_lock);
    if (!fits) return CUDA_ERROR_INVALID_CONTEXT;
    return is_last ? soft_cuCtxDestroy_v2(ctx) : CUDA_SUCCESS;
}

/* Whether a handle may be made current. */
static CUresult check_handle(CUcontext ctx) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    bool known = soft_context_is((struct soft_context *)ctx);
    pthread_mutex_unlock(&soft_lock);
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

EXPORT(cuCtxPushCurrent_v2, (CUcontext ctx)) {
    CUresult result = check_handle(ctx);
    if (result != CUDA_SUCCESS) return result;
    bool pushed = soft_context_push((struct soft_context *)ctx);
    return pushed ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT(cuCtxPushCurrent, (CUcontext ctx)) {
    return soft_cuCtxPushCurrent_v2(ctx);
}

EXPORT(cuCtxPopCurrent_v2, (CUcontext * pctx)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    struct soft_context *context = soft_context_pop();
    if (context == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    if (pctx != NULL) *pctx = (CUcontext)context;
    return CUDA_SUCCESS;
}

EXPORT(cuCtxPopCurrent, (CUcontext * pctx)) {
    return soft_cuCtxPopCurrent_v2(pctx);
}

EXPORT(cuCtxSetCurrent, (CUcontext ctx)) {
    CUresult result = ctx == NULL ? soft_state_check() : check_handle(ctx);
    if (result != CUDA_SUCCESS) return result;
    bool set = soft_context_set((struct soft_context *)ctx);
    return set ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT(cuCtxGetCurrent, (CUcontext * pctx)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (pctx == NULL) return CUDA_ERROR_INVALID_VALUE;
    *pctx = (CUcontext)soft_context_top();
    return CUDA_SUCCESS;
}

EXPORT(cuCtxGetDevice_v2, (CUdevice * device, CUcontext ctx)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_find(ctx, &context);
    if (result != CUDA_SUCCESS) return result;
    if (device == NULL) return CUDA_ERROR_INVALID_VALUE;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

EXPORT(cuCtxGetDevice, (CUdevice * device)) {
    return soft_cuCtxGetDevice_v2(device, NULL);
}

EXPORT(cuCtxSynchronize_v2, (CUcontext ctx)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_find(ctx, &context);
    if (result == CUDA_SUCCESS) result = soft_capture_allows_context(context);
    if (result != CUDA_SUCCESS) return result;
    result = soft_queue_wait_context(context);
    soft_pools_release(context->device, false);
    return result;
}

EXPORT(cuCtxSynchronize, (void)) {
    return soft_cuCtxSynchronize_v2(NULL);
}

EXPORT(cuCtxGetId, (CUcontext ctx, unsigned long long *id)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_find(ctx, &context);
    if (result != CUDA_SUCCESS) return result;
    if (id == NULL) return CUDA_ERROR_INVALID_VALUE;
    *id = context->id;
    return CUDA_SUCCESS;
}

EXPORT(cuCtxGetApiVersion, (CUcontext ctx, unsigned int *version)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_find(ctx, &context);
    if (result != CUDA_SUCCESS) return result;
    if (version == NULL) return CUDA_ERROR_INVALID_VALUE;
    *version = context->api_version != 0 ? context->api_version : 3020;
    return CUDA_SUCCESS;
}

EXPORT(cuCtxGetStreamPriorityRange, (int *least, int *greatest)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (least != NULL) *least = 0;
    if (greatest != NULL) *greatest = SOFT_PRIORITY_GREATEST;
    return CUDA_SUCCESS;
}

/*
 * Primary contexts: one per device, shared by all that retain it. As in "Primary Context
 * Management" of the CUDA Driver API 13.0.
 */
#include "base/context_flags.h"
#include "driver/context_life.h"
#include "state/driver_state.h"
#include "export.h"
#include "state/thread_state.h"

static CUresult primary_find_device(CUdevice dev, struct soft_device **device) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    *device = soft_device_of(dev);
    return *device != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT(cuDevicePrimaryCtxRetain, (CUcontext * pctx, CUdevice dev)) {
    struct soft_device *device = NULL;
    CUresult result = primary_find_device(dev, &device);
    if (result != CUDA_SUCCESS) return result;
    if (pctx == NULL) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    result = soft_context_revive(device->primary);
    if (result == CUDA_SUCCESS) device->primary->retained++;
    pthread_mutex_unlock(&soft_lock);
    if (result != CUDA_SUCCESS) return result;
    /* A driver leaves the thread without a current context. A thread that retains a primary context
     * and then makes other calls can only mean that context. */
    soft_thread()->implied = device->primary;
    *pctx = (CUcontext)device->primary;
    return result;
}

EXPORT(cuDevicePrimaryCtxRelease_v2, (CUdevice dev)) {
    struct soft_device *device = NULL;
    CUresult result = primary_find_device(dev, &device);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    bool retained = device->primary->retained > 0;
    bool last = retained && --device->primary->retained == 0 && device->primary->alive;
    pthread_mutex_unlock(&soft_lock);
    if (!retained) return CUDA_ERROR_INVALID_CONTEXT;
    /* The last release frees everything that was created in the context. */
    if (last) soft_context_end(device->primary);
    return CUDA_SUCCESS;
}

EXPORT(cuDevicePrimaryCtxRelease, (CUdevice dev)) {
    return soft_cuDevicePrimaryCtxRelease_v2(dev);
}

/* Whoever has retained the context must still release it; the next to retain it revives it. */
EXPORT(cuDevicePrimaryCtxReset_v2, (CUdevice dev)) {
    struct soft_device *device = NULL;
    CUresult result = primary_find_device(dev, &device);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    bool alive = device->primary->alive;
    pthread_mutex_unlock(&soft_lock);
    if (alive) soft_context_end(device->primary);
    return CUDA_SUCCESS;
}

EXPORT(cuDevicePrimaryCtxReset, (CUdevice dev)) {
    return soft_cuDevicePrimaryCtxReset_v2(dev);
}

EXPORT(cuDevicePrimaryCtxSetFlags_v2, (CUdevice dev, unsigned int flags)) {
    struct soft_device *device = NULL;
    CUresult result = primary_find_device(dev, &device);
    if (result != CUDA_SUCCESS) return result;
    if (!soft_context_flags_are(flags)) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    device->primary->flags = flags;
    pthread_mutex_unlock(&soft_lock);
    return CUDA_SUCCESS;
}

/* Before CUDA 11 an active context's flags were fixed. */
EXPORT(cuDevicePrimaryCtxSetFlags, (CUdevice dev, unsigned int flags)) {
    struct soft_device *device = NULL;
    CUresult result = primary_find_device(dev, &device);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    bool alive = device->primary->alive;
    pthread_mutex_unlock(&soft_lock);
    return alive ? CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE
                 : soft_cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

EXPORT(cuDevicePrimaryCtxGetState, (CUdevice dev, unsigned int *flags, int *active)) {
    struct soft_device *device = NULL;
    CUresult result = primary_find_device(dev, &device);
    if (result != CUDA_SUCCESS) return result;
    if (flags == NULL || active == NULL) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    *flags = device->primary->flags;
    *active = device->primary->alive;
    pthread_mutex_unlock(&soft_lock);
    return CUDA_SUCCESS;
}

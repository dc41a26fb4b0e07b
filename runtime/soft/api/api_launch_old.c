/*
 * Launches as before CUDA 4: the function stores the shape of a block and the parameters, and a
 * launch uses them, as in "Execution Control (deprecated)" of the driver API.
 */
#include "export.h"
#include "lower/loaded_module.h"
#include "state/contexts.h"
#include "state/handle_set.h"

#include <string.h>

/* A function's stored state, created when it is first set. As in the manual of these calls, only
 * one thread at a time may use a function. */
static CUresult launch_old_find(CUfunction handle, struct soft_old_launch **old) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    const bool known = soft_handle_is(SOFT_HANDLE_FUNCTION, handle);
    struct soft_function *function = (struct soft_function *)handle;
    if (known && function->old == NULL) {
        function->old = soft_arena_alloc(&function->module->arena, sizeof *function->old);
        if (function->old != NULL) *function->old = (struct soft_old_launch){.block = {1, 1, 1}};
    }
    *old = known ? function->old : NULL;
    pthread_mutex_unlock(&soft_lock);
    if (!known) return CUDA_ERROR_INVALID_HANDLE;
    return *old != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT(cuFuncSetBlockShape, (CUfunction handle, int x, int y, int z)) {
    struct soft_old_launch *old = NULL;
    CUresult result = launch_old_find(handle, &old);
    if (result != CUDA_SUCCESS) return result;
    if (x < 1 || y < 1 || z < 1) return CUDA_ERROR_INVALID_VALUE;
    old->block[0] = (unsigned)x;
    old->block[1] = (unsigned)y;
    old->block[2] = (unsigned)z;
    return CUDA_SUCCESS;
}

EXPORT(cuFuncSetSharedSize, (CUfunction handle, unsigned bytes)) {
    struct soft_old_launch *old = NULL;
    CUresult result = launch_old_find(handle, &old);
    if (result == CUDA_SUCCESS) old->shared = bytes;
    return result;
}

EXPORT(cuParamSetSize, (CUfunction handle, unsigned bytes)) {
    struct soft_old_launch *old = NULL;
    CUresult result = launch_old_find(handle, &old);
    if (result != CUDA_SUCCESS) return result;
    if (bytes > SOFT_OLD_PARAMETER_BYTES) return CUDA_ERROR_INVALID_VALUE;
    old->bytes = bytes;
    return CUDA_SUCCESS;
}

static CUresult launch_old_set(CUfunction handle, int offset, const void *value, size_t bytes) {
    struct soft_old_launch *old = NULL;
    CUresult result = launch_old_find(handle, &old);
    if (result != CUDA_SUCCESS) return result;
    if (offset < 0 || bytes > SOFT_OLD_PARAMETER_BYTES ||
        (size_t)offset > SOFT_OLD_PARAMETER_BYTES - bytes || (value == NULL && bytes > 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (bytes > 0) memcpy(old->parameters + offset, value, bytes);
    return CUDA_SUCCESS;
}

EXPORT(cuParamSeti, (CUfunction handle, int offset, unsigned value)) {
    return launch_old_set(handle, offset, &value, sizeof value);
}

EXPORT(cuParamSetf, (CUfunction handle, int offset, float value)) {
    return launch_old_set(handle, offset, &value, sizeof value);
}

EXPORT(cuParamSetv, (CUfunction handle, int offset, void *value, unsigned bytes)) {
    return launch_old_set(handle, offset, value, bytes);
}

EXPORT(cuLaunchGridAsync, (CUfunction handle, int width, int height, CUstream stream)) {
    struct soft_old_launch *old = NULL;
    CUresult result = launch_old_find(handle, &old);
    if (result != CUDA_SUCCESS) return result;
    if (width < 1 || height < 1) return CUDA_ERROR_INVALID_VALUE;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, old->parameters, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &old->bytes, CU_LAUNCH_PARAM_END};
    return soft_cuLaunchKernel(handle, (unsigned)width, (unsigned)height, 1, old->block[0],
                               old->block[1], old->block[2], old->shared, stream, NULL, extra);
}

EXPORT(cuLaunchGrid, (CUfunction handle, int width, int height)) {
    return soft_cuLaunchGridAsync(handle, width, height, NULL);
}

EXPORT(cuLaunch, (CUfunction handle)) {
    return soft_cuLaunchGridAsync(handle, 1, 1, NULL);
}

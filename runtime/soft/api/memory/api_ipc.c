/*
 * Sharing with other processes, which soft devices do not offer: what is asked is checked and then
 * refused. As in "Memory Management" of the CUDA Driver API 13.0.
 */
#include "state/contexts.h"
#include "state/driver_state.h"
#include "api/export.h"

static CUresult refuse(bool sound) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    return sound ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

EXPORT(cuIpcGetEventHandle, (CUipcEventHandle * handle, CUevent event)) {
    return refuse(handle != NULL && event != NULL);
}

EXPORT(cuIpcOpenEventHandle, (CUevent * event, CUipcEventHandle handle)) {
    (void)handle;
    return refuse(event != NULL);
}

EXPORT(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr dptr)) {
    return refuse(handle != NULL && dptr != 0);
}

EXPORT(cuIpcOpenMemHandle_v2, (CUdeviceptr * dptr, CUipcMemHandle handle, unsigned int flags)) {
    (void)handle;
    return refuse(dptr != NULL && flags <= 1);
}

EXPORT(cuIpcCloseMemHandle, (CUdeviceptr dptr)) {
    return refuse(dptr != 0);
}

/*
 * Streams and events. As in "Stream Management" and "Event Management" of the CUDA Runtime API
 * 13.0. Flags, attributes and handles are the driver's.
 */
#include "cudart_export.h"

RT(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest)) {
    return CU_CALL(cuCtxGetStreamPriorityRange, (least, greatest));
}

RT(cudaStreamCreate, (cudaStream_t * stream)) {
    return CU_CALL(cuStreamCreate, (stream, 0));
}

RT(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned int flags)) {
    return CU_CALL(cuStreamCreate, (stream, flags));
}

RT(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned int flags, int priority)) {
    return CU_CALL(cuStreamCreateWithPriority, (stream, flags, priority));
}

RT(cudaStreamDestroy, (cudaStream_t stream)) {
    return CU_CALL(cuStreamDestroy_v2, (stream));
}

RT(cudaStreamGetPriority, (cudaStream_t stream, int *priority)) {
    return CU_CALL(cuStreamGetPriority, (stream, priority));
}

RT(cudaStreamGetFlags, (cudaStream_t stream, unsigned int *flags)) {
    return CU_CALL(cuStreamGetFlags, (stream, flags));
}

RT(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id)) {
    return CU_CALL(cuStreamGetId, (stream, id));
}

RT(cudaStreamGetDevice, (cudaStream_t stream, int *device)) {
    return CU_CALL(cuStreamGetDevice, (stream, device));
}

RT(cudaStreamCopyAttributes, (cudaStream_t to, cudaStream_t from)) {
    return CU_CALL(cuStreamCopyAttributes, (to, from));
}

RT(cudaStreamGetAttribute,
   (cudaStream_t stream, cudaStreamAttrID attribute, cudaStreamAttrValue *value)) {
    return CU_CALL(cuStreamGetAttribute, (stream, attribute, value));
}

RT(cudaStreamSetAttribute,
   (cudaStream_t stream, cudaStreamAttrID attribute, const cudaStreamAttrValue *value)) {
    return CU_CALL(cuStreamSetAttribute, (stream, attribute, value));
}

RT(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags)) {
    return CU_CALL(cuStreamWaitEvent, (stream, event, flags));
}

/* The codes passed to callbacks are the same in both APIs. */
RT(cudaStreamAddCallback,
   (cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned int flags)) {
    return CU_CALL(cuStreamAddCallback, (stream, (CUstreamCallback)callback, data, flags));
}

RT(cudaStreamSynchronize, (cudaStream_t stream)) {
    return CU_CALL(cuStreamSynchronize, (stream));
}

RT(cudaStreamQuery, (cudaStream_t stream)) {
    return CU_CALL(cuStreamQuery, (stream));
}

/* A length of 0 means the whole allocation, as in the driver. */
RT(cudaStreamAttachMemAsync,
   (cudaStream_t stream, void *address, size_t length, unsigned int flags)) {
    return CU_CALL(cuStreamAttachMemAsync,
                   (stream, (CUdeviceptr)(uintptr_t)address, length, flags));
}

/* ---- events ---- */

RT(cudaEventCreate, (cudaEvent_t * event)) {
    return CU_CALL(cuEventCreate, (event, 0));
}

RT(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags)) {
    return CU_CALL(cuEventCreate, (event, flags));
}

RT(cudaEventDestroy, (cudaEvent_t event)) {
    return CU_CALL(cuEventDestroy_v2, (event));
}

RT(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream)) {
    return CU_CALL(cuEventRecord, (event, stream));
}

RT(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned int flags)) {
    return CU_CALL(cuEventRecordWithFlags, (event, stream, flags));
}

RT(cudaEventQuery, (cudaEvent_t event)) {
    return CU_CALL(cuEventQuery, (event));
}

RT(cudaEventSynchronize, (cudaEvent_t event)) {
    return CU_CALL(cuEventSynchronize, (event));
}

RT(cudaEventElapsedTime, (float *milliseconds, cudaEvent_t start, cudaEvent_t end)) {
    return CU_CALL(cuEventElapsedTime, (milliseconds, start, end));
}

RT(cudaIpcGetEventHandle, (cudaIpcEventHandle_t * handle, cudaEvent_t event)) {
    return CU_CALL(cuIpcGetEventHandle, (handle, event));
}

RT(cudaIpcOpenEventHandle, (cudaEvent_t * event, cudaIpcEventHandle_t handle)) {
    return CU_CALL(cuIpcOpenEventHandle, (event, handle));
}

/*
 * Launches. As in "Execution Control" of the CUDA Driver API 13.0.
 */
#include "state/contexts.h"
#include "event_record.h"
#include "export.h"
#include "state/handle_set.h"
#include "queue/kernel_call.h"
#include "queue/queue.h"
#include "graph/submit.h"

/* The lock is taken once for the whole launch. */
static CUresult launch_call(CUstream handle, const struct soft_kernel_call *call) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    struct soft_task task;
    pthread_mutex_lock(&soft_lock);
    CUresult result = soft_stream_find_locked(handle, &context, &stream);
    if (result == CUDA_SUCCESS) result = soft_kernel_task(call, context, &task);
    if (result == CUDA_SUCCESS) result = soft_submit_locked(stream, &task, false);
    pthread_mutex_unlock(&soft_lock);
    return result;
}

EXPORT(cuLaunchKernel,
       (CUfunction function, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
        unsigned int sharedMemBytes, CUstream stream, void **kernelParams, void **extra)) {
    const struct soft_kernel_call call = {.function = function,
                                          .grid = {gridDimX, gridDimY, gridDimZ},
                                          .block = {blockDimX, blockDimY, blockDimZ},
                                          .shared = sharedMemBytes,
                                          .parameters = kernelParams,
                                          .extra = extra};
    return launch_call(stream, &call);
}

EXPORT(cuLaunchCooperativeKernel,
       (CUfunction function, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
        unsigned int sharedMemBytes, CUstream stream, void **kernelParams)) {
    const struct soft_kernel_call call = {.function = function,
                                          .grid = {gridDimX, gridDimY, gridDimZ},
                                          .block = {blockDimX, blockDimY, blockDimZ},
                                          .shared = sharedMemBytes,
                                          .cooperative = true,
                                          .parameters = kernelParams};
    return launch_call(stream, &call);
}

/* Attributes of a launch with effects beyond the launch. */
struct launch_extras {
    CUevent after;     /* an event to record when all blocks have begun, or ended */
    bool programmatic; /* it is the programmatic one */
};

/* Some attributes are implemented, some are hints, and the rest are refused. */
static CUresult take_attribute(const CUlaunchAttribute *attribute, struct soft_kernel_call *call,
                               struct launch_extras *extras) {
    const CUlaunchAttributeValue *value = &attribute->value;
    const int id = attribute->id;
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        call->cooperative = value->cooperative != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        call->cluster[0] = value->clusterDim.x;
        call->cluster[1] = value->clusterDim.y;
        call->cluster[2] = value->clusterDim.z;
        return value->clusterDim.x > 0 && value->clusterDim.y > 0 && value->clusterDim.z > 0
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        call->programmatic = value->programmaticStreamSerializationAllowed != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        if (value->programmaticEvent.flags != 0) return CUDA_ERROR_INVALID_VALUE;
        extras->after = value->programmaticEvent.event;
        extras->programmatic = true;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        if (value->launchCompletionEvent.flags != 0) return CUDA_ERROR_INVALID_VALUE;
        extras->after = value->launchCompletionEvent.event;
        extras->programmatic = false;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: /* of nodes of a graph alone */
        return value->deviceUpdatableKernelNode.deviceUpdatable == 0 ? CUDA_SUCCESS
                                                                     : CUDA_ERROR_INVALID_VALUE;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return value->sharedMemCarveout <= 100 || value->sharedMemCarveout == UINT32_MAX
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Such an event must not keep time. */
static CUresult check_event(CUevent handle) {
    pthread_mutex_lock(&soft_lock);
    const struct soft_event *event = (const struct soft_event *)handle;
    CUresult result = CUDA_SUCCESS;
    if (!soft_handle_is(SOFT_HANDLE_EVENT, handle)) {
        result = CUDA_ERROR_INVALID_HANDLE;
    } else if ((event->flags & CU_EVENT_DISABLE_TIMING) == 0) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

/* The state of the context counts before errors of the arguments. */
static CUresult refuse_launch(CUresult result) {
    struct soft_context *context = NULL;
    const CUresult state = soft_context_current(&context);
    return state != CUDA_SUCCESS ? state : result;
}

EXPORT(cuLaunchKernelEx,
       (const CUlaunchConfig *config, CUfunction function, void **kernelParams, void **extra)) {
    struct launch_extras extras = {0};
    CUresult result = CUDA_SUCCESS;
    if (config == NULL || (config->numAttrs > 0 && config->attrs == NULL)) {
        return refuse_launch(CUDA_ERROR_INVALID_VALUE);
    }
    struct soft_kernel_call call = {
        .function = function,
        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
        .shared = config->sharedMemBytes,
        .parameters = kernelParams,
        .extra = extra};
    for (unsigned i = 0; i < config->numAttrs && result == CUDA_SUCCESS; i++) {
        result = take_attribute(&config->attrs[i], &call, &extras);
    }
    if (result == CUDA_SUCCESS && extras.after != NULL) result = check_event(extras.after);
    if (result != CUDA_SUCCESS) return refuse_launch(result);
    result = launch_call(config->hStream, &call);
    if (result == CUDA_SUCCESS && extras.after != NULL) {
        result = soft_event_record_behind(extras.after, config->hStream, extras.programmatic);
    }
    return result;
}

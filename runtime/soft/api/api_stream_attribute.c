/*
 * Attributes of streams. As in "Stream Management" of the CUDA Driver API 13.0.
 *
 * Hints about caches and memory domains are stored without effect.
 */
#include "export.h"
#include "queue/queue.h"

static CUresult stream_attribute_find(CUstream handle, const void *value,
                                      struct soft_stream **stream) {
    struct soft_context *context = NULL;
    CUresult result = soft_stream_find(handle, &context, stream);
    if (result != CUDA_SUCCESS) return result;
    return value != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT(cuStreamGetAttribute, (CUstream handle, CUstreamAttrID id, CUstreamAttrValue *value)) {
    struct soft_stream *stream = NULL;
    CUresult result = stream_attribute_find(handle, value, &stream);
    if (result != CUDA_SUCCESS) return result;
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        value->accessPolicyWindow = stream->hints.window;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        value->syncPolicy = stream->hints.synchronization;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        value->priority = stream->priority;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        value->memSyncDomain = stream->hints.domain;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        value->memSyncDomainMap.default_ = 0;
        value->memSyncDomainMap.remote = 0; /* there is one domain */
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT(cuStreamSetAttribute, (CUstream handle, CUstreamAttrID id, const CUstreamAttrValue *value)) {
    struct soft_stream *stream = NULL;
    CUresult result = stream_attribute_find(handle, value, &stream);
    if (result != CUDA_SUCCESS) return result;
    const CUaccessPolicyWindow *window = &value->accessPolicyWindow;
    int policy = value->syncPolicy, domain = value->memSyncDomain;
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        if (window->num_bytes > 0 && !(window->hitRatio >= 0 && window->hitRatio <= 1)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        stream->hints.window = *window;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        if (policy < CU_SYNC_POLICY_AUTO || policy > CU_SYNC_POLICY_BLOCKING_SYNC) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        stream->hints.synchronization = policy;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        if (domain != 0 && domain != 1) return CUDA_ERROR_INVALID_VALUE;
        stream->hints.domain = domain;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: /* read-only */
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT(cuStreamCopyAttributes, (CUstream destination, CUstream source)) {
    struct soft_stream *to = NULL, *from = NULL;
    CUresult result = stream_attribute_find(destination, &to, &to);
    if (result == CUDA_SUCCESS) result = stream_attribute_find(source, &from, &from);
    if (result == CUDA_SUCCESS) to->hints = from->hints;
    return result;
}

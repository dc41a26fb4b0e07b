/*
 * Devices that use each other's memory. As in "Peer Context Memory Access" of the CUDA Driver API
 * 13.0.
 *
 * Every soft device can reach every other. Access is between contexts and one way: a context's
 * kernels may access the memory of a set of contexts, their own and those whose access was enabled.
 */
#include "state/contexts.h"
#include "state/driver_state.h"
#include "export.h"

static CUresult peer_check_pair(const void *answer, CUdevice one, CUdevice other) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (answer == NULL) return CUDA_ERROR_INVALID_VALUE;
    bool known = soft_device_of(one) != NULL && soft_device_of(other) != NULL;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer)) {
    CUresult result = peer_check_pair(can, device, peer);
    if (result == CUDA_SUCCESS) *can = device != peer;
    return result;
}

EXPORT(cuDeviceGetP2PAttribute,
       (int *value, CUdevice_P2PAttribute attribute, CUdevice source, CUdevice destination)) {
    CUresult result = peer_check_pair(value, source, destination);
    if (result != CUDA_SUCCESS) return result;
    if (source == destination) return CUDA_ERROR_INVALID_DEVICE;
    switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
        *value = 1;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
        *value = 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* The calling thread's context and another live one, on another device. */
static CUresult peer_find_peers(CUcontext peer, struct soft_context **context,
                                struct soft_context **other) {
    CUresult result = soft_context_current(context);
    if (result != CUDA_SUCCESS) return result;
    *other = (struct soft_context *)peer;
    pthread_mutex_lock(&soft_lock);
    if (!soft_context_is(*other) || *other == *context) {
        result = CUDA_ERROR_INVALID_CONTEXT;
    } else if ((*other)->device == (*context)->device) {
        result = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

EXPORT(cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags)) {
    struct soft_context *context = NULL, *other = NULL;
    CUresult result = peer_find_peers(peer, &context, &other);
    if (result != CUDA_SUCCESS) return result;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    uint64_t bit = 1ull << other->reach.slot;
    uint64_t before = atomic_fetch_or(&context->reach.contexts, bit);
    return (before & bit) != 0 ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_SUCCESS;
}

EXPORT(cuCtxDisablePeerAccess, (CUcontext peer)) {
    struct soft_context *context = NULL, *other = NULL;
    CUresult result = peer_find_peers(peer, &context, &other);
    if (result == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    if (result != CUDA_SUCCESS) return result;
    uint64_t bit = 1ull << other->reach.slot;
    uint64_t before = atomic_fetch_and(&context->reach.contexts, ~bit);
    if ((before & bit) == 0) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    soft_space_changed();
    return CUDA_SUCCESS;
}

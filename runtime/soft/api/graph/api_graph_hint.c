/*
 * Attributes of kernel nodes. As in "Graph Management" of the CUDA Driver API 13.0.
 */
#include "api/export.h"
#include "graph/graph_call.h"
#include "state/handle_set.h"
#include "state/occupancy.h"

#include <string.h>

EXPORT(cuGraphKernelNodeGetAttribute,
       (CUgraphNode handle, CUkernelNodeAttrID id, CUkernelNodeAttrValue *value)) {
    struct soft_node *node = NULL;
    if (value == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = soft_node_enter_type(handle, CU_GRAPH_NODE_TYPE_KERNEL, &node);
    if (result != CUDA_SUCCESS) return result;
    const struct soft_node_hints *hints = &node->content.hints;
    CUkernelNodeAttrValue answer = {.pad = {0}};
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        answer.cooperative = node->content.task.is.kernel.cooperative;
        break;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        answer.priority = hints->priority;
        break;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        answer.accessPolicyWindow = hints->window;
        break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        answer.clusterSchedulingPolicyPreference = hints->cluster_policy;
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        answer.memSyncDomain = hints->domain;
        break;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        answer.sharedMemCarveout = hints->carveout;
        break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: /* none: all zero */
        if (!node->content.task.is.kernel.explicit_clusters) break;
        answer.clusterDim.x = node->content.task.is.kernel.cluster[0];
        answer.clusterDim.y = node->content.task.is.kernel.cluster[1];
        answer.clusterDim.z = node->content.task.is.kernel.cluster[2];
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        break;
    default:
        result = CUDA_ERROR_INVALID_VALUE;
        break;
    }
    soft_graph_leave();
    if (result == CUDA_SUCCESS) *value = answer;
    return result;
}

static CUresult set_cluster(struct soft_kernel *kernel, const CUkernelNodeAttrValue *value) {
    uint32_t extent[3] = {value->clusterDim.x, value->clusterDim.y, value->clusterDim.z};
    bool none = extent[0] == 0 && extent[1] == 0 && extent[2] == 0;
    if (!none && (extent[0] == 0 || extent[1] == 0 || extent[2] == 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = soft_occupancy_cluster(kernel->function, extent);
    if (result != CUDA_SUCCESS) return result;
    for (int i = 0; i < 3; i++) {
        if (kernel->grid[i] % extent[i] != 0) return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(kernel->cluster, extent, sizeof extent);
    kernel->explicit_clusters = !none || kernel->function->code->cluster_required[0] > 0;
    return CUDA_SUCCESS;
}

static CUresult graph_hint_set(struct soft_node *node, CUkernelNodeAttrID id,
                               const CUkernelNodeAttrValue *value) {
    struct soft_node_hints *hints = &node->content.hints;
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        node->content.task.is.kernel.cooperative = value->cooperative != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        hints->priority = value->priority;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        if (!(value->accessPolicyWindow.hitRatio >= 0 && value->accessPolicyWindow.hitRatio <= 1)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        hints->window = value->accessPolicyWindow;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        return set_cluster(&node->content.task.is.kernel, value);
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        hints->cluster_policy = value->clusterSchedulingPolicyPreference;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        hints->domain = value->memSyncDomain;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value->sharedMemCarveout > 100) return CUDA_ERROR_INVALID_VALUE;
        hints->carveout = value->sharedMemCarveout;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return value->deviceUpdatableKernelNode.deviceUpdatable == 0 ? CUDA_SUCCESS
                                                                     : CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT(cuGraphKernelNodeSetAttribute,
       (CUgraphNode handle, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)) {
    struct soft_node *node = NULL;
    if (value == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = soft_node_enter_type(handle, CU_GRAPH_NODE_TYPE_KERNEL, &node);
    if (result != CUDA_SUCCESS) return result;
    result = graph_hint_set(node, id, value);
    soft_graph_leave();
    return result;
}

EXPORT(cuGraphKernelNodeCopyAttributes, (CUgraphNode destination, CUgraphNode source)) {
    struct soft_node *to = NULL, *from = NULL;
    CUresult result = soft_node_enter_type(destination, CU_GRAPH_NODE_TYPE_KERNEL, &to);
    if (result != CUDA_SUCCESS) return result;
    from = (struct soft_node *)source;
    if (!soft_handle_is(SOFT_HANDLE_NODE, from) ||
        from->content.params.type != CU_GRAPH_NODE_TYPE_KERNEL) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        to->content.hints = from->content.hints;
        const struct soft_kernel *kernel = &from->content.task.is.kernel;
        const CUkernelNodeAttrValue cluster = {
            .clusterDim = {kernel->cluster[0], kernel->cluster[1], kernel->cluster[2]}};
        to->content.task.is.kernel.cooperative = kernel->cooperative;
        if (kernel->explicit_clusters) {
            result = set_cluster(&to->content.task.is.kernel, &cluster);
        }
    }
    soft_graph_leave();
    return result;
}

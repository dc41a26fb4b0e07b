/*
 * Nodes of graphs. As in "Graph Management" of the CUDA Runtime API 13.0.
 */
#include "cudart/cudart_export.h"
#include "cudart_node.h"

/* ---- kernels ---- */

RT(cudaGraphAddKernelNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after,
                            size_t count, const cudaKernelNodeParams *parameters)) {
    CUDA_KERNEL_NODE_PARAMS own;
    cudaError_t error = cudart_node_kernel(parameters, &own);
    if (error != cudaSuccess) return error;
    return (cudaError_t)CU(cuGraphAddKernelNode_v2)(node, graph, after, count, &own);
}

RT(cudaGraphKernelNodeGetParams, (cudaGraphNode_t node, cudaKernelNodeParams *parameters)) {
    CUDA_KERNEL_NODE_PARAMS own;
    if (parameters == NULL) return cudaErrorInvalidValue;
    cudaError_t error = CU_CALL(cuGraphKernelNodeGetParams_v2, (node, &own));
    if (error == cudaSuccess) cudart_node_kernel_runtime(&own, parameters);
    return error;
}

RT(cudaGraphKernelNodeSetParams, (cudaGraphNode_t node, const cudaKernelNodeParams *parameters)) {
    CUDA_KERNEL_NODE_PARAMS own;
    cudaError_t error = cudart_node_kernel(parameters, &own);
    if (error != cudaSuccess) return error;
    return (cudaError_t)CU(cuGraphKernelNodeSetParams_v2)(node, &own);
}

RT(cudaGraphKernelNodeCopyAttributes, (cudaGraphNode_t to, cudaGraphNode_t from)) {
    return CU_CALL(cuGraphKernelNodeCopyAttributes, (to, from));
}

RT(cudaGraphKernelNodeGetAttribute,
   (cudaGraphNode_t node, cudaKernelNodeAttrID attribute, cudaKernelNodeAttrValue *value)) {
    return CU_CALL(cuGraphKernelNodeGetAttribute, (node, attribute, value));
}

RT(cudaGraphKernelNodeSetAttribute,
   (cudaGraphNode_t node, cudaKernelNodeAttrID attribute, const cudaKernelNodeAttrValue *value)) {
    return CU_CALL(cuGraphKernelNodeSetAttribute, (node, attribute, value));
}

/* ---- fills: the runtime's parameters are the driver's ---- */

RT(cudaGraphAddMemsetNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after,
                            size_t count, const cudaMemsetParams *parameters)) {
    CUcontext context = NULL;
    cudaError_t error = CU_CALL(cuCtxGetCurrent, (&context));
    if (error != cudaSuccess) return error;
    return (cudaError_t)CU(cuGraphAddMemsetNode)(node, graph, after, count, parameters, context);
}

RT(cudaGraphMemsetNodeGetParams, (cudaGraphNode_t node, cudaMemsetParams *parameters)) {
    return CU_CALL(cuGraphMemsetNodeGetParams, (node, parameters));
}

RT(cudaGraphMemsetNodeSetParams, (cudaGraphNode_t node, const cudaMemsetParams *parameters)) {
    return CU_CALL(cuGraphMemsetNodeSetParams, (node, parameters));
}

/* ---- host functions, graphs, events, and nodes without content ---- */

RT(cudaGraphAddHostNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after,
                          size_t count, const cudaHostNodeParams *parameters)) {
    return CU_CALL(cuGraphAddHostNode, (node, graph, after, count, parameters));
}

RT(cudaGraphHostNodeGetParams, (cudaGraphNode_t node, cudaHostNodeParams *parameters)) {
    return CU_CALL(cuGraphHostNodeGetParams, (node, parameters));
}

RT(cudaGraphHostNodeSetParams, (cudaGraphNode_t node, const cudaHostNodeParams *parameters)) {
    return CU_CALL(cuGraphHostNodeSetParams, (node, parameters));
}

RT(cudaGraphAddChildGraphNode, (cudaGraphNode_t * node, cudaGraph_t graph,
                                const cudaGraphNode_t *after, size_t count, cudaGraph_t child)) {
    return CU_CALL(cuGraphAddChildGraphNode, (node, graph, after, count, child));
}

RT(cudaGraphChildGraphNodeGetGraph, (cudaGraphNode_t node, cudaGraph_t *graph)) {
    return CU_CALL(cuGraphChildGraphNodeGetGraph, (node, graph));
}

RT(cudaGraphAddEmptyNode,
   (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count)) {
    return CU_CALL(cuGraphAddEmptyNode, (node, graph, after, count));
}

RT(cudaGraphAddEventRecordNode, (cudaGraphNode_t * node, cudaGraph_t graph,
                                 const cudaGraphNode_t *after, size_t count, cudaEvent_t event)) {
    return CU_CALL(cuGraphAddEventRecordNode, (node, graph, after, count, event));
}

RT(cudaGraphEventRecordNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t *event)) {
    return CU_CALL(cuGraphEventRecordNodeGetEvent, (node, event));
}

RT(cudaGraphEventRecordNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event)) {
    return CU_CALL(cuGraphEventRecordNodeSetEvent, (node, event));
}

RT(cudaGraphAddEventWaitNode, (cudaGraphNode_t * node, cudaGraph_t graph,
                               const cudaGraphNode_t *after, size_t count, cudaEvent_t event)) {
    return CU_CALL(cuGraphAddEventWaitNode, (node, graph, after, count, event));
}

RT(cudaGraphEventWaitNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t *event)) {
    return CU_CALL(cuGraphEventWaitNodeGetEvent, (node, event));
}

RT(cudaGraphEventWaitNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event)) {
    return CU_CALL(cuGraphEventWaitNodeSetEvent, (node, event));
}

/* ---- memory ---- */

RT(cudaGraphAddMemAllocNode,
   (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
    cudaMemAllocNodeParams *parameters)) {
    return CU_CALL(cuGraphAddMemAllocNode, (node, graph, after, count, parameters));
}

RT(cudaGraphMemAllocNodeGetParams, (cudaGraphNode_t node, cudaMemAllocNodeParams *parameters)) {
    return CU_CALL(cuGraphMemAllocNodeGetParams, (node, parameters));
}

RT(cudaGraphAddMemFreeNode, (cudaGraphNode_t * node, cudaGraph_t graph,
                             const cudaGraphNode_t *after, size_t count, void *address)) {
    return CU_CALL(cuGraphAddMemFreeNode,
                   (node, graph, after, count, (CUdeviceptr)(uintptr_t)address));
}

RT(cudaGraphMemFreeNodeGetParams, (cudaGraphNode_t node, void *address)) {
    return CU_CALL(cuGraphMemFreeNodeGetParams, (node, (CUdeviceptr *)address));
}

/* ---- nodes of any type ---- */

/* The driver's output: the address of memory that a node allocates. */
static cudaError_t graph_node_give_address(cudaError_t error, const CUgraphNodeParams *from,
                                           cudaGraphNodeParams *to) {
    if (error == cudaSuccess && from->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        to->alloc.dptr = from->alloc.dptr;
    }
    return error;
}

RT(cudaGraphAddNode,
   (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after,
    const cudaGraphEdgeData *edges, size_t count, cudaGraphNodeParams *parameters)) {
    CUgraphNodeParams own;
    cudaError_t error = cudart_node_any(parameters, &own);
    if (error != cudaSuccess) return error;
    return graph_node_give_address(
        (cudaError_t)CU(cuGraphAddNode_v2)(node, graph, after, edges, count, &own), &own,
        parameters);
}

RT(cudaGraphAddNode_12, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after,
                         size_t count, cudaGraphNodeParams *parameters)) {
    CUgraphNodeParams own;
    cudaError_t error = cudart_node_any(parameters, &own);
    if (error != cudaSuccess) return error;
    return graph_node_give_address((cudaError_t)CU(cuGraphAddNode)(node, graph, after, count, &own),
                                   &own, parameters);
}

RT(cudaGraphNodeSetParams, (cudaGraphNode_t node, cudaGraphNodeParams *parameters)) {
    CUgraphNodeParams own;
    cudaError_t error = cudart_node_any(parameters, &own);
    return error != cudaSuccess ? error : (cudaError_t)CU(cuGraphNodeSetParams)(node, &own);
}

RT(cudaGraphExecNodeSetParams,
   (cudaGraphExec_t graph, cudaGraphNode_t node, cudaGraphNodeParams *parameters)) {
    CUgraphNodeParams own;
    cudaError_t error = cudart_node_any(parameters, &own);
    return error != cudaSuccess ? error
                                : (cudaError_t)CU(cuGraphExecNodeSetParams)(graph, node, &own);
}

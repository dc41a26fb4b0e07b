/*
 * Executable graphs. As in "Graph Management" of the CUDA Runtime API 13.0.
 */
#include "cudart/cudart_export.h"
#include "cudart_node.h"

RT(cudaGraphInstantiate, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags)) {
    return CU_CALL(cuGraphInstantiateWithFlags, (exec, graph, flags));
}

RT(cudaGraphInstantiateWithFlags,
   (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags)) {
    return CU_CALL(cuGraphInstantiateWithFlags, (exec, graph, flags));
}

RT(cudaGraphInstantiateWithParams,
   (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams *parameters)) {
    return CU_CALL(cuGraphInstantiateWithParams, (exec, graph, parameters));
}

RT(cudaGraphExecGetFlags, (cudaGraphExec_t exec, unsigned long long *flags)) {
    cuuint64_t own = 0;
    if (flags == NULL) return cudaErrorInvalidValue;
    cudaError_t error = CU_CALL(cuGraphExecGetFlags, (exec, &own));
    if (error == cudaSuccess) *flags = own;
    return error;
}

RT(cudaGraphExecDestroy, (cudaGraphExec_t exec)) {
    return CU_CALL(cuGraphExecDestroy, (exec));
}

RT(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream)) {
    return CU_CALL(cuGraphUpload, (exec, stream));
}

RT(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream)) {
    return CU_CALL(cuGraphLaunch, (exec, stream));
}

RT(cudaGraphExecUpdate,
   (cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info)) {
    return CU_CALL(cuGraphExecUpdate_v2, (exec, graph, info));
}

RT(cudaGraphNodeSetEnabled, (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int enabled)) {
    return CU_CALL(cuGraphNodeSetEnabled, (exec, node, enabled));
}

RT(cudaGraphNodeGetEnabled, (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int *enabled)) {
    return CU_CALL(cuGraphNodeGetEnabled, (exec, node, enabled));
}

RT(cudaGraphExecKernelNodeSetParams,
   (cudaGraphExec_t exec, cudaGraphNode_t node, const cudaKernelNodeParams *parameters)) {
    CUDA_KERNEL_NODE_PARAMS own;
    cudaError_t error = cudart_node_kernel(parameters, &own);
    if (error != cudaSuccess) return error;
    return (cudaError_t)CU(cuGraphExecKernelNodeSetParams_v2)(exec, node, &own);
}

RT(cudaGraphExecMemsetNodeSetParams,
   (cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemsetParams *parameters)) {
    CUcontext context = NULL;
    cudaError_t error = CU_CALL(cuCtxGetCurrent, (&context));
    if (error != cudaSuccess) return error;
    return (cudaError_t)CU(cuGraphExecMemsetNodeSetParams)(exec, node, parameters, context);
}

RT(cudaGraphExecHostNodeSetParams,
   (cudaGraphExec_t exec, cudaGraphNode_t node, const cudaHostNodeParams *parameters)) {
    return CU_CALL(cuGraphExecHostNodeSetParams, (exec, node, parameters));
}

RT(cudaGraphExecChildGraphNodeSetParams,
   (cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child)) {
    return CU_CALL(cuGraphExecChildGraphNodeSetParams, (exec, node, child));
}

RT(cudaGraphExecEventRecordNodeSetEvent,
   (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event)) {
    return CU_CALL(cuGraphExecEventRecordNodeSetEvent, (exec, node, event));
}

RT(cudaGraphExecEventWaitNodeSetEvent,
   (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event)) {
    return CU_CALL(cuGraphExecEventWaitNodeSetEvent, (exec, node, event));
}

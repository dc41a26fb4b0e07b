/*
 * Graphs, their nodes and edges. As in "Graph Management" of the CUDA Runtime API 13.0, and of 12.9
 * where a signature without edges is kept.
 */
#include "cudart/cudart_export.h"

RT(cudaGraphCreate, (cudaGraph_t * graph, unsigned int flags)) {
    return CU_CALL(cuGraphCreate, (graph, flags));
}

RT(cudaGraphDestroy, (cudaGraph_t graph)) {
    return CU_CALL(cuGraphDestroy, (graph));
}

RT(cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t graph)) {
    return CU_CALL(cuGraphClone, (clone, graph));
}

RT(cudaGraphNodeFindInClone,
   (cudaGraphNode_t * node, cudaGraphNode_t original, cudaGraph_t clone)) {
    return CU_CALL(cuGraphNodeFindInClone, (node, original, clone));
}

RT(cudaGraphNodeGetType, (cudaGraphNode_t node, cudaGraphNodeType *type)) {
    return CU_CALL(cuGraphNodeGetType, (node, type));
}

RT(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)) {
    return CU_CALL(cuGraphGetNodes, (graph, nodes, count));
}

RT(cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)) {
    return CU_CALL(cuGraphGetRootNodes, (graph, nodes, count));
}

RT(cudaGraphDestroyNode, (cudaGraphNode_t node)) {
    return CU_CALL(cuGraphDestroyNode, (node));
}

RT(cudaGraphDebugDotPrint, (cudaGraph_t graph, const char *path, unsigned int flags)) {
    return CU_CALL(cuGraphDebugDotPrint, (graph, path, flags));
}

/* ---- edges ---- */

RT(cudaGraphGetEdges, (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                       cudaGraphEdgeData *edges, size_t *count)) {
    return CU_CALL(cuGraphGetEdges_v2, (graph, from, to, edges, count));
}

RT(cudaGraphGetEdges_12,
   (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *count)) {
    return CU_CALL(cuGraphGetEdges, (graph, from, to, count));
}

RT(cudaGraphNodeGetDependencies,
   (cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges, size_t *count)) {
    return CU_CALL(cuGraphNodeGetDependencies_v2, (node, nodes, edges, count));
}

RT(cudaGraphNodeGetDependencies_12, (cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count)) {
    return CU_CALL(cuGraphNodeGetDependencies, (node, nodes, count));
}

RT(cudaGraphNodeGetDependentNodes,
   (cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges, size_t *count)) {
    return CU_CALL(cuGraphNodeGetDependentNodes_v2, (node, nodes, edges, count));
}

RT(cudaGraphNodeGetDependentNodes_12,
   (cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count)) {
    return CU_CALL(cuGraphNodeGetDependentNodes, (node, nodes, count));
}

RT(cudaGraphAddDependencies,
   (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
    const cudaGraphEdgeData *edges, size_t count)) {
    return CU_CALL(cuGraphAddDependencies_v2, (graph, from, to, edges, count));
}

RT(cudaGraphAddDependencies_12,
   (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count)) {
    return CU_CALL(cuGraphAddDependencies, (graph, from, to, count));
}

RT(cudaGraphRemoveDependencies,
   (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
    const cudaGraphEdgeData *edges, size_t count)) {
    return CU_CALL(cuGraphRemoveDependencies_v2, (graph, from, to, edges, count));
}

RT(cudaGraphRemoveDependencies_12,
   (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count)) {
    return CU_CALL(cuGraphRemoveDependencies, (graph, from, to, count));
}

/* ---- memory of graphs, and user objects ---- */

RT(cudaDeviceGraphMemTrim, (int device)) {
    return CU_PLAIN(cuDeviceGraphMemTrim, (device));
}

RT(cudaDeviceGetGraphMemAttribute, (int device, cudaGraphMemAttributeType attribute, void *value)) {
    return CU_PLAIN(cuDeviceGetGraphMemAttribute, (device, attribute, value));
}

RT(cudaDeviceSetGraphMemAttribute, (int device, cudaGraphMemAttributeType attribute, void *value)) {
    return CU_PLAIN(cuDeviceSetGraphMemAttribute, (device, attribute, value));
}

RT(cudaUserObjectCreate, (cudaUserObject_t * object, void *pointer, cudaHostFn_t destroy,
                          unsigned int references, unsigned int flags)) {
    return CU_CALL(cuUserObjectCreate, (object, pointer, destroy, references, flags));
}

RT(cudaUserObjectRetain, (cudaUserObject_t object, unsigned int count)) {
    return CU_CALL(cuUserObjectRetain, (object, count));
}

RT(cudaUserObjectRelease, (cudaUserObject_t object, unsigned int count)) {
    return CU_CALL(cuUserObjectRelease, (object, count));
}

RT(cudaGraphRetainUserObject,
   (cudaGraph_t graph, cudaUserObject_t object, unsigned int count, unsigned int flags)) {
    return CU_CALL(cuGraphRetainUserObject, (graph, object, count, flags));
}

RT(cudaGraphReleaseUserObject, (cudaGraph_t graph, cudaUserObject_t object, unsigned int count)) {
    return CU_CALL(cuGraphReleaseUserObject, (graph, object, count));
}

/*
 * Capture of streams. As in "Stream Management" of the CUDA Runtime API 13.0, and of 12.9 where a
 * signature without edges is kept.
 */
#include "cudart/cudart_export.h"

RT(cudaStreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode)) {
    return CU_CALL(cuStreamBeginCapture_v2, (stream, mode));
}

RT(cudaStreamBeginCaptureToGraph,
   (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *nodes,
    const cudaGraphEdgeData *edges, size_t count, cudaStreamCaptureMode mode)) {
    return CU_CALL(cuStreamBeginCaptureToGraph, (stream, graph, nodes, edges, count, mode));
}

RT(cudaThreadExchangeStreamCaptureMode, (cudaStreamCaptureMode * mode)) {
    return CU_CALL(cuThreadExchangeStreamCaptureMode, (mode));
}

RT(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph)) {
    return CU_CALL(cuStreamEndCapture, (stream, graph));
}

RT(cudaStreamIsCapturing, (cudaStream_t stream, cudaStreamCaptureStatus *status)) {
    return CU_CALL(cuStreamIsCapturing, (stream, status));
}

/* The driver's ids are uint64_t, which is another type of the same size. */
static cudaError_t give_id(cudaError_t error, const cuuint64_t *from, unsigned long long *to) {
    if (error == cudaSuccess && to != NULL) *to = *from;
    return error;
}

RT(cudaStreamGetCaptureInfo,
   (cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id,
    cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
    size_t *count)) {
    cuuint64_t own = 0;
    return give_id(
        CU_CALL(cuStreamGetCaptureInfo_v3, (stream, status, &own, graph, nodes, edges, count)),
        &own, id);
}

RT(cudaStreamGetCaptureInfo_v2,
   (cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id,
    cudaGraph_t *graph, const cudaGraphNode_t **nodes, size_t *count)) {
    cuuint64_t own = 0;
    return give_id(CU_CALL(cuStreamGetCaptureInfo_v2, (stream, status, &own, graph, nodes, count)),
                   &own, id);
}

RT(cudaStreamGetCaptureInfo_12,
   (cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id)) {
    cuuint64_t own = 0;
    return give_id(CU_CALL(cuStreamGetCaptureInfo, (stream, status, &own)), &own, id);
}

RT(cudaStreamUpdateCaptureDependencies,
   (cudaStream_t stream, cudaGraphNode_t *nodes, const cudaGraphEdgeData *edges, size_t count,
    unsigned int flags)) {
    return CU_CALL(cuStreamUpdateCaptureDependencies_v2, (stream, nodes, edges, count, flags));
}

RT(cudaStreamUpdateCaptureDependencies_12,
   (cudaStream_t stream, cudaGraphNode_t *nodes, size_t count, unsigned int flags)) {
    return CU_CALL(cuStreamUpdateCaptureDependencies, (stream, nodes, count, flags));
}

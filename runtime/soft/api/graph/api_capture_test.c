/*
 * Captured streams: what becomes a node, what joins, and what invalidates a capture.
 */
#include "test/test_graph.h"

#include <pthread.h>
#include <stdint.h>

static const CUstreamCaptureMode global = CU_STREAM_CAPTURE_MODE_GLOBAL,
                                 thread_local_mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                 relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

static CUstreamCaptureStatus status_of(CUstream stream) {
    CUstreamCaptureStatus status = 9;
    OK(cuStreamIsCapturing(stream, &status));
    return status;
}

/* Ends a capture that has failed. */
static void fails(CUstream stream, CUresult code) {
    CUgraph graph = (CUgraph)(uintptr_t)1;
    CUresult result = cuStreamEndCapture(stream, &graph);
    cr_assert(result == code && graph == NULL, "%s instead of %s", api_code(result),
              api_code(code));
    cr_assert_eq(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
}

Test(api_capture, work_is_kept_and_done_at_each_launch) {
    enum { COUNT = 4 };
    CUdeviceptr memory = 0;
    CUgraphExec exec = NULL;
    unsigned in[COUNT] = {10, 11, 12, 13}, out[COUNT] = {0};
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 2 * sizeof in));
    OK(cuMemsetD8_v2(memory, 0, 2 * sizeof in));
    api_put(memory, 0, NULL); /* the module is loaded outside */
    OK(cuCtxSynchronize());
    CUstream stream = graph_stream();
    cr_assert_eq(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
    OK(cuStreamBeginCapture_v2(stream, global));
    cr_assert_eq(status_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuMemcpyHtoDAsync_v2(memory, in, sizeof in, stream));
    api_put(memory, 7, stream);
    OK(cuMemsetD32Async(memory + 4, 8, 1, stream));
    OK(cuMemcpyDtoDAsync_v2(memory + sizeof in, memory, sizeof in, stream));
    OK(cuMemcpyDtoHAsync_v2(out, memory + sizeof in, sizeof in, stream));
    CUgraph graph = capture_end(stream);
    cr_assert_eq(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
    cr_assert(graph_node_count(graph) == 5 && graph_edge_count(graph) == 4);
    cr_assert_eq(api_read(memory), 0, "nothing has been done yet");
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (unsigned round = 0; round < 3; round++) {
        in[2] = 100 + round; /* read when the copy is carried out */
        OK(cuGraphLaunch(exec, stream));
        OK(cuStreamSynchronize(stream));
        cr_assert(out[0] == 7 && out[1] == 8 && out[2] == 100 + round && out[3] == 13);
    }
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

Test(api_capture, information_is_given_while_it_lasts) {
    CUdeviceptr memory = 0;
    CUstreamCaptureStatus status = 9;
    cuuint64_t id = 0, other_id = 0;
    CUgraph graph = NULL;
    const CUgraphNode *nodes = NULL;
    const CUgraphEdgeData *data = NULL;
    size_t count = 9;
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    CUstream stream = graph_stream(), other = graph_stream();
    OK(cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &nodes, &count));
    cr_assert(status == CU_STREAM_CAPTURE_STATUS_NONE && id == 0 && graph == NULL);
    OK(cuStreamBeginCapture_v2(stream, relaxed));
    OK(cuStreamBeginCapture_v2(other, relaxed));
    OK(cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &nodes, &count));
    OK(cuStreamGetCaptureInfo_v2(other, &status, &other_id, NULL, NULL, NULL));
    cr_assert(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id != 0 && id != other_id);
    cr_assert(count == 0 && graph != NULL);
    OK(cuMemsetD8Async(memory, 1, 64, stream));
    OK(cuStreamGetCaptureInfo_v3(stream, &status, NULL, NULL, &nodes, &data, &count));
    cr_assert(count == 1 && graph_node_type(nodes[0]) == CU_GRAPH_NODE_TYPE_MEMSET);
    cr_assert(data[0].type == 0 && data[0].from_port == 0 && data[0].to_port == 0);
    cr_assert(capture_end(stream) == graph);
    cr_assert(capture_end(other) != graph);
    REFUSED(cuStreamGetCaptureInfo_v2(stream, NULL, NULL, NULL, NULL, NULL),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamGetCaptureInfo_v3(stream, &status, NULL, NULL, NULL, &data, &count),
            CUDA_ERROR_INVALID_VALUE);
}

Test(api_capture, streams_fork_and_join_by_events) {
    CUdeviceptr memory = 0;
    CUgraphNode nodes[8] = {NULL}, dependencies[8] = {NULL};
    size_t count = 8;
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    CUstream stream = graph_stream(), other = graph_stream();
    CUevent fork = graph_event(), join = graph_event();
    OK(cuStreamBeginCapture_v2(stream, thread_local_mode));
    OK(cuMemsetD8Async(memory, 1, 64, stream));
    OK(cuEventRecord(fork, stream));
    OK(cuStreamWaitEvent(other, fork, 0));
    cr_assert_eq(status_of(other), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuMemsetD8Async(memory, 2, 16, stream));
    OK(cuMemsetD8Async(memory + 16, 3, 16, other));
    OK(cuEventRecord(join, other));
    OK(cuStreamWaitEvent(stream, join, 0));
    OK(cuMemsetD8Async(memory + 32, 4, 16, stream));
    CUgraph graph = capture_end(stream);
    cr_assert_eq(status_of(other), CU_STREAM_CAPTURE_STATUS_NONE);
    cr_assert(graph_node_count(graph) == 4 && graph_edge_count(graph) == 4);
    OK(cuGraphGetNodes(graph, nodes, &count));
    cr_assert(count == 4 && nodes[4] == NULL);
    count = 8;
    OK(cuGraphNodeGetDependencies(nodes[3], dependencies, &count));
    cr_assert(count == 2 && dependencies[0] == nodes[1] && dependencies[1] == nodes[2]);
    count = 8;
    OK(cuGraphNodeGetDependentNodes(nodes[0], dependencies, &count));
    cr_assert(count == 2 && dependencies[0] == nodes[1] && dependencies[1] == nodes[2]);
    graph_run(graph, stream);
    cr_assert(api_read(memory) == 0x02020202 && api_read(memory + 16) == 0x03030303);
    cr_assert(api_read(memory + 32) == 0x04040404 && api_read(memory + 48) == 0x01010101);
}

Test(api_capture, all_that_forked_must_have_joined) {
    CUdeviceptr memory = 0;
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    CUstream stream = graph_stream(), other = graph_stream();
    CUevent fork = graph_event();
    OK(cuStreamBeginCapture_v2(stream, relaxed));
    OK(cuEventRecord(fork, stream));
    OK(cuStreamWaitEvent(other, fork, 0));
    OK(cuMemsetD8Async(memory, 3, 16, other));
    CUgraph graph = NULL;
    REFUSED(cuStreamEndCapture(other, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    fails(stream, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    cr_assert_eq(status_of(other), CU_STREAM_CAPTURE_STATUS_NONE);
    /* Both can go on. */
    OK(cuMemsetD8Async(memory, 3, 16, other));
    OK(cuStreamSynchronize(other));
    OK(cuStreamBeginCapture_v2(stream, relaxed));
    cr_assert_eq(graph_node_count(capture_end(stream)), 0);
}

Test(api_capture, captures_stay_apart) {
    api_context(0);
    CUstream one = graph_stream(), two = graph_stream(), free_stream = graph_stream();
    CUevent of_one = graph_event(), of_none = graph_event();
    OK(cuEventRecord(of_none, free_stream));
    OK(cuStreamBeginCapture_v2(one, relaxed));
    OK(cuStreamBeginCapture_v2(two, relaxed));
    OK(cuEventRecord(of_one, one));
    REFUSED(cuStreamWaitEvent(two, of_one, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    cr_assert_eq(status_of(one), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    fails(one, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    fails(two, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuStreamBeginCapture_v2(two, relaxed));
    REFUSED(cuStreamWaitEvent(two, of_none, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    fails(two, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuStreamBeginCapture_v2(two, relaxed));
    REFUSED(cuStreamWaitEvent(two, of_one, 0), CUDA_ERROR_CAPTURED_EVENT);
    fails(two, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

Test(api_capture, the_legacy_stream_must_keep_out) {
    CUdeviceptr memory = 0;
    CUstream blocking = NULL;
    CUstreamCaptureStatus status = 9;
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    CUevent event = graph_event();
    REFUSED(cuStreamBeginCapture_v2(NULL, relaxed), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    REFUSED(cuStreamBeginCapture_v2(CU_STREAM_LEGACY, relaxed),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    OK(cuStreamBeginCapture_v2(blocking, relaxed));
    REFUSED(cuStreamIsCapturing(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    REFUSED(cuStreamGetCaptureInfo_v2(NULL, &status, NULL, NULL, NULL, NULL),
            CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    cr_assert_eq(status_of(blocking), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    REFUSED(cuMemsetD8Async(memory, 1, 64, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    fails(blocking, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuStreamBeginCapture_v2(blocking, relaxed));
    OK(cuEventRecord(event, blocking));
    REFUSED(cuStreamWaitEvent(NULL, event, 0), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    fails(blocking, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    /* Beside a non-blocking one it may go on; and a thread's own can be captured. */
    CUstream apart = graph_stream();
    OK(cuStreamBeginCapture_v2(apart, relaxed));
    OK(cuMemsetD8Async(memory, 1, 64, NULL));
    OK(cuStreamIsCapturing(NULL, &status));
    cr_assert_eq(status, CU_STREAM_CAPTURE_STATUS_NONE);
    cr_assert_eq(graph_node_count(capture_end(apart)), 0);
    OK(cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, relaxed));
    OK(cuMemsetD8Async(memory, 1, 64, CU_STREAM_PER_THREAD));
    cr_assert_eq(graph_node_count(capture_end(CU_STREAM_PER_THREAD)), 1);
}

Test(api_capture, nothing_captured_can_be_waited_for) {
    CUdeviceptr memory = 0;
    float milliseconds = 0;
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    CUstream stream = graph_stream();
    CUevent event = graph_event();
    for (int way = 0; way < 3; way++) {
        OK(cuStreamBeginCapture_v2(stream, relaxed));
        OK(cuMemsetD8Async(memory, 1, 64, stream));
        CUresult result = way == 0   ? cuStreamSynchronize(stream)
                          : way == 1 ? cuStreamQuery(stream)
                                     : cuCtxSynchronize();
        cr_assert_eq(result, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "way %d", way);
        /* Asking again changes nothing; only work fails because the capture is invalidated. */
        REFUSED(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        REFUSED(cuMemsetD8Async(memory, 1, 64, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        fails(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    OK(cuStreamBeginCapture_v2(stream, relaxed));
    OK(cuEventRecord(event, stream));
    REFUSED(cuEventSynchronize(event), CUDA_ERROR_CAPTURED_EVENT);
    REFUSED(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
    REFUSED(cuEventElapsedTime(&milliseconds, event, event), CUDA_ERROR_CAPTURED_EVENT);
    (void)capture_end(stream);
    REFUSED(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
    REFUSED(cuStreamWaitEvent(stream, event, 0), CUDA_ERROR_CAPTURED_EVENT);
    OK(cuEventRecord(event, stream)); /* outside it is an event again */
    OK(cuEventSynchronize(event));
    OK(cuEventElapsedTime(&milliseconds, event, event));
}

static void callback(CUstream stream, CUresult result, void *data) {
    (void)stream;
    (void)result;
    (void)data;
}

Test(api_capture, what_cannot_be_captured_breaks_it) {
    api_context(0);
    CUstream stream = graph_stream();
    OK(cuStreamBeginCapture_v2(stream, relaxed));
    REFUSED(cuStreamAddCallback(stream, callback, NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    fails(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

/* ---- threads ---- */

struct other_thread {
    CUcontext context;
    CUstream stream;
    CUstreamCaptureMode mode;
    CUresult allocated, ended;
};

static void *act(void *argument) {
    struct other_thread *other = argument;
    CUdeviceptr memory = 0;
    CUgraph graph = NULL;
    OK(cuCtxSetCurrent(other->context));
    OK(cuThreadExchangeStreamCaptureMode(&other->mode));
    other->allocated = cuMemAlloc_v2(&memory, 16);
    other->ended = cuStreamEndCapture(other->stream, &graph);
    return NULL;
}

/* Captures in one mode while another thread, in its own mode, allocates and ends the capture. */
static struct other_thread run_beside(CUstream stream, CUstreamCaptureMode mode,
                                      CUstreamCaptureMode others) {
    pthread_t thread;
    struct other_thread other = {.stream = stream, .mode = others};
    OK(cuCtxGetCurrent(&other.context));
    OK(cuStreamBeginCapture_v2(stream, mode));
    cr_assert_eq(pthread_create(&thread, NULL, act, &other), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert_eq(other.mode, global, "what a thread begins with");
    return other;
}

Test(api_capture, the_mode_says_which_threads_must_not_make_unsafe_calls) {
    CUdeviceptr memory = 0;
    api_context(0);
    CUstream stream = graph_stream();
    static const CUstreamCaptureMode all[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                              CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                              CU_STREAM_CAPTURE_MODE_RELAXED};
    for (int own = 0; own < 3; own++) {
        for (int others = 0; others < 3; others++) {
            struct other_thread other = run_beside(stream, all[own], all[others]);
            bool forbidden = all[own] == global && all[others] == global;
            cr_assert_eq(other.allocated,
                         forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS,
                         "%d beside %d", others, own);
            if (all[own] == relaxed) {
                cr_assert_eq(other.ended, CUDA_SUCCESS, "any thread may end it");
                continue;
            }
            cr_assert_eq(other.ended, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
            if (forbidden) {
                fails(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
            } else {
                (void)capture_end(stream);
            }
        }
    }
    /* Asking is as unsafe as allocating, also of a stream and an event that have no part in it. */
    CUstream apart = graph_stream();
    CUevent event = NULL;
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int own = 0; own < 3; own++) {
        for (int what = 0; what < 3; what++) {
            OK(cuStreamBeginCapture_v2(stream, all[own]));
            CUresult result = what == 0   ? cuMemAlloc_v2(&memory, 16)
                              : what == 1 ? cuStreamQuery(apart)
                                          : cuEventQuery(event);
            if (all[own] == relaxed) {
                cr_assert_eq(result, CUDA_SUCCESS);
                (void)capture_end(stream);
            } else {
                cr_assert_eq(result, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
                fails(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
            }
        }
    }
    OK(cuEventDestroy_v2(event));
    /* A thread may say that it knows what it does. */
    CUstreamCaptureMode mode = relaxed;
    OK(cuStreamBeginCapture_v2(stream, global));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    OK(cuMemAlloc_v2(&memory, 16));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    cr_assert_eq(mode, relaxed);
    (void)capture_end(stream);
    mode = 3;
    REFUSED(cuThreadExchangeStreamCaptureMode(&mode), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuThreadExchangeStreamCaptureMode(NULL), CUDA_ERROR_INVALID_VALUE);
}

Test(api_capture, a_joined_stream_may_be_destroyed) {
    CUdeviceptr memory = 0;
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    CUstream stream = graph_stream();
    CUevent event = graph_event();
    size_t count = 0;
    for (int late = 0; late < 2; late++) {
        CUstream other = graph_stream();
        OK(cuStreamBeginCapture_v2(stream, global));
        OK(cuEventRecord(event, stream));
        OK(cuStreamWaitEvent(other, event, 0));
        OK(cuMemsetD8Async(memory, 1, 1, other));
        OK(cuEventRecord(event, other));
        if (late) OK(cuStreamDestroy_v2(other));
        OK(cuStreamWaitEvent(stream, event, 0));
        if (!late) OK(cuStreamDestroy_v2(other));
        OK(cuMemsetD8Async(memory, 2, 1, stream));
        CUgraph graph = capture_end(stream);
        OK(cuGraphGetNodes(graph, NULL, &count));
        cr_assert_eq(count, 2);
    }
}

Test(api_capture, work_of_a_destroyed_stream_must_be_joined) {
    CUdeviceptr memory = 0;
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    CUstream stream = graph_stream(), other = graph_stream();
    CUevent fork = graph_event();
    OK(cuStreamBeginCapture_v2(stream, global));
    OK(cuEventRecord(fork, stream));
    OK(cuStreamWaitEvent(other, fork, 0));
    OK(cuEventDestroy_v2(fork)); /* it has done its part */
    OK(cuMemsetD8Async(memory, 1, 1, other));
    OK(cuStreamDestroy_v2(other));
    fails(stream, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    OK(cuStreamBeginCapture_v2(stream, global));
    OK(cuMemsetD8Async(memory, 1, 1, stream));
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemAlloc_v2(&memory, 64)); /* the capture is gone with its stream */
}

Test(api_capture, bad_arguments_are_refused) {
    CUstreamCaptureStatus status = 9;
    CUgraph graph = NULL;
    CUstream unknown = (CUstream)(uintptr_t)64;
    REFUSED(cuStreamBeginCapture_v2(NULL, global), CUDA_ERROR_NOT_INITIALIZED);
    OK(cuInit(0));
    REFUSED(cuStreamBeginCapture_v2(NULL, global), CUDA_ERROR_INVALID_CONTEXT);
    api_context(0);
    CUstream stream = graph_stream();
    REFUSED(cuStreamBeginCapture_v2(stream, 3), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamBeginCapture_v2(unknown, global), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuStreamEndCapture(unknown, &graph), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
    REFUSED(cuStreamEndCapture(stream, NULL), CUDA_ERROR_ILLEGAL_STATE);
    REFUSED(cuStreamIsCapturing(stream, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamIsCapturing(unknown, &status), CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamBeginCapture_v2(stream, global));
    REFUSED(cuStreamEndCapture(stream, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamBeginCapture_v2(stream, global), CUDA_ERROR_ILLEGAL_STATE);
    (void)capture_end(stream);
}

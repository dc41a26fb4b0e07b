/*
 * PyTorch's allocator while streams are captured, as torch.cuda.graph does it: in global mode,
 * where a call that a capture forbids would end it.
 */
#include "torch_scene.h"

#include <pthread.h>
#include <stdlib.h>

TestSuite(torch_graph, .timeout = 60, .fini = test_end);

enum { BYTES = 300 * TORCH_KIB };

static const struct tol_torch_pool_id own = {0, 7};

static void begin(CUstream stream) {
    cr_assert_eq(
        torch_scene_driver()->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
        CUDA_SUCCESS);
}

/* Ends a capture, which must not have been broken. */
static CUgraphExec end(CUstream stream) {
    const struct tol_driver_table *driver = torch_scene_driver();
    CUgraph graph = NULL;
    CUgraphExec executable = NULL;
    cr_assert_eq(driver->cuStreamEndCapture(stream, &graph), CUDA_SUCCESS, "it was broken");
    cr_assert_eq(driver->cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
    driver->cuGraphDestroy(graph);
    return executable;
}

static void replay(CUgraphExec executable, CUstream stream) {
    const struct tol_driver_table *driver = torch_scene_driver();
    cr_assert_eq(driver->cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    cr_assert_eq(driver->cuStreamSynchronize(stream), CUDA_SUCCESS);
}

static void fill(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream) {
    cr_assert_eq(torch_scene_driver()->cuMemsetD8Async(at, value, bytes, stream), CUDA_SUCCESS);
}

static unsigned char byte_at(CUdeviceptr at) {
    unsigned char byte = 0;
    cr_assert_eq(torch_scene_driver()->cuMemcpyDtoH_v2(&byte, at, 1), CUDA_SUCCESS);
    return byte;
}

static bool overlap(CUdeviceptr a, CUdeviceptr b) {
    return a < b + BYTES && b < a + BYTES;
}

/* The goal of the arenas: memory freed in a capture is not reused while the graph exists. */
Test(torch_graph, a_replay_writes_to_nobody_elses_memory) {
    const struct torch_library *torch = torch_scene_open(1);
    enum { OTHERS = 30 };
    CUdeviceptr others[OTHERS];
    CUstream stream = torch_scene_stream();
    CUdeviceptr before = torch_scene_block(BYTES, stream);
    torch_scene_free(before, BYTES, stream);
    torch->begin_pool(0, own, NULL);
    begin(stream);
    CUdeviceptr first = torch_scene_block(BYTES, stream);
    fill(first, 1, BYTES, stream);
    torch_scene_free(first, BYTES, stream);
    CUdeviceptr second = torch_scene_block(BYTES, stream);
    cr_assert_eq(second, first, "the graph's own order allows that");
    fill(second, 2, BYTES, stream);
    CUgraphExec graph = end(stream);
    torch->end_pool(0, own);
    torch_scene_free(second, BYTES, stream);
    for (int i = 0; i < OTHERS; i++) {
        others[i] = torch_scene_block(BYTES, stream);
        cr_assert(!overlap(others[i], first), "block %d is the graph's", i);
        fill(others[i], 9, BYTES, stream);
    }
    replay(graph, stream);
    for (int i = 0; i < OTHERS; i++) cr_assert_eq(byte_at(others[i]), 9);
    cr_assert_eq(byte_at(first), 2);
    torch_scene_must_be_clean();
}

/* Without tol_torch_begin_pool too, since a library may capture by itself. */
Test(torch_graph, a_capture_that_was_not_announced_has_its_own_memory) {
    torch_scene_open(1);
    CUstream stream = torch_scene_stream();
    CUdeviceptr before = torch_scene_block(BYTES, stream);
    torch_scene_free(before, BYTES, stream);
    begin(stream);
    CUdeviceptr first = torch_scene_block(BYTES, stream);
    cr_assert_neq(first, before, "it would be shared with what comes after the capture");
    fill(first, 1, BYTES, stream);
    torch_scene_free(first, BYTES, stream);
    CUgraphExec graph = end(stream);
    CUdeviceptr after = torch_scene_block(BYTES, stream);
    cr_assert(!overlap(after, first));
    fill(after, 9, BYTES, stream);
    replay(graph, stream);
    cr_assert_eq(byte_at(after), 9);
    cr_assert_eq(byte_at(first), 1);
    torch_scene_must_be_clean();
}

struct bystander {
    const struct torch_library *torch;
    CUstream stream, captured;
};

/* Takes memory from the driver, asks streams and waits for them: all that breaks a capture. */
static void *allocate_much(void *user) {
    struct bystander *bystander = user;
    CUstream streams[2] = {bystander->stream, NULL};
    CUdeviceptr at[12];
    for (int i = 0; i < 12; i++) {
        at[i] = torch_scene_block((size_t)(1 + i) * TORCH_MIB, streams[i % 2]);
        bystander->torch->record_stream((void *)(uintptr_t)at[i], streams[(i + 1) % 2]);
    }
    for (int i = 0; i < 12; i++) {
        torch_scene_free(at[i], (size_t)(1 + i) * TORCH_MIB, streams[i % 2]);
    }
    bystander->torch->empty_cache();
    return NULL;
}

Test(torch_graph, what_others_allocate_does_not_break_a_capture) {
    pthread_t thread;
    struct bystander bystander = {.torch = torch_scene_open(1)};
    CUstream stream = torch_scene_stream();
    bystander.stream = torch_scene_stream();
    CUdeviceptr early = torch_scene_block(BYTES, stream);
    bystander.torch->begin_pool(0, own, NULL);
    begin(stream);
    CUdeviceptr at = torch_scene_block(5 * TORCH_MIB, stream);
    fill(at, 5, 5 * TORCH_MIB, stream);
    torch_scene_free(early, BYTES, stream);
    cr_assert_eq(pthread_create(&thread, NULL, allocate_much, &bystander), 0);
    pthread_join(thread, NULL);
    allocate_much(&bystander);
    fill(at, 6, 5 * TORCH_MIB, stream);
    CUgraphExec graph = end(stream);
    bystander.torch->end_pool(0, own);
    replay(graph, stream);
    cr_assert_eq(byte_at(at), 6);
    torch_scene_must_be_clean();
}

/* Two captured streams: what one has freed is the other's only by an order that the graph has. */
Test(torch_graph, two_captured_streams_share_nothing_by_chance) {
    const struct torch_library *torch = torch_scene_open(1);
    const struct tol_driver_table *driver = torch_scene_driver();
    CUstream one = torch_scene_stream(), two = torch_scene_stream();
    CUevent fork = NULL, join = NULL;
    cr_assert_eq(driver->cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    cr_assert_eq(driver->cuEventCreate(&join, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    torch->begin_pool(0, own, NULL);
    begin(one);
    cr_assert_eq(driver->cuEventRecord(fork, one), CUDA_SUCCESS);
    cr_assert_eq(driver->cuStreamWaitEvent(two, fork, 0), CUDA_SUCCESS);
    CUdeviceptr first = torch_scene_block(BYTES, one);
    fill(first, 1, BYTES, one);
    torch_scene_free(first, BYTES, one);
    CUdeviceptr second = torch_scene_block(BYTES, two);
    cr_assert(!overlap(first, second), "nothing orders the two");
    fill(second, 2, BYTES, two);
    cr_assert_eq(driver->cuEventRecord(join, two), CUDA_SUCCESS);
    cr_assert_eq(driver->cuStreamWaitEvent(one, join, 0), CUDA_SUCCESS);
    CUgraphExec graph = end(one);
    torch->end_pool(0, own);
    replay(graph, one);
    cr_assert(byte_at(first) == 1 && byte_at(second) == 2);
    torch_scene_must_be_clean();
}

Test(torch_graph, a_released_pool_gives_its_memory_back_when_its_blocks_are_freed) {
    const struct torch_library *torch = torch_scene_open(1);
    CUstream stream = torch_scene_stream();
    torch->begin_pool(0, own, NULL);
    begin(stream);
    CUdeviceptr out = torch_scene_block(BYTES, stream),
                large = torch_scene_block(31 * TORCH_MIB, stream);
    fill(out, 1, BYTES, stream);
    torch_scene_free(large, 31 * TORCH_MIB, stream);
    CUgraphExec graph = end(stream);
    torch->end_pool(0, own);
    replay(graph, stream);
    torch->begin_pool(0, own, NULL); /* a second graph with the memory of the first */
    torch->end_pool(0, own);
    torch->release_pool(0, own);
    cr_assert_geq(torch_scene_number(0, "graph_reserved"), 32 * TORCH_MIB, "the other has it");
    torch_scene_driver()->cuGraphExecDestroy(graph);
    torch->release_pool(0, own);
    cr_assert_geq(torch_scene_number(0, "graph_reserved"), 32 * TORCH_MIB, "a block is live");
    cr_assert_eq(byte_at(out), 1);
    torch_scene_free(out, BYTES, stream);
    torch->empty_cache();
    cr_assert_eq(torch_scene_number(0, "graph_reserved"), 0);
    cr_assert_eq(torch_scene_number(0, "reserved"), 0);
    torch_scene_must_be_clean();
}

/* A block that the captured work uses gets its event only when the capture is over. */
Test(torch_graph, a_stream_that_is_captured_is_recorded_after_the_capture) {
    const struct torch_library *torch = torch_scene_open(1);
    CUstream stream = torch_scene_stream(), captured = torch_scene_stream();
    CUdeviceptr at = torch_scene_block(BYTES, stream);
    torch->begin_pool(0, own, NULL);
    begin(captured);
    fill(at, 1, BYTES, captured);
    torch->record_stream((void *)(uintptr_t)at, captured);
    torch_scene_free(at, BYTES, stream);
    cr_assert_eq(torch_scene_number(0, "waiting"), 1);
    CUgraphExec graph = end(captured);
    torch->end_pool(0, own);
    cr_assert_eq(torch_scene_number(0, "waiting"), 1, "nobody has looked since");
    CUdeviceptr other = torch_scene_block(BYTES, stream);
    cr_assert_eq(torch_scene_number(0, "waiting"), 0);
    replay(graph, captured);
    (void)other;
    torch_scene_must_be_clean();
}

/* torch.cuda.use_mem_pool without a capture: the thread's blocks, on any stream, and in order. */
Test(torch_graph, a_pool_without_a_capture_keeps_streams_in_order) {
    const struct torch_library *torch = torch_scene_open(1);
    CUstream one = torch_scene_stream(), two = torch_scene_stream();
    torch->begin_pool(0, own, NULL);
    CUdeviceptr first = torch_scene_block(BYTES, one);
    for (int i = 0; i < 40; i++) fill(first, 1, BYTES, one);
    torch_scene_free(first, BYTES, one);
    CUdeviceptr second = torch_scene_block(BYTES, two);
    fill(second, 2, BYTES, two);
    torch->end_pool(0, own);
    cr_assert_gt(torch_scene_number(0, "graph_allocated"), 0);
    torch_scene_driver()->cuStreamSynchronize(one);
    torch_scene_driver()->cuStreamSynchronize(two);
    cr_assert_eq(byte_at(second), 2);
    torch_scene_free(second, BYTES, two);
    torch->release_pool(0, own);
    cr_assert_eq(torch_scene_number(0, "graph_reserved"), 0);
    torch_scene_must_be_clean();
}

/* As PyTorch's side streams in a capture: the first block on one is allocated in the capture. */
Test(torch_graph, a_stream_is_first_used_while_it_is_captured) {
    const struct torch_library *torch = torch_scene_open(1);
    const struct tol_driver_table *driver = torch_scene_driver();
    CUstream stream = torch_scene_stream(), side = torch_scene_stream();
    CUevent forked = NULL, joined = NULL;
    cr_assert_eq(driver->cuEventCreate(&forked, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    cr_assert_eq(driver->cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    torch->begin_pool(0, own, NULL);
    begin(stream);
    cr_assert_eq(driver->cuEventRecord(forked, stream), CUDA_SUCCESS);
    cr_assert_eq(driver->cuStreamWaitEvent(side, forked, 0), CUDA_SUCCESS);
    CUdeviceptr block = torch_scene_block(BYTES, side);
    fill(block, 5, BYTES, side);
    cr_assert_eq(driver->cuEventRecord(joined, side), CUDA_SUCCESS);
    cr_assert_eq(driver->cuStreamWaitEvent(stream, joined, 0), CUDA_SUCCESS);
    CUgraphExec graph = end(stream);
    torch->end_pool(0, own);
    replay(graph, stream);
    cr_assert_eq(byte_at(block), 5);
    driver->cuGraphExecDestroy(graph);
    driver->cuEventDestroy_v2(forked);
    driver->cuEventDestroy_v2(joined);
    torch_scene_free(block, BYTES, side);
    torch->release_pool(0, own);
    torch_scene_must_be_clean();
}

/*
 * Programmatic dependent launch: a kernel that uses the bytes of an earlier one without waiting is
 * reported, whatever the order in which they ran.
 */
#include "test/test_graph.h"
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

static CUdeviceptr data, other, flag_address;
static volatile unsigned *flag;
static CUstream stream, side;

static void open_streams(void) {
    api_context(0);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc_v2(&data, 4096));
    OK(cuMemAlloc_v2(&other, 4096));
    OK(cuMemsetD8_v2(data, 0, 4096));
    OK(cuMemsetD8_v2(other, 0, 4096));
    OK(cuCtxSynchronize());
    flag = api_flag(&flag_address);
    test_capture(stderr);
}

TestSuite(programmatic, .init = open_streams);

#define TRIGGER "griddepcontrol.launch_dependents;\n"
#define WAIT "griddepcontrol.wait;\n"
#define LOAD "ld.global.u32 %r1, [%rd2];\n"
#define STORE "st.global.u32 [%rd2], %r9;\n"
#define STORE_OTHER "st.global.u32 [%rd4], %r1;\n"

/* A kernel of that name with a body: %rd2 is the thread's word of data, %rd4 that of other. The
 * body begins at line 9. */
static CUfunction kernel_for(unsigned target, const char *name, const char *body) {
    static char text[4000];
    snprintf(text, sizeof text,
             ".version 8.0\n.target sm_%u\n.address_size 64\n.shared .align 128 .b8 room[256];\n"
             ".visible .entry %s(.param .u64 data, .param .u64 other)\n{\n"
             ".reg .b32 %%r<10>; .reg .b64 %%rd<10>; .reg .pred %%p<4>;\n"
             "ld.param.u64 %%rd1, [data]; ld.param.u64 %%rd3, [other]; mov.u32 %%r0, %%tid.x; "
             "mov.u32 %%r9, 7; mul.wide.u32 %%rd5, %%r0, 4; add.u64 %%rd2, %%rd1, %%rd5; "
             "add.u64 %%rd4, %%rd3, %%rd5;\n"
             "%sret;\n}\n",
             target, name, body);
    return api_function(text, name);
}

static CUfunction kernel(const char *name, const char *body) {
    return kernel_for(90, name, body);
}

static CUlaunchAttribute serialization(int allowed) {
    return (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                               .value.programmaticStreamSerializationAllowed = allowed};
}

static void launch_with(CUfunction function, CUstream to, unsigned blocks, unsigned threads,
                        CUlaunchAttribute *attribute) {
    void *parameters[] = {&data, &other};
    CUlaunchConfig config = {blocks, 1, 1, threads, 1, 1, 0, to, attribute, attribute != NULL};
    OK(cuLaunchKernelEx(&config, function, parameters, NULL));
}

static void launch(CUfunction function) {
    launch_with(function, stream, 1, 32, NULL);
}

static void launch_early(CUfunction function) {
    CUlaunchAttribute attribute = serialization(1);
    launch_with(function, stream, 1, 32, &attribute);
}

static void expect_nothing(void) {
    *flag = 1;
    OK(cuCtxSynchronize());
    cr_assert_str_eq(test_captured(stderr), "");
}

/* Exactly one report, with these in it. */
static void expect(const char *where, const char *what) {
    *flag = 1;
    OK(cuCtxSynchronize());
    const char *told = test_captured(stderr), *line = strchr(told, '\n');
    cr_assert(line != NULL && line[1] == '\0', "one report, not:\n%s", told);
    cr_assert(strstr(told, "missing griddepcontrol.wait in kernel ") != NULL, "%s", told);
    cr_assert(strstr(told, where) != NULL, "'%s' is not in:\n%s", where, told);
    cr_assert(strstr(told, what) != NULL, "'%s' is not in:\n%s", what, told);
}

Test(programmatic, a_read_without_a_wait_is_told_of) {
    launch(kernel("first", TRIGGER STORE));
    launch_early(kernel("second", LOAD STORE_OTHER));
    expect("kernel second in block (0,0,0), thread (0,0,0), at PTX line 9: ld.global.u32 %r1",
           "a load of 4 bytes at 0x");
}

Test(programmatic, a_wait_behind_the_read_is_too_late) {
    launch(kernel("first", TRIGGER STORE));
    launch_early(kernel("second", LOAD WAIT STORE_OTHER));
    expect("at PTX line 9", "which kernel first writes");
}

Test(programmatic, a_read_behind_the_wait_is_right) {
    launch(kernel("first", TRIGGER STORE));
    launch_early(kernel("second", TRIGGER WAIT LOAD STORE_OTHER));
    expect_nothing();
    cr_assert_eq(api_read(other), 7);
}

Test(programmatic, what_the_first_one_does_not_use_needs_no_wait) {
    launch(kernel("first", TRIGGER STORE));
    launch_early(kernel("second", "mov.u32 %r1, 3;\n" STORE_OTHER WAIT LOAD));
    expect_nothing();
    cr_assert_eq(api_read(other), 3);
}

Test(programmatic, an_ordinary_launch_waits_for_all) {
    CUlaunchAttribute no = serialization(0);
    launch(kernel("first", TRIGGER STORE));
    launch(kernel("second", LOAD STORE_OTHER));
    launch_with(kernel("third", LOAD STORE_OTHER), stream, 1, 32, &no);
    expect_nothing();
}

/* No instruction says that dependents may begin: they may when its blocks have ended, and that is
 * not to say that its memory can be seen. Nothing here has a reason to be looked at before the
 * second one is queued; until then the first one has not begun. */
Test(programmatic, a_first_kernel_without_a_trigger_is_no_different) {
    api_hold(flag_address, stream);
    launch(kernel("first", STORE));
    launch_early(kernel("second", LOAD STORE_OTHER));
    expect("kernel second", "which kernel first writes");
}

Test(programmatic, a_write_over_what_the_first_one_reads_is_told_of) {
    launch(kernel("first", TRIGGER LOAD STORE_OTHER));
    launch_early(kernel("second", STORE WAIT));
    expect("kernel second", "which kernel first reads");
}

Test(programmatic, a_write_over_what_the_first_one_writes_is_told_of) {
    launch(kernel("first", TRIGGER STORE));
    launch_early(kernel("second", STORE WAIT));
    expect("a store of 4 bytes", "which kernel first writes");
}

Test(programmatic, other_bytes_are_other_bytes) {
    launch(kernel("first", TRIGGER "st.global.u8 [%rd2], %r9;\n"));
    launch_early(kernel("second", "ld.global.u8 %r1, [%rd2+1];\n" WAIT));
    expect_nothing();
}

Test(programmatic, many_pages_are_remembered) {
    enum { PAGES = 256, PAGE = 4096 };
    CUlaunchAttribute attribute = serialization(1);
    OK(cuMemAlloc_v2(&data, PAGES * PAGE));
    OK(cuMemsetD8_v2(data, 0, PAGES * PAGE));
    CUfunction first = kernel("first", TRIGGER "mul.wide.u32 %rd6, %r0, 4096;\n"
                                               "add.u64 %rd7, %rd1, %rd6;\n"
                                               "st.global.u32 [%rd7], %r9;\n");
    unsigned found = 0;
    for (unsigned page = 0; page < PAGES; page += 5) {
        char body[80];
        snprintf(body, sizeof body, "ld.global.u32 %%r1, [%%rd1+%u];\n" WAIT, page * PAGE);
        launch_with(first, stream, 1, PAGES, NULL);
        launch_with(kernel("second", body), stream, 1, 1, &attribute);
        OK(cuStreamSynchronize(stream));
    }
    for (const char *c = test_captured(stderr); (c = strchr(c, '\n')) != NULL; c++) found++;
    cr_assert_eq(found, (PAGES + 4) / 5, "%u", found);
}

/* ---- what is in between ---- */

Test(programmatic, a_program_that_waits_orders_them) {
    launch(kernel("first", TRIGGER STORE));
    OK(cuStreamSynchronize(stream));
    launch_early(kernel("second", LOAD STORE_OTHER));
    expect_nothing();
    launch(kernel("first", TRIGGER STORE));
    OK(cuCtxSynchronize());
    launch_early(kernel("second", LOAD STORE_OTHER));
    expect_nothing();
}

Test(programmatic, a_copy_or_an_event_in_between_orders_them) {
    CUevent event = graph_event();
    launch(kernel("first", TRIGGER STORE));
    OK(cuMemsetD32Async(other, 1, 1, stream));
    launch_early(kernel("second", LOAD STORE_OTHER));
    launch(kernel("first", TRIGGER STORE));
    OK(cuEventRecord(event, stream));
    launch_early(kernel("second", LOAD STORE_OTHER));
    expect_nothing();
}

static void check_streams_as_well(void) {
    setenv("TOLLENS_SOFT_CHECK", "sync,stream", 1);
    open_streams();
}

Test(programmatic_and_streams, kernels_of_the_legacy_stream_are_told_of,
     .init = check_streams_as_well) {
    CUstream blocking = NULL;
    OK(cuStreamCreate(&blocking, 0));
    launch_with(kernel("first", TRIGGER STORE), NULL, 1, 32, NULL);
    CUlaunchAttribute attribute = serialization(1);
    launch_with(kernel("second", LOAD STORE_OTHER), NULL, 1, 32, &attribute);
    expect("kernel second", "which kernel first writes");
}

/* ---- three in a row ---- */

Test(programmatic, a_trigger_behind_the_wait_passes_it_on) {
    launch(kernel("first", TRIGGER STORE));
    launch_early(kernel("second", WAIT TRIGGER));
    launch_early(kernel("third", LOAD STORE_OTHER));
    expect_nothing();
}

Test(programmatic, a_trigger_before_the_wait_does_not) {
    launch(kernel("first", TRIGGER STORE));
    launch_early(kernel("second", TRIGGER WAIT));
    launch_early(kernel("third", LOAD STORE_OTHER));
    expect("kernel third", "which kernel first writes");
}

Test(programmatic, an_exit_without_a_wait_does_not_either) {
    launch(kernel("first", TRIGGER STORE));
    launch_early(kernel("second", "mov.u32 %r1, 1;\n"));
    launch_early(kernel("third", LOAD STORE_OTHER));
    expect("kernel third", "which kernel first writes");
}

Test(programmatic, a_long_row_is_followed_as_far_as_it_matters) {
    CUfunction between = kernel("between", WAIT TRIGGER);
    launch(kernel("first", TRIGGER STORE));
    for (int i = 0; i < 100; i++) launch_early(between);
    launch_early(kernel("last", TRIGGER LOAD WAIT STORE));
    launch_early(kernel("behind", LOAD));
    expect("kernel behind", "which kernel last writes");
}

/* ---- threads that wait for others ---- */

#define OF_WARP_0(body) "setp.ge.u32 %p1, %r0, 32;\n@%p1 bra OUT;\n" body "OUT:\n"

Test(programmatic, a_warp_that_has_not_waited_is_told_of) {
    CUlaunchAttribute attribute = serialization(1);
    launch_with(kernel("first", TRIGGER STORE), stream, 1, 64, NULL);
    launch_with(kernel("second", OF_WARP_0(WAIT) LOAD STORE_OTHER), stream, 1, 64, &attribute);
    expect("thread (32,0,0)", "which kernel first writes");
}

Test(programmatic, a_barrier_behind_the_wait_serves_all_warps) {
    CUlaunchAttribute attribute = serialization(1);
    launch_with(kernel("first", TRIGGER STORE), stream, 1, 64, NULL);
    launch_with(kernel("second", OF_WARP_0(WAIT) "bar.sync 0;\n" LOAD STORE_OTHER), stream, 1, 64,
                &attribute);
    expect_nothing();
}

Test(programmatic, a_block_waits_for_itself) {
    CUlaunchAttribute attribute = serialization(1);
    launch(kernel("first", TRIGGER STORE));
    launch_with(kernel("second", "mov.u32 %r2, %ctaid.x;\nsetp.eq.u32 %p1, %r2, 1;\n"
                                 "@%p1 bra OUT;\n" WAIT "OUT:\n" LOAD),
                stream, 2, 32, &attribute);
    expect("block (1,0,0)", "which kernel first writes");
}

Test(programmatic, a_flag_of_the_first_kernel_may_be_used_instead) {
    launch(kernel("first",
                  TRIGGER STORE "fence.acq_rel.gpu;\nst.release.gpu.global.u32 [%rd1+1024], "
                                "%r9;\n"));
    launch_early(kernel("second", "ld.acquire.gpu.global.u32 %r2, [%rd1+1024];\n" LOAD));
    expect_nothing();
}

Test(programmatic, a_copy_that_began_before_the_wait_is_told_of) {
    launch(kernel("first", TRIGGER STORE));
    launch_early(kernel("second", "mov.u32 %r3, room;\nmad.lo.u32 %r3, %r0, 4, %r3;\n"
                                  "cp.async.ca.shared.global [%r3], [%rd2], 4;\n" WAIT
                                  "cp.async.wait_all;\nld.shared.u32 %r1, [%r3];\n" STORE_OTHER));
    expect("at PTX line 11: cp.async", "which kernel first writes");
}

/* The box is read at its wait, which is after griddepcontrol.wait. */
Test(programmatic, a_box_that_began_before_the_wait_is_told_of) {
    enum { WORDS = 2 };
    CUtensorMap map;
    const cuuint64_t size = 256;
    const cuuint32_t box = 32, step = 1;
    OK(cuTensorMapEncodeTiled(&map, WORDS, 1, (void *)(uintptr_t)data, &size, NULL, &box, &step, 0,
                              0, 0, 0));
    OK(cuMemcpyHtoD_v2(other + 2048, &map, sizeof map));
    launch_with(kernel("first", TRIGGER STORE), stream, 1, 1, NULL);
    CUlaunchAttribute attribute = serialization(1);
    launch_with(
        kernel("second",
               "mov.u32 %r3, room;\nmbarrier.init.shared.b64 [%r3+128], 1;\nmov.u32 %r4, 0;\n"
               "mbarrier.arrive.expect_tx.shared.b64 %rd6, [%r3+128], 128;\nadd.u64 %rd7, %rd3, "
               "2048;\nadd.u32 %r5, %r3, 128;\n"
               "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%r3], [%rd7, {%r4}], [%r5];\n" WAIT
               "AGAIN:\nmbarrier.try_wait.parity.shared.b64 %p1, [%r3+128], 0;\n@!%p1 bra AGAIN;\n"
               "ld.shared.u32 %r1, [%r3];\n" STORE_OTHER),
        stream, 1, 1, &attribute);
    expect("at PTX line 15: cp.async.bulk.tensor", "which kernel first writes");
}

Test(programmatic, texts_before_sm_90_can_neither_trigger_nor_wait) {
    launch(kernel_for(80, "first", STORE));
    launch_early(kernel_for(80, "second", LOAD STORE_OTHER));
    expect_nothing();
}

Test(programmatic, a_text_before_sm_90_cannot_wait_for_a_trigger) {
    launch(kernel("first", TRIGGER STORE));
    launch_early(kernel_for(80, "second", LOAD STORE_OTHER));
    expect("thread (0,0,0)", "which kernel first writes");
}

/* ---- events ---- */

static CUlaunchAttribute event_attribute(CUevent event) {
    return (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
                               .value.programmaticEvent.event = event};
}

static CUevent plain_event(void) {
    CUevent event = NULL;
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    return event;
}

Test(programmatic, a_programmatic_event_lets_another_stream_begin_early) {
    CUevent event = plain_event();
    CUlaunchAttribute attribute = event_attribute(event);
    launch_with(kernel("first", TRIGGER STORE), stream, 1, 32, &attribute);
    OK(cuStreamWaitEvent(side, event, 0));
    launch_with(kernel("second", LOAD STORE_OTHER), side, 1, 32, NULL);
    expect("kernel second", "which kernel first writes");
}

Test(programmatic, behind_a_programmatic_event_a_wait_helps) {
    CUevent event = plain_event();
    CUlaunchAttribute attribute = event_attribute(event);
    launch_with(kernel("first", TRIGGER STORE), stream, 1, 32, &attribute);
    OK(cuStreamWaitEvent(side, event, 0));
    launch_with(kernel("second", WAIT LOAD STORE_OTHER), side, 1, 32, NULL);
    OK(cuEventRecord(event, stream)); /* the end of it: that is another matter */
    OK(cuStreamWaitEvent(side, event, 0));
    launch_with(kernel("third", LOAD STORE_OTHER), side, 1, 32, NULL);
    expect_nothing();
}

/* ---- graphs ---- */

static CUgraphNode add_kernel(CUgraph graph, CUfunction function) {
    CUgraphNode node = NULL;
    void *parameters[] = {&data, &other};
    CUDA_KERNEL_NODE_PARAMS params = {.func = function,
                                      .gridDimX = 1,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = 32,
                                      .blockDimY = 1,
                                      .blockDimZ = 1,
                                      .kernelParams = parameters};
    OK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
    return node;
}

static const CUgraphEdgeData early = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                      .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};

Test(programmatic, an_edge_of_a_graph_lets_a_kernel_begin_early) {
    CUgraph graph = graph_new();
    CUgraphNode one = add_kernel(graph, kernel("first", STORE)),
                two = add_kernel(graph, kernel("second", LOAD STORE_OTHER));
    OK(cuGraphAddDependencies_v2(graph, &one, &two, &early, 1));
    graph_run(graph, stream);
    expect("kernel second", "which kernel first writes");
}

Test(programmatic, a_plain_edge_orders_and_so_does_another_way) {
    CUgraph graph = graph_new();
    CUgraphNode one = add_kernel(graph, kernel("first", STORE)),
                between = add_kernel(graph, kernel("between", "mov.u32 %r1, 1;\n")),
                two = add_kernel(graph, kernel("second", LOAD STORE_OTHER)),
                three = add_kernel(graph, kernel("third", LOAD));
    CUgraphNode from[] = {one, between, one}, to[] = {between, two, three};
    OK(cuGraphAddDependencies_v2(graph, &one, &two, &early, 1));
    OK(cuGraphAddDependencies(graph, from, to, 3));
    graph_run(graph, stream);
    expect_nothing();
}

Test(programmatic, edges_that_make_no_sense_are_refused) {
    CUgraph graph = graph_new();
    CUgraphNode one = add_kernel(graph, kernel("first", STORE)),
                two = add_kernel(graph, kernel("second", LOAD)), empty = NULL;
    OK(cuGraphAddEmptyNode(&empty, graph, NULL, 0));
    CUgraphEdgeData data_of[] = {{.from_port = 3, .type = 1},
                                 {.from_port = 1, .to_port = 1, .type = 1},
                                 {.type = 1},
                                 {.from_port = 1, .type = 2}};
    for (size_t i = 0; i < sizeof data_of / sizeof data_of[0]; i++) {
        REFUSED(cuGraphAddDependencies_v2(graph, &one, &two, &data_of[i], 1),
                CUDA_ERROR_INVALID_VALUE);
    }
    REFUSED(cuGraphAddDependencies_v2(graph, &one, &empty, &early, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphAddDependencies_v2(graph, &empty, &two, &early, 1), CUDA_ERROR_INVALID_VALUE);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    REFUSED(cuGraphAddNode_v2(&empty, graph, &one, &early, 1, &params), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(graph_edge_count(graph), 0);
    OK(cuGraphAddDependencies_v2(graph, &one, &two, &early, 1));
}

/* The edge of a graph with two nodes. */
static CUgraphEdgeData edge_of(CUgraph graph) {
    CUgraphNode from = NULL, to = NULL;
    CUgraphEdgeData had = {.type = 99};
    size_t count = 1;
    OK(cuGraphGetEdges_v2(graph, &from, &to, &had, &count));
    cr_assert_eq(count, 1);
    return had;
}

Test(programmatic, a_capture_keeps_what_a_launch_says) {
    CUfunction first = kernel("first", STORE), second = kernel("second", LOAD STORE_OTHER);
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch(first);
    launch_early(second);
    CUgraph graph = capture_end(stream);
    CUgraphEdgeData had = edge_of(graph);
    cr_assert(had.type == early.type && had.from_port == early.from_port && had.to_port == 0);
    graph_run(graph, stream);
    expect("kernel second", "which kernel first writes");
}

Test(programmatic, a_capture_keeps_a_programmatic_event) {
    CUevent event = plain_event(), join = plain_event();
    CUlaunchAttribute attribute = event_attribute(event);
    CUfunction first = kernel("first", STORE), second = kernel("second", LOAD STORE_OTHER);
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch_with(first, stream, 1, 32, &attribute);
    OK(cuStreamWaitEvent(side, event, 0));
    launch_with(second, side, 1, 32, NULL);
    OK(cuEventRecord(join, side));
    OK(cuStreamWaitEvent(stream, join, 0));
    CUgraph graph = capture_end(stream);
    cr_assert_eq(edge_of(graph).type, early.type);
    graph_run(graph, stream);
    expect("kernel second", "which kernel first writes");
}

Test(programmatic, what_is_no_kernel_is_captured_behind_all_of_one) {
    CUlaunchAttribute attribute = event_attribute(plain_event());
    CUevent event = attribute.value.programmaticEvent.event, join = plain_event();
    CUfunction first = kernel("first", STORE);
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch_with(first, stream, 1, 32, &attribute);
    OK(cuStreamWaitEvent(side, event, 0));
    OK(cuMemsetD32Async(other, 1, 1, side));
    OK(cuEventRecord(join, side));
    OK(cuStreamWaitEvent(stream, join, 0));
    cr_assert_eq(edge_of(capture_end(stream)).type, 0);
    expect_nothing();
}

Test(programmatic, nothing_is_kept_for_long) {
    CUfunction one = kernel("first", TRIGGER STORE), two = kernel("second", TRIGGER WAIT LOAD);
    launch(one);
    for (int i = 0; i < 50; i++) launch_early(two);
    OK(cuCtxSynchronize());
    size_t before = api_heap();
    for (int i = 0; i < 500; i++) launch_early(two);
    OK(cuCtxSynchronize());
    cr_assert(api_heap() < before + 500 * 64, "%zu more", api_heap() - before);
}

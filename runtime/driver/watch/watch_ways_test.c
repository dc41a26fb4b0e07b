/*
 * Watches: all ways in which a block's bytes leave it, the work of graphs, and what kernels truly
 * access.
 */
#include "watch_state.h"

#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 8192, WORDS = BYTES / 4, LOG_MAX = 64 };

static struct tol_watch *watch;
static struct tol_stream *stream;
static struct tol_buffer *weights, *other;
static struct tol_pinned *pinned;
static struct tol_module *module;
static const struct tol_driver_table *cu;
static struct {
    enum tol_watch_kind kind;
    char call[64], kernel[64];
    double value;
    bool refused;
} alarms[LOG_MAX];
static unsigned alarm_count;

static void on_alarm(const struct tol_watch_alarm *alarm, void *user) {
    (void)user;
    cr_assert(alarm_count < LOG_MAX);
    alarms[alarm_count].kind = alarm->kind;
    alarms[alarm_count].value = alarm->value;
    alarms[alarm_count].refused = alarm->refused;
    snprintf(alarms[alarm_count].call, sizeof alarms[0].call, "%s", alarm->call);
    snprintf(alarms[alarm_count].kernel, sizeof alarms[0].kernel, "%s", alarm->kernel);
    alarm_count++;
}

static void begin(const char *rules) {
    char *text = test_ptx("handwritten/watched.ptx");
    void *host = NULL;
    MUST(tol_watch_create(&(struct tol_watch_options){.rules = rules, .on_alarm = on_alarm},
                          &watch));
    MUST(tol_watch_install(watch, test_driver()));
    cu = tol_driver_functions(test_driver());
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_buffer_create(test_context(), BYTES, 1, &weights));
    MUST(tol_buffer_create(test_context(), BYTES, 1, &other));
    MUST(tol_pinned_create(test_context(), BYTES, &pinned));
    MUST(tol_module_load(test_context(), text, strlen(text), NULL, &module));
    MUST(tol_pinned_access(pinned, &host));
    memset(host, 3, BYTES);
    MUST(tol_buffer_write(weights, host, BYTES));
    MUST(tol_buffer_write(other, host, BYTES));
    MUST(tol_watch_add(watch, tol_buffer_address(weights), BYTES, "weights"));
    MUST(tol_context_bind(test_context()));
    free(text);
}

static void end(void) {
    tol_module_destroy(module);
    tol_stream_destroy(stream);
    tol_buffer_destroy(weights);
    tol_buffer_destroy(other);
    tol_pinned_destroy(pinned);
    tol_interpose_remove(test_driver());
    test_end();
    tol_watch_destroy(watch);
}
TestSuite(watch_ways, .fini = end);

static struct tol_kernel *kernel(const char *name) {
    struct tol_kernel *result = NULL;
    MUST(tol_module_kernel(module, name, &result));
    return result;
}

static struct tol_watch_block seen(void) {
    struct tol_watch_block block;
    MUST(tol_watch_find(watch, tol_buffer_address(weights), &block));
    return block;
}

static CUdeviceptr at(void) {
    return tol_buffer_address(weights);
}

static CUdeviceptr host_address(void) {
    void *data = NULL;
    MUST(tol_pinned_access(pinned, &data));
    return (CUdeviceptr)(uintptr_t)data;
}

static void settle(void) {
    MUST(tol_stream_synchronize(stream));
}

/* ---- ways ------------------------------------------------------------------------------------ */

Test(watch_ways, every_copy_to_the_host_is_one) {
    begin("[[rule]]\nname = \"stay\"\nkind = \"no_read_back\"\n");
    const CUdeviceptr host = host_address();
    void *data = (void *)(uintptr_t)host;
    const CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = at(),
                                .srcPitch = 128,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = data,
                                .dstPitch = 16,
                                .WidthInBytes = 16,
                                .Height = 4};
    const CUDA_MEMCPY3D layers = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                  .srcDevice = at(),
                                  .srcPitch = 64,
                                  .srcHeight = 4,
                                  .dstMemoryType = CU_MEMORYTYPE_HOST,
                                  .dstHost = data,
                                  .dstPitch = 16,
                                  .dstHeight = 2,
                                  .WidthInBytes = 16,
                                  .Height = 2,
                                  .Depth = 2};
    CUstream handle = tol_stream_handle(stream);
    cr_assert(cu->cuMemcpyDtoH_v2(data, at(), 64) == CUDA_SUCCESS);
    cr_assert(cu->cuMemcpyDtoHAsync_v2(data, at(), 64, handle) == CUDA_SUCCESS);
    cr_assert(cu->cuMemcpy2D_v2(&rows) == CUDA_SUCCESS);
    cr_assert(cu->cuMemcpy2DUnaligned_v2(&rows) == CUDA_SUCCESS);
    cr_assert(cu->cuMemcpy2DAsync_v2(&rows, handle) == CUDA_SUCCESS);
    cr_assert(cu->cuMemcpy3D_v2(&layers) == CUDA_SUCCESS);
    cr_assert(cu->cuMemcpy3DAsync_v2(&layers, handle) == CUDA_SUCCESS);
    cr_assert(cu->cuMemcpy(host, at(), 64) == CUDA_SUCCESS);
    cr_assert(cu->cuMemcpyAsync(host, at(), 64, handle) == CUDA_SUCCESS);
    cr_assert(cu->cuMemcpyDtoD_v2(host, at(), 64) == CUDA_SUCCESS);
    cr_assert(cu->cuMemcpyDtoDAsync_v2(host, at(), 64, handle) == CUDA_SUCCESS);
    settle();
    cr_assert(alarm_count == 11 && seen().copies_out == 11 && seen().bytes_out == 11 * 64,
              "%u, %llu bytes", alarm_count, (unsigned long long)seen().bytes_out);
    cr_assert(seen().bytes_read == 0);
    for (unsigned i = 0; i < alarm_count; i++) cr_assert(alarms[i].value == 64, "%u", i);
    cr_assert(cu->cuMemcpyDtoD_v2(tol_buffer_address(other), at(), 64) == CUDA_SUCCESS);
    cr_assert(alarm_count == 11 && seen().bytes_read == 64);
}

Test(watch_ways, a_rule_about_copies_means_those_on_the_device_too) {
    begin("[[rule]]\nname = \"there\"\nkind = \"no_copy\"\nrefuse = true\n");
    const CUdeviceptr to = tol_buffer_address(other);
    CUcontext context = NULL;
    cr_assert(cu->cuCtxGetCurrent(&context) == CUDA_SUCCESS);
    cr_assert(cu->cuMemcpyDtoD_v2(to, at(), 64) == CUDA_ERROR_NOT_PERMITTED);
    cr_assert(cu->cuMemcpyPeer(to, context, at(), context, 64) == CUDA_ERROR_NOT_PERMITTED);
    cr_assert(cu->cuMemcpyPeerAsync(to, context, at(), context, 64, tol_stream_handle(stream)) ==
              CUDA_ERROR_NOT_PERMITTED);
    cr_assert(cu->cuMemcpyDtoH_v2((void *)(uintptr_t)host_address(), at(), 64) ==
              CUDA_ERROR_NOT_PERMITTED);
    cr_assert(alarm_count == 4 && alarms[0].refused && seen().bytes_read == 0);
    cr_assert(cu->cuMemcpyDtoD_v2(at(), to, 64) == CUDA_SUCCESS);
    cr_assert(alarm_count == 4 && seen().bytes_written == 64);
}

Test(watch_ways, fills_of_rows_write) {
    begin("[[rule]]\nname = \"once\"\nkind = \"written_once\"\n");
    cr_assert(cu->cuMemsetD8Async(at(), 1, BYTES, tol_stream_handle(stream)) == CUDA_SUCCESS);
    cr_assert(alarm_count == 0);
    cr_assert(cu->cuMemsetD2D8_v2(at(), 256, 1, 32, 4) == CUDA_SUCCESS);
    cr_assert(cu->cuMemsetD2D16_v2(at(), 256, 1, 32, 4) == CUDA_SUCCESS);
    cr_assert(cu->cuMemsetD2D32Async(at(), 256, 1, 32, 4, tol_stream_handle(stream)) ==
              CUDA_SUCCESS);
    settle();
    cr_assert(alarm_count == 3 && seen().bytes_written == BYTES + 128 + 256 + 512);
    cr_assert(alarms[2].value == BYTES + 128 + 256 + 512);
}

/* ---- shares ---------------------------------------------------------------------------------- */

Test(watch_ways, memory_that_is_shared_raises_an_alarm) {
    begin("[[rule]]\nname = \"alone\"\nkind = \"no_share\"\n");
    CUipcMemHandle ipc;
    cr_assert(cu->cuIpcGetMemHandle(&ipc, at() + 100) == CUDA_SUCCESS);
    cr_assert(alarm_count == 1 && alarms[0].value == BYTES && seen().shares == 1);
    cr_assert(cu->cuIpcGetMemHandle(&ipc, tol_buffer_address(other)) == CUDA_SUCCESS);
    cr_assert(alarm_count == 1);
}

Test(watch_ways, a_second_mapping_and_a_handle_are_shares) {
    begin("[[rule]]\nname = \"alone\"\nkind = \"no_share\"\n");
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes =
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    size_t page = 0;
    CUdeviceptr range = 0;
    CUmemGenericAllocationHandle handle = 0, again = 0;
    int file = -1;
    cr_assert(cu->cuMemGetAllocationGranularity(&page, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
              CUDA_SUCCESS);
    cr_assert(cu->cuMemAddressReserve(&range, 3 * page, 0, 0, 0) == CUDA_SUCCESS);
    cr_assert(cu->cuMemCreate(&handle, page, &prop, 0) == CUDA_SUCCESS);
    cr_assert(cu->cuMemMap(range, page, 0, handle, 0) == CUDA_SUCCESS);
    MUST(tol_watch_add(watch, range + 256, 1024, "mapped"));
    cr_assert(cu->cuMemExportToShareableHandle(
                  &file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS);
    cr_assert(alarm_count == 1 && alarms[0].value == 1024, "%u", alarm_count);
    cr_assert(cu->cuMemMap(range + page, page, 0, handle, 0) == CUDA_SUCCESS);
    cr_assert(alarm_count == 2 && strcmp(alarms[1].call, "cuMemMap") == 0);
    cr_assert(cu->cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)range) == CUDA_SUCCESS);
    cr_assert(alarm_count == 3 && alarms[2].value == 1024, "%u, %g", alarm_count, alarms[2].value);
    cr_assert(cu->cuMemUnmap(range, 2 * page) == CUDA_SUCCESS); /* now it is mapped nowhere */
    MUST(tol_watch_drop(watch, range + 256));
    cr_assert(cu->cuMemMap(range + page, page, 0, handle, 0) == CUDA_SUCCESS);
    MUST(tol_watch_add(watch, range + page, page, "mapped"));
    cr_assert(alarm_count == 3);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static struct tol_graph *captured_read(size_t bytes) {
    struct tol_graph *graph = NULL;
    void *data = NULL;
    MUST(tol_pinned_access(pinned, &data));
    MUST(tol_graph_capture_begin(stream));
    cr_assert(cu->cuMemcpyDtoHAsync_v2(data, at(), bytes, tol_stream_handle(stream)) ==
              CUDA_SUCCESS);
    MUST(tol_graph_capture_end(stream, &graph));
    return graph;
}

Test(watch_ways, a_graph_does_its_work_at_each_launch_and_not_before) {
    begin("[[rule]]\nname = \"stay\"\nkind = \"no_read_back\"\n");
    struct tol_graph *graph = captured_read(100);
    struct tol_graph_exec *exec = NULL;
    MUST(tol_graph_instantiate(graph, &exec));
    cr_assert(alarm_count == 0 && seen().copies_out == 0);
    for (unsigned i = 1; i <= 3; i++) {
        MUST(tol_graph_launch(exec, stream));
        cr_assert(alarm_count == i && alarms[i - 1].value == 100);
        cr_assert(strcmp(alarms[i - 1].call, "cuGraphLaunch") == 0);
    }
    settle();
    cr_assert(seen().copies_out == 3 && seen().bytes_out == 300);
    struct tol_graph *more = captured_read(200);
    MUST(tol_graph_exec_update(exec, more));
    MUST(tol_graph_launch(exec, stream));
    settle();
    cr_assert(alarm_count == 4 && alarms[3].value == 200);
    MUST(tol_watch_drop(watch, at())); /* what was found is found anew */
    MUST(tol_graph_launch(exec, stream));
    settle();
    cr_assert(alarm_count == 4 && tol_watch_launches_unread(watch) == 0);
    tol_graph_exec_destroy(exec);
    tol_graph_destroy(graph);
    tol_graph_destroy(more);
}

Test(watch_ways, kernels_of_a_graph_and_graphs_in_graphs_are_seen) {
    begin("[[rule]]\nname = \"stay\"\nkind = \"no_read_back\"\nrefuse = true\n");
    struct tol_graph *inner = captured_read(100), *graph = NULL;
    struct tol_graph_exec *exec = NULL;
    MUST(tol_graph_create(test_context(), &graph));
    unsigned node = 0;
    for (unsigned i = 0; i < 2; i++) {
        MUST(tol_graph_add_kernel(graph, kernel("carry"), tol_launch_linear(WORDS, 128),
                                  TOL_ARGUMENTS(tol_buffer_address(other), at(), (unsigned)WORDS),
                                  NULL, 0, &node));
    }
    MUST(tol_graph_instantiate(graph, &exec));
    cr_assert(seen().launches == 0);
    MUST(tol_graph_launch(exec, stream));
    settle();
    cr_assert(seen().launches == 2, "%llu", (unsigned long long)seen().launches);
    MUST(tol_graph_exec_set_kernel(
        exec, node, kernel("carry"), tol_launch_linear(WORDS, 128),
        TOL_ARGUMENTS(tol_buffer_address(other), tol_buffer_address(other), (unsigned)WORDS)));
    MUST(tol_graph_launch(exec, stream));
    settle();
    cr_assert(seen().launches == 3);
    CUgraph outer = NULL, raw = NULL;
    CUgraphNode child = NULL;
    CUgraphExec raw_exec = NULL;
    cr_assert(cu->cuStreamBeginCapture_v2(tol_stream_handle(stream),
                                          CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == CUDA_SUCCESS);
    cr_assert(cu->cuMemcpyDtoHAsync_v2((void *)(uintptr_t)host_address(), at(), 50,
                                       tol_stream_handle(stream)) == CUDA_SUCCESS);
    cr_assert(cu->cuStreamEndCapture(tol_stream_handle(stream), &raw) == CUDA_SUCCESS);
    cr_assert(cu->cuGraphCreate(&outer, 0) == CUDA_SUCCESS);
    cr_assert(cu->cuGraphAddChildGraphNode(&child, outer, NULL, 0, raw) == CUDA_SUCCESS);
    cr_assert(cu->cuGraphInstantiateWithFlags(&raw_exec, outer, 0) == CUDA_SUCCESS);
    cr_assert(alarm_count == 0);
    cr_assert(cu->cuGraphLaunch(raw_exec, tol_stream_handle(stream)) == CUDA_ERROR_NOT_PERMITTED);
    cr_assert(alarm_count == 1 && alarms[0].value == 50 && seen().copies_out == 0);
    (void)cu->cuGraphExecDestroy(raw_exec);
    tol_graph_exec_destroy(exec);
    tol_graph_destroy(graph);
    tol_graph_destroy(inner);
}

/* What it was made of is not known, so it counts as unread; its update is read. */
Test(watch_ways, a_graph_that_was_there_before_the_watch_is_read_from_its_update_on) {
    begin("");
    tol_interpose_remove(test_driver());
    cu = tol_driver_functions(test_driver());
    struct tol_graph *graph = captured_read(100);
    struct tol_graph_exec *exec = NULL;
    MUST(tol_graph_instantiate(graph, &exec));
    MUST(tol_watch_install(watch, test_driver()));
    cu = tol_driver_functions(test_driver());
    MUST(tol_graph_launch(exec, stream));
    cr_assert(tol_watch_launches_unread(watch) == 1 && seen().copies_out == 0);
    struct tol_graph *more = captured_read(200);
    MUST(tol_graph_exec_update(exec, more));
    MUST(tol_graph_launch(exec, stream));
    settle();
    cr_assert(seen().copies_out == 1 && seen().bytes_out == 200);
    cr_assert(tol_watch_launches_unread(watch) == 2);
    tol_graph_exec_destroy(exec);
    tol_graph_destroy(graph);
    tol_graph_destroy(more);
}

/* ---- kernels --------------------------------------------------------------------------------- */

struct words {
    unsigned count;
    uint64_t word[4];
};

static void keep_word(uint64_t word, void *user) {
    struct words *words = user;
    cr_assert(words->count < 4);
    words->word[words->count++] = word;
}

/* What follows a parameter whose size is no multiple of 8 is not the kernel's. */
Test(watch_ways, a_word_lies_within_its_parameter) {
    static const uint64_t first[2] = {11, 12}, second = 13;
    unsigned bytes[2] = {15, 8};
    void *parameters[2] = {(void *)(uintptr_t)first, (void *)(uintptr_t)&second};
    const struct watch_kernel kernel = {.is_read = true, .count = 2, .bytes = bytes};
    const struct watch_launch launch = {.parameters = parameters};
    struct words words = {0};
    cr_assert(watch_kernel_words(&kernel, &launch, keep_word, &words));
    cr_assert(words.count == 2 && words.word[0] == 11 && words.word[1] == 13);
}

static void carry(const char *name, CUdeviceptr to, CUdeviceptr from, unsigned words) {
    MUST(tol_launch(stream, kernel(name), tol_launch_linear(words > 0 ? words : 1, 128),
                    TOL_ARGUMENTS(to, from, words)));
}

Test(watch_ways, a_kernel_that_was_not_learned_is_named) {
    begin("[[rule]]\nname = \"usual\"\nkind = \"known_kernels\"\n");
    const CUdeviceptr to = tol_buffer_address(other);
    carry("carry", to, at(), WORDS);
    tol_watch_close_kernels(watch);
    carry("carry", to, at(), 10);
    carry("carry_hidden", to, to, 0);
    settle();
    cr_assert(alarm_count == 0);
    carry("carry_hidden", to, at(), 0);
    settle();
    cr_assert(alarm_count == 1 && alarms[0].kind == TOL_WATCH_KNOWN_KERNELS);
    cr_assert(strcmp(alarms[0].kernel, "carry_hidden") == 0, "%s", alarms[0].kernel);
    carry("carry", to, at(), 10);
    settle();
    cr_assert(alarm_count == 1);
}

static void soft_only(void) {
    if (test_on_gpu()) cr_skip_test("no driver of a GPU tells what kernels access");
}

Test(watch_ways, the_bytes_that_kernels_access_are_known) {
    begin("[[rule]]\nname = \"usual\"\nblocks = \"weights\"\nkind = \"known_kernels\"\n"
          "refuse = true\n"
          "[[rule]]\nname = \"once\"\nkind = \"written_once\"\n");
    soft_only();
    const CUdeviceptr to = tol_buffer_address(other), from = at() + 64;
    MUST(tol_watch_accesses(watch, test_driver()));
    MUST(tol_watch_add(watch, to, 40, "to"));
    tol_watch_close_kernels(watch);
    MUST(tol_buffer_write_at(other, 4096, &from, sizeof from));
    carry("carry_hidden", to, to + 4096, 100); /* its argument says nothing of the weights */
    settle();
    struct tol_watch_block target;
    MUST(tol_watch_find(watch, to, &target));
    cr_assert(seen().bytes_loaded == 400 && seen().bytes_stored == 0 && seen().launches == 0);
    cr_assert(target.bytes_stored == 40 && target.bytes_loaded == 0);
    cr_assert(alarm_count == 1 && alarms[0].value == 400 && !alarms[0].refused);
    cr_assert(strcmp(alarms[0].kernel, "carry_hidden") == 0);
    cr_assert(strcmp(alarms[0].call, "a kernel") == 0);
}

Test(watch_ways, an_atomic_operation_reads_and_writes) {
    begin("[[rule]]\nname = \"once\"\nkind = \"written_once\"\n");
    soft_only();
    MUST(tol_watch_accesses(watch, test_driver()));
    for (unsigned i = 0; i < 2; i++) {
        MUST(tol_launch(stream, kernel("count_up"), tol_launch_linear(WORDS, 128),
                        TOL_ARGUMENTS(at(), (unsigned)WORDS)));
        settle();
    }
    cr_assert(seen().bytes_loaded == 2 * BYTES && seen().bytes_stored == 2 * BYTES);
    cr_assert(alarm_count == 1 && alarms[0].value == 2 * BYTES);
}

Test(watch_ways, kernels_of_graphs_tell_their_accesses) {
    begin(NULL);
    soft_only();
    struct tol_graph *graph = NULL;
    struct tol_graph_exec *exec = NULL;
    MUST(tol_watch_accesses(watch, test_driver()));
    MUST(tol_graph_capture_begin(stream));
    carry("carry", tol_buffer_address(other), at(), 25);
    MUST(tol_graph_capture_end(stream, &graph));
    MUST(tol_graph_instantiate(graph, &exec));
    for (unsigned i = 0; i < 3; i++) MUST(tol_graph_launch(exec, stream));
    settle();
    cr_assert(seen().bytes_loaded == 300, "%llu", (unsigned long long)seen().bytes_loaded);
    tol_graph_exec_destroy(exec);
    tol_graph_destroy(graph);
}

Test(watch_ways, accesses_are_told_to_one_watch_and_only_where_they_are_wanted) {
    begin(NULL);
    struct tol_watch *second = NULL;
    if (test_on_gpu()) {
        MUST_FAIL(tol_watch_accesses(watch, test_driver()), TOL_UNSUPPORTED, "does not tell");
        return;
    }
    carry("carry", tol_buffer_address(other), at(), WORDS);
    settle();
    cr_assert(seen().bytes_loaded == 0 && seen().launches == 1);
    MUST(tol_watch_create(NULL, &second));
    MUST(tol_watch_accesses(second, test_driver()));
    MUST_FAIL(tol_watch_accesses(second, test_driver()), TOL_INVALID_ARGUMENT, "already");
    MUST_FAIL(tol_watch_accesses(watch, test_driver()), TOL_INVALID_ARGUMENT, "another watch");
    tol_watch_destroy(second);
    MUST(tol_watch_accesses(watch, test_driver()));
    carry("carry", tol_buffer_address(other), at(), WORDS);
    settle();
    cr_assert(seen().bytes_loaded == BYTES);
}

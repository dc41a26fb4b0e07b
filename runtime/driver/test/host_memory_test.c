/*
 * Objects free all host memory that they allocate, counted by the allocator: so a lost block is
 * detected without a sanitizer, in the runtime and in the soft device.
 *
 * Each cycle creates an object, uses it and destroys it. After some cycles, which fill the caches,
 * the bytes in use must stay constant over many more. What threads cache varies, so 8 bytes per
 * cycle are allowed; a lost block takes 32 or more.
 */
#include "test_device.h"

#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP = 300, CYCLES = 1200, ROUNDS = 6, NOISE_BYTES = 8 };

static struct tol_context *context;
static struct tol_stream *stream;
static struct tol_kernel *fill;
static struct tol_buffer *buffer;

static void begin(void) {
    context = test_context();
    MUST(tol_stream_create(context, NULL, &stream));
    MUST(tol_buffer_create(context, 64, 4, &buffer));
    fill = test_kernel("fill");
}

static void end(void) {
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
    test_end();
}
TestSuite(host_memory, .init = begin, .fini = end, .timeout = 240);

#define FILL(value)                                                                                \
    fill, tol_launch_linear(8, 32), TOL_ARGUMENTS(tol_buffer_address(buffer), value, 8ull)

static size_t bytes_in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* one_in: for cycles that take long, the share of them that is run. A loss
 * shows in every round, and what threads keep does not grow in every one. */
static void must_keep_nothing(void (*cycle)(void), int one_in) {
    const int count = CYCLES / one_in;
    if (test_on_gpu()) cr_skip_test("a GPU's driver keeps memory of the host as it likes");
    long long least = LLONG_MAX;
    for (int i = 0; i < WARM_UP / one_in; i++) cycle();
    for (int round = 0; round < ROUNDS && least >= count * NOISE_BYTES; round++) {
        const size_t before = bytes_in_use();
        if (before == 0) cr_skip_test("a sanitizer's allocator does not count: it finds leaks");
        for (int i = 0; i < count; i++) cycle();
        const long long grown = (long long)bytes_in_use() - (long long)before;
        if (grown < least) least = grown;
    }
    cr_assert(least < count * NOISE_BYTES, "%lld bytes more in use after each %d cycles", least,
              count);
}

static void cycle_of_streams(void) {
    struct tol_stream *made = NULL;
    struct tol_event *first = NULL, *second = NULL;
    double ns = 0;
    MUST(tol_stream_create(context, NULL, &made));
    MUST(tol_event_create(context, true, &first));
    MUST(tol_event_create(context, true, &second));
    MUST(tol_event_record(first, made));
    MUST(tol_launch(made, FILL(1u)));
    MUST(tol_event_record(second, made));
    MUST(tol_stream_wait_event(stream, second));
    MUST(tol_event_synchronize(second));
    MUST(tol_event_elapsed_ns(first, second, &ns));
    tol_event_destroy(second);
    tol_event_destroy(first);
    tol_stream_destroy(made);
}

Test(host_memory, of_streams_and_events) {
    must_keep_nothing(cycle_of_streams, 1);
}

static tol_status called(void *user, char *reason, size_t bytes) {
    if (reason == NULL || bytes == 0) return TOL_INVALID_ARGUMENT;
    ++*(unsigned *)user;
    return TOL_OK;
}

static void cycle_of_copies(void) {
    unsigned words[16] = {7}, count = 0;
    struct tol_buffer *made = NULL;
    struct tol_pinned *pinned = NULL;
    MUST(tol_buffer_create(context, 16, 4, &made));
    MUST(tol_pinned_create(context, 64, &pinned));
    MUST(tol_copy_from_pageable(stream, made, 0, words, 64));
    MUST(tol_copy_to_host(stream, pinned, 0, made, 0, 64));
    MUST(tol_copy_on_device(stream, buffer, 0, made, 0, 64));
    MUST(tol_copy_fill(stream, made, 0, 3, 4, 16));
    MUST(tol_stream_call(stream, called, &count));
    MUST(tol_stream_synchronize(stream));
    cr_assert_eq(count, 1);
    tol_pinned_destroy(pinned);
    tol_buffer_destroy(made);
}

Test(host_memory, of_buffers_pinned_blocks_and_copies) {
    must_keep_nothing(cycle_of_copies, 1);
}

static char *text;

static void cycle_of_modules(void) {
    struct tol_module *module = NULL;
    struct tol_kernel *kernel = NULL;
    MUST(tol_module_load(context, text, strlen(text), NULL, &module));
    MUST(tol_module_kernel(module, "fill", &kernel));
    MUST(tol_launch(stream, kernel, tol_launch_linear(8, 32),
                    TOL_ARGUMENTS(tol_buffer_address(buffer), 1u, 8ull)));
    MUST(tol_stream_synchronize(stream));
    cr_assert_eq(tol_module_kernel(module, "none", &kernel), TOL_NOT_FOUND);
    tol_module_destroy(module);
    cr_assert_eq(tol_module_load(context, ".version 7.0 no", 15, NULL, &module),
                 TOL_INVALID_MODULE);
}

Test(host_memory, of_modules) {
    text = test_ptx("kernels/fill.ptx");
    must_keep_nothing(cycle_of_modules, 4);
    free(text);
}

static void cycle_of_graphs(void) {
    struct tol_graph *graph = NULL, *clone = NULL, *captured = NULL;
    struct tol_graph_exec *exec = NULL;
    unsigned node = 0, count = 0;
    MUST(tol_graph_create(context, &graph));
    MUST(tol_graph_add_kernel(graph, FILL(1u), NULL, 0, &node));
    MUST(tol_graph_add_kernel(graph, FILL(2u), &node, 1, NULL));
    MUST(tol_graph_clone(graph, &clone));
    MUST(tol_graph_instantiate(graph, &exec));
    MUST(tol_graph_exec_update(exec, clone));
    MUST(tol_graph_exec_set_kernel(exec, node, FILL(3u)));
    MUST(tol_graph_launch(exec, stream));
    tol_graph_exec_destroy(exec);
    exec = NULL;
    MUST(tol_graph_capture_begin(stream));
    MUST(tol_copy_fill(stream, buffer, 0, 1, 4, 16));
    MUST(tol_stream_call(stream, called, &count));
    MUST(tol_graph_capture_end(stream, &captured));
    MUST(tol_graph_instantiate(captured, &exec));
    MUST(tol_graph_launch(exec, stream));
    MUST(tol_stream_synchronize(stream));
    cr_assert_eq(count, 1);
    tol_graph_exec_destroy(exec);
    tol_graph_destroy(captured);
    tol_graph_destroy(clone);
    tol_graph_destroy(graph);
}

Test(host_memory, of_graphs) {
    must_keep_nothing(cycle_of_graphs, 1);
}

static void cycle_of_batches(void) {
    struct tol_batch *batch = NULL;
    MUST(tol_batch_create(context, NULL, &batch));
    for (unsigned turn = 0; turn < 2; turn++) {
        MUST(tol_batch_add(batch, FILL(turn)));
        MUST(tol_batch_add(batch, FILL(turn + 1)));
        MUST(tol_batch_launch(batch, stream));
        MUST(tol_batch_clear(batch));
    }
    MUST(tol_stream_synchronize(stream));
    tol_batch_destroy(batch);
}

Test(host_memory, of_batches) {
    must_keep_nothing(cycle_of_batches, 1);
}

static void cycle_of_stream_pools(void) {
    struct tol_stream_pool *pool = NULL;
    struct tol_stream *branches[2], *own = NULL;
    MUST(tol_stream_pool_create(context, NULL, &pool));
    MUST(tol_stream_pool_fork(pool, stream, 2, branches));
    MUST(tol_launch(branches[0], FILL(1u)));
    MUST(tol_stream_pool_join(pool, stream, 2, branches));
    MUST(tol_stream_pool_of_thread(pool, &own));
    MUST(tol_stream_synchronize(stream));
    tol_stream_pool_destroy(pool);
}

Test(host_memory, of_stream_pools) {
    must_keep_nothing(cycle_of_stream_pools, 1);
}

static tol_status fill_two(void *user, unsigned long long index, void *data) {
    memset(data, (int)index, 64);
    return index < *(const unsigned *)user ? TOL_OK : TOL_NOT_FOUND;
}

static tol_status work_on(void *user, struct tol_stream *on,
                          const struct tol_pipeline_block *block) {
    return user != NULL && on != NULL && block != NULL ? TOL_OK : TOL_INVALID_ARGUMENT;
}

static tol_status take(void *user, unsigned long long index, const void *data) {
    return user != NULL && memchr(data, (int)index, 1) == data ? TOL_OK : TOL_SIZE_MISMATCH;
}

static void cycle_of_pipelines(void) {
    unsigned count = 2;
    struct tol_pipeline *pipeline = NULL;
    const struct tol_pipeline_options options = {
        .input_bytes = 64, .fill = fill_two, .work = work_on, .take = take, .user = &count};
    MUST(tol_pipeline_create(context, &options, &pipeline));
    MUST(tol_pipeline_run(pipeline, NULL));
    tol_pipeline_destroy(pipeline);
}

Test(host_memory, of_pipelines) {
    must_keep_nothing(cycle_of_pipelines, 4);
}

static void cycle_of_pools(void) {
    struct tol_pool *pool = NULL;
    struct tol_pool_options options;
    struct tol_block small, large;
    struct tol_hdr *times = NULL;
    unsigned tag = 0;
    char *said = NULL;
    tol_pool_default(tol_context_device(context), &options);
    options.trace_events = 64;
    MUST(tol_pool_create(context, &options, &pool));
    MUST(tol_pool_tag(pool, "tag", 0, &tag));
    MUST(tol_pool_allocate_tagged(pool, 1024, stream, tag, &small));
    MUST(tol_pool_allocate(pool, 40 << 20, stream, &large));
    MUST(tol_pool_snapshot(pool, &said));
    free(said);
    MUST(tol_pool_chrome_trace(pool, &said));
    free(said);
    MUST(tol_pool_times(pool, TOL_POOL_CALL_ALLOCATE, &times));
    tol_hdr_free(times);
    MUST(tol_pool_free(pool, large, stream));
    MUST(tol_pool_free(pool, small, stream));
    MUST(tol_pool_trim(pool, 0));
    tol_pool_destroy(pool);
}

Test(host_memory, of_pools) {
    must_keep_nothing(cycle_of_pools, 4);
}

static void cycle_of_transfers(void) {
    struct tol_transfer *transfer = NULL;
    struct tol_transfer_options options;
    unsigned words[16] = {0};
    tol_transfer_default(&options);
    options.block_bytes = 4096;
    options.threads = 2;
    MUST(tol_transfer_create(context, &options, &transfer));
    MUST(tol_transfer_write(transfer, tol_place_of_buffer(buffer), 0, words, 64));
    MUST(tol_transfer_read(transfer, tol_place_of_buffer(buffer), 0, words, 64));
    tol_transfer_destroy(transfer);
}

Test(host_memory, of_transfers) {
    must_keep_nothing(cycle_of_transfers, 4);
}

static void cycle_of_health(void) {
    struct tol_health_mark *mark = NULL;
    struct tol_health health;
    struct tol_vram_context *vram = NULL;
    struct tol_vram memory;
    MUST(tol_health_mark_create(context, &mark));
    MUST(tol_vram_context_create(context, 1 << 20, &vram));
    MUST(tol_vram_allocate(vram, 64, &memory));
    MUST(tol_health_check(context, mark, &health));
    MUST(tol_vram_free(vram, memory));
    tol_vram_context_destroy(vram);
    tol_health_mark_destroy(mark);
}

Test(host_memory, of_health_and_vram) {
    must_keep_nothing(cycle_of_health, 4);
}

static void cycle_of_traces(void) {
    const struct tol_trace_options options = {.calls_max = 100, .operations_max = 100};
    char *written = NULL;
    size_t bytes = 0;
    MUST(tol_trace_install(test_driver(), &options, NULL));
    MUST(tol_launch(stream, FILL(1u)));
    MUST(tol_stream_synchronize(stream));
    FILE *file = open_memstream(&written, &bytes);
    MUST(tol_trace_write(file, "process", false));
    fclose(file);
    free(written);
    tol_trace_remove(test_driver());
}

Test(host_memory, of_traces) {
    must_keep_nothing(cycle_of_traces, 4);
}

static void cycle_of_drivers(void) {
    struct tol_driver *driver = NULL;
    struct tol_context *made = NULL;
    struct tol_stream *on = NULL;
    struct tol_graph *graph = NULL;
    struct tol_graph_exec *exec = NULL;
    MUST(tol_driver_open(test_library(), &driver));
    MUST(tol_context_create(driver, 0, &made));
    MUST(tol_stream_create(made, NULL, &on));
    MUST(tol_graph_create(made, &graph));
    MUST(tol_graph_instantiate(graph, &exec)); /* its label stays with the context */
    MUST(tol_stream_synchronize(on));
    tol_graph_exec_destroy(exec);
    tol_graph_destroy(graph);
    tol_stream_destroy(on);
    tol_context_destroy(made);
    tol_driver_close(driver);
    cr_assert_eq(tol_driver_open("/nonexistent/libcuda.so", &driver), TOL_NO_LIBRARY);
}

Test(host_memory, of_drivers_and_contexts) {
    must_keep_nothing(cycle_of_drivers, 4);
}

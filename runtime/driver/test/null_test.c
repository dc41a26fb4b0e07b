/*
 * Each pointer that may not be NULL, one at a time, with every other argument as it should be: the
 * call is refused with TOL_INVALID_ARGUMENT and says so. A check that is missing would crash here,
 * and one that asks for the wrong argument would let the call through.
 */
#include "test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFUSED(call) MUST_FAIL(call, TOL_INVALID_ARGUMENT, "NULL")

static struct tol_context *context;
static struct tol_stream *stream;
static struct tol_kernel *fill;
static struct tol_buffer *buffer;
static struct tol_pinned *pinned;

static void begin(void) {
    context = test_context();
    MUST(tol_stream_create(context, NULL, &stream));
    MUST(tol_buffer_create(context, 16, 4, &buffer));
    MUST(tol_pinned_create(context, 64, &pinned));
    fill = test_kernel("fill");
}

static void end(void) {
    tol_pinned_destroy(pinned);
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
    test_end();
}
TestSuite(null, .init = begin, .fini = end);

#define FILL(kernel)                                                                               \
    kernel, tol_launch_linear(8, 32), TOL_ARGUMENTS(tol_buffer_address(buffer), 1u, 8ull)

Test(null, of_drivers_and_contexts) {
    struct tol_context *made = NULL;
    struct tol_device device;
    int low = 0, high = 0;
    REFUSED(tol_driver_open(test_library(), NULL));
    REFUSED(tol_device_count(NULL, &low));
    REFUSED(tol_device_count(test_driver(), NULL));
    REFUSED(tol_device_read(NULL, 0, &device));
    REFUSED(tol_device_read(test_driver(), 0, NULL));
    REFUSED(tol_interpose_install(NULL, NULL));
    REFUSED(tol_context_create(NULL, 0, &made));
    REFUSED(tol_context_create(test_driver(), 0, NULL));
    REFUSED(tol_context_bind(NULL));
    REFUSED(tol_context_memory(NULL, NULL, NULL));
    REFUSED(tol_context_priorities(NULL, &low, &high));
    REFUSED(tol_context_priorities(context, NULL, &high));
    REFUSED(tol_context_priorities(context, &low, NULL));
    REFUSED(tol_context_synchronize(NULL, 10));
    cr_assert(made == NULL && low == 0 && high == 0);
}

static tol_status never_called(void *user, char *reason, size_t bytes) {
    snprintf(reason, bytes, "called with %p, without a stream", user);
    return TOL_DRIVER_ERROR;
}

Test(null, of_streams_and_events) {
    struct tol_stream *made = NULL;
    struct tol_event *event = NULL, *none = NULL;
    double ns = -1;
    MUST(tol_event_create(context, true, &event));
    REFUSED(tol_stream_create(NULL, NULL, &made));
    REFUSED(tol_stream_create(context, NULL, NULL));
    REFUSED(tol_stream_query(NULL));
    REFUSED(tol_stream_synchronize(NULL));
    REFUSED(tol_stream_properties(NULL, NULL, NULL));
    REFUSED(tol_stream_call(NULL, never_called, NULL));
    REFUSED(tol_stream_call(stream, NULL, NULL));
    REFUSED(tol_event_create(NULL, true, &none));
    REFUSED(tol_event_create(context, true, NULL));
    REFUSED(tol_event_record(NULL, stream));
    REFUSED(tol_event_record(event, NULL));
    REFUSED(tol_stream_wait_event(NULL, event));
    REFUSED(tol_stream_wait_event(stream, NULL));
    REFUSED(tol_event_query(NULL));
    REFUSED(tol_event_synchronize(NULL));
    REFUSED(tol_event_elapsed_ns(NULL, event, &ns));
    REFUSED(tol_event_elapsed_ns(event, NULL, &ns));
    REFUSED(tol_event_elapsed_ns(event, event, NULL));
    cr_assert(made == NULL && none == NULL && ns == -1);
    tol_event_destroy(event);
}

Test(null, of_memory_and_copies) {
    struct tol_buffer *made = NULL;
    struct tol_pinned *block = NULL;
    unsigned words[16] = {0};
    void *data = NULL;
    REFUSED(tol_buffer_create(NULL, 4, 4, &made));
    REFUSED(tol_buffer_create(context, 4, 4, NULL));
    REFUSED(tol_buffer_write_at(NULL, 0, words, 4));
    REFUSED(tol_buffer_write_at(buffer, 0, NULL, 4));
    REFUSED(tol_buffer_read_at(NULL, 0, words, 4));
    REFUSED(tol_buffer_read_at(buffer, 0, NULL, 4));
    REFUSED(tol_buffer_write(NULL, words, 64));
    REFUSED(tol_buffer_write(buffer, NULL, 64));
    REFUSED(tol_buffer_read(NULL, words, 64));
    REFUSED(tol_buffer_read(buffer, NULL, 64));
    REFUSED(tol_pinned_create(NULL, 64, &block));
    REFUSED(tol_pinned_create(context, 64, NULL));
    REFUSED(tol_pinned_access(NULL, &data));
    REFUSED(tol_pinned_access(pinned, NULL));
    REFUSED(tol_pinned_await(NULL, &data));
    REFUSED(tol_pinned_await(pinned, NULL));
    REFUSED(tol_pinned_create_huge(NULL, 1, &pinned));
    REFUSED(tol_pinned_create_huge(context, 1, NULL));
    REFUSED(tol_copy_to_device(NULL, buffer, 0, pinned, 0, 4));
    REFUSED(tol_copy_to_device(stream, NULL, 0, pinned, 0, 4));
    REFUSED(tol_copy_to_device(stream, buffer, 0, NULL, 0, 4));
    REFUSED(tol_copy_to_host(NULL, pinned, 0, buffer, 0, 4));
    REFUSED(tol_copy_to_host(stream, NULL, 0, buffer, 0, 4));
    REFUSED(tol_copy_to_host(stream, pinned, 0, NULL, 0, 4));
    REFUSED(tol_copy_from_pageable(NULL, buffer, 0, words, 4));
    REFUSED(tol_copy_from_pageable(stream, NULL, 0, words, 4));
    REFUSED(tol_copy_from_pageable(stream, buffer, 0, NULL, 4));
    cr_assert(made == NULL && block == NULL && data == NULL);
}

Test(null, of_modules_and_launches) {
    char *text = test_ptx("kernels/fill.ptx");
    struct tol_module *module = NULL, *none = NULL;
    struct tol_kernel *kernel = NULL;
    struct tol_buffer *global = NULL;
    MUST(tol_module_load(context, text, strlen(text), NULL, &module));
    REFUSED(tol_module_load(NULL, text, strlen(text), NULL, &none));
    REFUSED(tol_module_load(context, text, strlen(text), NULL, NULL));
    REFUSED(tol_module_kernel(NULL, "fill", &kernel));
    REFUSED(tol_module_kernel(module, NULL, &kernel));
    REFUSED(tol_module_kernel(module, "fill", NULL));
    REFUSED(tol_module_global(NULL, "fill", &global));
    REFUSED(tol_module_global(module, NULL, &global));
    REFUSED(tol_module_global(module, "fill", NULL));
    REFUSED(tol_kernel_allow_shared(NULL, 1024));
    REFUSED(tol_launch(NULL, FILL(fill)));
    REFUSED(tol_launch(stream, FILL(NULL)));
    cr_assert(none == NULL && kernel == NULL && global == NULL);
    tol_module_destroy(module);
    free(text);
}

Test(null, of_graphs) {
    struct tol_graph *graph = NULL, *none = NULL;
    struct tol_graph_exec *exec = NULL, *nothing = NULL;
    MUST(tol_graph_create(context, &graph));
    MUST(tol_graph_add_kernel(graph, FILL(fill), NULL, 0, NULL));
    MUST(tol_graph_instantiate(graph, &exec));
    REFUSED(tol_graph_create(NULL, &none));
    REFUSED(tol_graph_create(context, NULL));
    REFUSED(tol_graph_add_kernel(NULL, FILL(fill), NULL, 0, NULL));
    REFUSED(tol_graph_add_kernel(graph, FILL(NULL), NULL, 0, NULL));
    REFUSED(tol_graph_add_kernel(graph, FILL(fill), NULL, 1, NULL));
    REFUSED(tol_graph_clone(NULL, &none));
    REFUSED(tol_graph_clone(graph, NULL));
    REFUSED(tol_graph_set_kernel(NULL, 0, FILL(fill)));
    REFUSED(tol_graph_set_kernel(graph, 0, FILL(NULL)));
    REFUSED(tol_graph_capture_begin(NULL));
    REFUSED(tol_graph_capture_end(NULL, &none));
    REFUSED(tol_graph_capture_end(stream, NULL));
    REFUSED(tol_graph_instantiate(NULL, &nothing));
    REFUSED(tol_graph_instantiate(graph, NULL));
    REFUSED(tol_graph_exec_set_kernel(NULL, 0, FILL(fill)));
    REFUSED(tol_graph_exec_set_kernel(exec, 0, FILL(NULL)));
    REFUSED(tol_graph_exec_update(NULL, graph));
    REFUSED(tol_graph_exec_update(exec, NULL));
    REFUSED(tol_graph_launch(NULL, stream));
    REFUSED(tol_graph_launch(exec, NULL));
    cr_assert(none == NULL && nothing == NULL && tol_graph_nodes(graph) == 1);
    tol_graph_exec_destroy(exec);
    tol_graph_destroy(graph);
}

Test(null, of_batches) {
    struct tol_batch *batch = NULL, *none = NULL;
    struct tol_batch_stats stats;
    MUST(tol_batch_create(context, NULL, &batch));
    REFUSED(tol_batch_create(NULL, NULL, &none));
    REFUSED(tol_batch_create(context, NULL, NULL));
    REFUSED(tol_batch_add(NULL, FILL(fill)));
    REFUSED(tol_batch_add(batch, FILL(NULL)));
    REFUSED(tol_batch_clear(NULL));
    REFUSED(tol_batch_launch(NULL, stream));
    REFUSED(tol_batch_launch(batch, NULL));
    REFUSED(tol_batch_stats(NULL, &stats));
    REFUSED(tol_batch_stats(batch, NULL));
    cr_assert_null(none);
    tol_batch_destroy(batch);
}

Test(null, of_stream_pools) {
    struct tol_stream_pool *pool = NULL, *none = NULL;
    struct tol_stream *lent = NULL, *branch[1] = {NULL};
    struct tol_stream_pool_stats stats;
    MUST(tol_stream_pool_create(context, NULL, &pool));
    MUST(tol_stream_pool_take(pool, 0, &lent));
    REFUSED(tol_stream_pool_create(NULL, NULL, &none));
    REFUSED(tol_stream_pool_create(context, NULL, NULL));
    REFUSED(tol_stream_pool_take(NULL, 0, branch));
    REFUSED(tol_stream_pool_take(pool, 0, NULL));
    REFUSED(tol_stream_pool_give(NULL, lent));
    REFUSED(tol_stream_pool_give(pool, NULL));
    REFUSED(tol_stream_pool_fork(NULL, lent, 1, branch));
    REFUSED(tol_stream_pool_fork(pool, NULL, 1, branch));
    REFUSED(tol_stream_pool_fork(pool, lent, 1, NULL));
    REFUSED(tol_stream_pool_join(NULL, lent, 1, branch));
    REFUSED(tol_stream_pool_join(pool, NULL, 1, branch));
    REFUSED(tol_stream_pool_join(pool, lent, 1, NULL));
    REFUSED(tol_stream_pool_of_thread(NULL, branch));
    REFUSED(tol_stream_pool_of_thread(pool, NULL));
    REFUSED(tol_stream_pool_stats(NULL, &stats));
    REFUSED(tol_stream_pool_stats(pool, NULL));
    MUST(tol_stream_pool_stats(pool, &stats));
    cr_assert(none == NULL && branch[0] == NULL && stats.made == 1 && stats.lent == 1);
    tol_stream_pool_destroy(pool);
}

static tol_status fill_none(void *user, unsigned long long index, void *data) {
    return index == *(const unsigned long long *)user && data != NULL ? TOL_NOT_FOUND : TOL_OK;
}
static tol_status work_none(void *user, struct tol_stream *on,
                            const struct tol_pipeline_block *block) {
    return user != NULL && on != NULL && block != NULL ? TOL_OK : TOL_INVALID_ARGUMENT;
}
static tol_status take_none(void *user, unsigned long long index, const void *data) {
    return user != NULL && index < 2 && data != NULL ? TOL_OK : TOL_INVALID_ARGUMENT;
}

Test(null, of_pipelines) {
    unsigned long long count = 2;
    const struct tol_pipeline_options good = {
        .input_bytes = 4, .fill = fill_none, .work = work_none, .take = take_none, .user = &count};
    struct tol_pipeline_options options[3] = {good, good, good};
    struct tol_pipeline *pipeline = NULL, *none = NULL;
    struct tol_pipeline_times times;
    options[0].fill = NULL;
    options[1].work = NULL;
    options[2].take = NULL;
    for (int i = 0; i < 3; i++) REFUSED(tol_pipeline_create(context, &options[i], &none));
    MUST(tol_pipeline_create(context, &good, &pipeline));
    MUST(tol_pipeline_run(pipeline, NULL));
    REFUSED(tol_pipeline_create(NULL, &good, &none));
    REFUSED(tol_pipeline_create(context, NULL, &none));
    REFUSED(tol_pipeline_create(context, &good, NULL));
    REFUSED(tol_pipeline_run(NULL, &count));
    REFUSED(tol_pipeline_times(NULL, 0, &times));
    REFUSED(tol_pipeline_times(pipeline, 0, NULL));
    MUST(tol_pipeline_times(pipeline, 0, &times));
    cr_assert_null(none);
    tol_pipeline_destroy(pipeline);
}

Test(null, of_pools) {
    struct tol_pool *pool = NULL, *none = NULL;
    struct tol_block block, blocks[1];
    struct tol_pool_stats stats;
    unsigned tag = 0;
    const size_t bytes = 64;
    MUST(tol_pool_create(context, NULL, &pool));
    MUST(tol_pool_allocate(pool, bytes, stream, &block));
    REFUSED(tol_pool_create(NULL, NULL, &none));
    REFUSED(tol_pool_create(context, NULL, NULL));
    REFUSED(tol_pool_allocate(NULL, bytes, stream, blocks));
    REFUSED(tol_pool_allocate(pool, bytes, stream, NULL));
    REFUSED(tol_pool_free(NULL, block, stream));
    REFUSED(tol_pool_allocate_batch(NULL, 1, &bytes, stream, blocks));
    REFUSED(tol_pool_allocate_batch(pool, 1, NULL, stream, blocks));
    REFUSED(tol_pool_allocate_batch(pool, 1, &bytes, stream, NULL));
    REFUSED(tol_pool_free_batch(NULL, 1, &block, stream));
    REFUSED(tol_pool_free_batch(pool, 1, NULL, stream));
    REFUSED(tol_pool_tag(NULL, "tag", 0, &tag));
    REFUSED(tol_pool_tag(pool, NULL, 0, &tag));
    REFUSED(tol_pool_tag(pool, "tag", 0, NULL));
    REFUSED(tol_pool_trim(NULL, 0));
    REFUSED(tol_pool_stats(NULL, &stats));
    REFUSED(tol_pool_stats(pool, NULL));
    MUST(tol_pool_allocate_batch(pool, 0, NULL, stream, NULL));
    MUST(tol_pool_free_batch(pool, 0, NULL, stream));
    MUST(tol_pool_free(pool, block, stream));
    MUST(tol_pool_stats(pool, &stats));
    cr_assert(none == NULL && tag == 0 && stats.blocks == 0);
    tol_pool_destroy(pool);
}

Test(null, of_what_watches) {
    struct tol_pool *pool = NULL;
    struct tol_pool_found found;
    struct tol_hdr *times = NULL;
    struct tol_health_mark *mark = NULL;
    struct tol_health health;
    char *text = NULL;
    MUST(tol_pool_create(context, NULL, &pool));
    REFUSED(tol_pool_times(NULL, TOL_POOL_CALL_ALLOCATE, &times));
    REFUSED(tol_pool_times(pool, TOL_POOL_CALL_ALLOCATE, NULL));
    REFUSED(tol_pool_find(NULL, 4096, &found));
    REFUSED(tol_pool_find(pool, 4096, NULL));
    REFUSED(tol_pool_snapshot(NULL, &text));
    REFUSED(tol_pool_snapshot(pool, NULL));
    REFUSED(tol_pool_trace(NULL, &text));
    REFUSED(tol_pool_trace(pool, NULL));
    REFUSED(tol_pool_chrome_trace(NULL, &text));
    REFUSED(tol_pool_chrome_trace(pool, NULL));
    REFUSED(tol_health_mark_create(NULL, &mark));
    REFUSED(tol_health_mark_create(context, NULL));
    REFUSED(tol_health_check(NULL, NULL, &health));
    REFUSED(tol_health_check(context, NULL, NULL));
    REFUSED(tol_trace_install(NULL, NULL, NULL));
    REFUSED(tol_trace_write(NULL, "process", false));
    REFUSED(tol_trace_write(stdout, NULL, false));
    cr_assert(times == NULL && text == NULL && mark == NULL);
    tol_pool_destroy(pool);
}

Test(null, of_transfers) {
    struct tol_transfer *transfer = NULL, *none = NULL;
    struct tol_transfer_stats stats;
    unsigned words[16] = {0};
    bool resident = true;
    MUST(tol_transfer_create(context, NULL, &transfer));
    struct tol_place place = tol_place_of_buffer(buffer);
    const struct tol_transfer_item item = {.place = place, .host = words, .bytes = 4};
    const struct tol_transfer_rows rows = {
        .width = 4, .height = 2, .device_pitch = 8, .host_pitch = 8};
    REFUSED(tol_transfer_create(NULL, NULL, &none));
    REFUSED(tol_transfer_create(context, NULL, NULL));
    REFUSED(tol_transfer_write(NULL, place, 0, words, 4));
    REFUSED(tol_transfer_write(transfer, place, 0, NULL, 4));
    REFUSED(tol_transfer_read(NULL, place, 0, words, 4));
    REFUSED(tol_transfer_read(transfer, place, 0, NULL, 4));
    REFUSED(tol_transfer_write_batch(NULL, 1, &item));
    REFUSED(tol_transfer_write_batch(transfer, 1, NULL));
    REFUSED(tol_transfer_read_batch(NULL, 1, &item));
    REFUSED(tol_transfer_read_batch(transfer, 1, NULL));
    REFUSED(tol_transfer_write_rows(NULL, place, words, &rows));
    REFUSED(tol_transfer_write_rows(transfer, place, NULL, &rows));
    REFUSED(tol_transfer_write_rows(transfer, place, words, NULL));
    REFUSED(tol_transfer_read_rows(NULL, place, words, &rows));
    REFUSED(tol_transfer_read_rows(transfer, place, NULL, &rows));
    REFUSED(tol_transfer_read_rows(transfer, place, words, NULL));
    REFUSED(tol_transfer_copy(NULL, place, 0, place, 32, 4));
    REFUSED(tol_transfer_copy_rows(NULL, place, &rows, place, &rows));
    REFUSED(tol_transfer_copy_rows(transfer, place, NULL, place, &rows));
    REFUSED(tol_transfer_copy_rows(transfer, place, &rows, place, NULL));
    REFUSED(tol_transfer_is_resident(NULL, place.address, &resident));
    REFUSED(tol_transfer_is_resident(transfer, place.address, NULL));
    REFUSED(tol_transfer_stats(NULL, &stats));
    REFUSED(tol_transfer_stats(transfer, NULL));
    cr_assert_null(none);
    tol_transfer_destroy(transfer);
}

Test(null, of_two_transfers) {
    struct tol_transfer *transfer = NULL;
    struct tol_pool *pool = NULL;
    struct tol_block block;
    MUST(tol_transfer_create(context, NULL, &transfer));
    MUST(tol_pool_create(context, NULL, &pool));
    MUST(tol_pool_allocate(pool, 64, stream, &block));
    struct tol_place place = tol_place_of_buffer(buffer);
    REFUSED(tol_transfer_peer(NULL, place, 0, transfer, place, 32, 4));
    REFUSED(tol_transfer_peer(transfer, place, 0, NULL, place, 32, 4));
    REFUSED(tol_transfer_move(NULL, pool, 0, transfer, pool, &block));
    REFUSED(tol_transfer_move(transfer, NULL, 0, transfer, pool, &block));
    REFUSED(tol_transfer_move(transfer, pool, 0, NULL, pool, &block));
    REFUSED(tol_transfer_move(transfer, pool, 0, transfer, NULL, &block));
    REFUSED(tol_transfer_move(transfer, pool, 0, transfer, pool, NULL));
    MUST(tol_pool_free(pool, block, stream));
    tol_pool_destroy(pool);
    tol_transfer_destroy(transfer);
}

Test(null, of_vram) {
    struct tol_vram_context *vram = NULL, *none = NULL;
    struct tol_vram memory;
    struct tol_vram_info info;
    unsigned word = 0;
    MUST(tol_vram_context_create(context, 1 << 20, &vram));
    MUST(tol_vram_allocate(vram, 64, &memory));
    REFUSED(tol_vram_context_create(NULL, 1 << 20, &none));
    REFUSED(tol_vram_context_create(context, 1 << 20, NULL));
    REFUSED(tol_vram_allocate(NULL, 64, &memory));
    REFUSED(tol_vram_allocate(vram, 64, NULL));
    REFUSED(tol_vram_free(NULL, memory));
    REFUSED(tol_vram_write_at(NULL, memory, 0, &word, 4));
    REFUSED(tol_vram_write_at(vram, memory, 0, NULL, 4));
    REFUSED(tol_vram_read_at(NULL, memory, 0, &word, 4));
    REFUSED(tol_vram_read_at(vram, memory, 0, NULL, 4));
    REFUSED(tol_vram_info(NULL, &info));
    REFUSED(tol_vram_info(vram, NULL));
    cr_assert_null(none);
    MUST(tol_vram_free(vram, memory));
    tol_vram_context_destroy(vram);
}

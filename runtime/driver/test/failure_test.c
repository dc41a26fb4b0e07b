/*
 * Every driver call is made to fail once: the workload below uses all of the runtime, and for each
 * n the workload's nth driver call fails. Whatever it was, the workload must end with a status and
 * a message that names the call, and must have freed all that it created, by the interposer's
 * counts. (The method is libuv's test of its loop, and Lua's of its memory.)
 */
#include "core/check.h"
#include "test_scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *ptx;

/* What cuDeviceCanAccessPeer is made to say. */
static bool peers_are_apart;

/* Two devices, if there are two. */
static struct tol_driver *driver_of_workloads(void) {
    if (!test_on_gpu()) setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    /* Addresses whose freeing fails are lost, and a process has not always many: a small device
     * makes for small reservations. */
    if (!test_on_gpu()) setenv("TOLLENS_SOFT_MEMORY", "128M", 1);
    return test_driver();
}

static tol_status copies_workload(struct tol_context *context, struct tol_stream *stream,
                                  struct tol_buffer *buffer) {
    tol_auto_pinned struct tol_pinned *pinned = NULL;
    tol_auto_buffer struct tol_buffer *other = NULL;
    char bytes[64] = {0};
    void *data = NULL;
    tol_status status = tol_pinned_create(context, 64, &pinned);
    if (status == TOL_OK) status = tol_buffer_create(context, 64, 1, &other);
    if (status == TOL_OK) status = tol_pinned_access(pinned, &data);
    if (status == TOL_OK) status = tol_buffer_write(buffer, bytes, 64);
    for (size_t width = 1; width <= 4 && status == TOL_OK; width *= 2) {
        status = tol_buffer_fill_at(buffer, 0, 1, width, 4);
        if (status == TOL_OK) status = tol_copy_fill(stream, buffer, 0, 1, width, 4);
    }
    if (status == TOL_OK) status = tol_buffer_copy(other, 0, buffer, 0, 64);
    if (status == TOL_OK) status = tol_copy_to_device(stream, buffer, 0, pinned, 0, 64);
    if (status == TOL_OK) status = tol_copy_on_device(stream, other, 0, buffer, 0, 64);
    if (status == TOL_OK) status = tol_copy_from_pageable(stream, buffer, 0, bytes, 64);
    if (status == TOL_OK) status = tol_copy_from_pageable(stream, buffer, 0, bytes, 64);
    if (status == TOL_OK) status = tol_copy_to_host(stream, pinned, 0, buffer, 0, 64);
    if (status == TOL_OK) status = tol_pinned_access(pinned, &data);
    if (status == TOL_OK) status = tol_buffer_read(buffer, bytes, 64);
    return status;
}

static tol_status events_workload(struct tol_context *context, struct tol_stream *stream) {
    tol_auto_event struct tol_event *begin = NULL;
    tol_auto_event struct tol_event *end = NULL;
    double ns = 0;
    tol_status status = tol_event_create(context, true, &begin);
    if (status == TOL_OK) status = tol_event_create(context, true, &end);
    if (status == TOL_OK) status = tol_event_record(begin, stream);
    if (status == TOL_OK) status = tol_stream_wait_event(stream, begin);
    if (status == TOL_OK) status = tol_event_record(end, stream);
    if (status == TOL_OK) status = tol_event_synchronize(end);
    if (status == TOL_OK) status = tol_event_query(end);
    if (status == TOL_OK) status = tol_event_elapsed_ns(begin, end, &ns);
    return status;
}

static tol_status kernels_workload(struct tol_context *context, struct tol_stream *stream,
                                   struct tol_buffer *buffer) {
    tol_auto_module struct tol_module *module = NULL;
    tol_auto_buffer struct tol_buffer *variable = NULL;
    struct tol_kernel *kernel = NULL;
    unsigned long long count = 8;
    tol_status status = tol_module_load(context, ptx, strlen(ptx), NULL, &module);
    if (status == TOL_OK) status = tol_module_kernel(module, "put", &kernel);
    if (status == TOL_OK) status = tol_module_global(module, "spare", &variable);
    if (status == TOL_OK) status = tol_kernel_allow_shared(kernel, 50000);
    if (status == TOL_OK) {
        status = tol_launch(stream, kernel, tol_launch_linear(8, 32),
                            TOL_ARGUMENTS(tol_buffer_address(buffer), count));
    }
    if (status == TOL_OK) status = tol_stream_synchronize(stream);
    return status;
}

/* Small and large blocks that pass from one stream to another and back to the driver. */
static tol_status mapped_pools_workload(struct tol_context *context, struct tol_stream *stream) {
    tol_auto_pool struct tol_pool *pool = NULL;
    tol_auto_stream struct tol_stream *other = NULL;
    struct tol_pool_options options;
    struct tol_pool_stats stats;
    struct tol_block block = {0};
    tol_pool_tight(tol_context_device(context), &options);
    options.address_bytes = 64 << 20; /* an address range whose freeing fails is lost */
    options.wipe = true;
    options.magazine_max_bytes = 0;
    options.limit_bytes = 24 << 20;
    tol_status status = tol_pool_create(context, &options, &pool);
    if (status == TOL_OK) status = tol_stream_create(context, NULL, &other);
    for (size_t bytes = 3 << 20; bytes <= 18 << 20 && status == TOL_OK; bytes += 15 << 20) {
        struct tol_stream *const streams[] = {stream, other, NULL};
        for (int i = 0; i < 3 && status == TOL_OK; i++) {
            status = tol_pool_allocate(pool, bytes, streams[i], &block);
            if (status == TOL_OK) status = tol_pool_free(pool, block, streams[i]);
        }
    }
    if (status == TOL_OK) status = tol_pool_stats(pool, &stats);
    if (status == TOL_OK) status = tol_pool_trim(pool, 0);
    return status;
}

static tol_status driver_pools_workload(struct tol_context *context, struct tol_stream *stream) {
    tol_auto_pool struct tol_pool *pool = NULL;
    struct tol_pool_options options = {.source = TOL_POOL_DRIVER};
    struct tol_pool_stats stats;
    struct tol_block block = {0};
    tol_status status = tol_pool_create(context, &options, &pool);
    if (status == TOL_OK) status = tol_pool_allocate(pool, 1000, stream, &block);
    if (status == TOL_OK) status = tol_pool_free(pool, block, stream);
    if (status == TOL_OK) status = tol_pool_allocate(pool, 1000, NULL, &block);
    if (status == TOL_OK) status = tol_pool_stats(pool, &stats);
    if (status == TOL_OK) status = tol_pool_trim(pool, 0);
    return status;
}

/* Through staging blocks, on the device, in rows and to another device, directly and not. */
static tol_status transfers_workload(struct tol_driver *driver, struct tol_context *context,
                                     struct tol_buffer *buffer) {
    tol_auto_context struct tol_context *second = NULL;
    tol_auto_buffer struct tol_buffer *there = NULL;
    tol_auto_transfer struct tol_transfer *transfer = NULL, *other = NULL;
    const struct tol_transfer_rows rows = {8, 4, 0, 16, 8}, after = {8, 2, 48, 8, 8},
                                   before = {8, 2, 0, 16, 8};
    struct tol_transfer_options options;
    struct tol_place place = tol_place_of_buffer(buffer);
    char bytes[64] = {0};
    bool resident = false;
    int count = 0;
    tol_transfer_default(&options);
    options.block_bytes = 16;
    options.threads = 1;
    options.pause_us = 1;
    tol_status status = tol_transfer_create(context, &options, &transfer);
    if (status == TOL_OK) status = tol_transfer_write(transfer, place, 0, bytes, 64);
    if (status == TOL_OK) status = tol_transfer_read(transfer, place, 0, bytes, 64);
    if (status == TOL_OK) status = tol_transfer_copy(transfer, place, 32, place, 0, 32);
    if (status == TOL_OK) status = tol_transfer_write_rows(transfer, place, bytes, &rows);
    if (status == TOL_OK) status = tol_transfer_copy_rows(transfer, place, &after, place, &before);
    if (status == TOL_OK) status = tol_transfer_is_resident(transfer, place.address, &resident);
    if (status == TOL_OK) status = tol_device_count(driver, &count);
    if (status != TOL_OK || count < 2) return status;
    status = tol_context_create(driver, 1, &second);
    if (status == TOL_OK) status = tol_transfer_create(second, &options, &other);
    if (status == TOL_OK) status = tol_buffer_create(second, 64, 1, &there);
    for (int turn = 0; turn < 2 && status == TOL_OK; turn++) {
        peers_are_apart = turn == 1;
        status = tol_transfer_peer(transfer, place, 0, other, tol_place_of_buffer(there), 0, 64);
    }
    return status;
}

/* Blocks of all kinds, sweeps of a page, and stale handles. */
static tol_status vram_workload(struct tol_context *context) {
    tol_auto_vram_context struct tol_vram_context *vram = NULL;
    struct tol_vram memory = {0}, kept = {0};
    struct tol_vram_info info;
    char bytes[64] = {0};
    tol_status status = tol_vram_context_create(context, 0, &vram);
    for (size_t size = 1 << 10; size <= 1 << 22 && status == TOL_OK; size <<= 6) {
        status = tol_vram_allocate(vram, size, &memory);
        if (status == TOL_OK) status = tol_vram_write_at(vram, memory, size - 64, bytes, 64);
        if (status == TOL_OK) status = tol_vram_free(vram, memory);
    }
    if (status == TOL_OK) status = tol_vram_allocate(vram, 1000, &kept);
    for (int i = 0; i < 4 && status == TOL_OK; i++) {
        status = tol_vram_allocate(vram, 700000, &memory);
        if (status == TOL_OK) status = tol_vram_free(vram, memory);
    }
    if (status == TOL_OK) status = tol_vram_read_at(vram, kept, 0, bytes, 64);
    if (status == TOL_OK) status = tol_vram_info(vram, &info);
    return status;
}

static tol_status do_nothing(void *user, char *reason, size_t bytes) {
    (void)user, (void)reason, (void)bytes;
    return TOL_OK;
}

/* A graph by hand with its clone and instance, and one that is captured, with all that it may
 * have. */
static tol_status graphs_workload(struct tol_context *context, struct tol_stream *stream,
                                  struct tol_buffer *buffer) {
    tol_auto_module struct tol_module *module = NULL;
    tol_auto_pinned struct tol_pinned *pinned = NULL;
    tol_auto_graph struct tol_graph *graph = NULL, *clone = NULL, *captured = NULL;
    tol_auto_graph_exec struct tol_graph_exec *exec = NULL, *other = NULL;
    struct tol_kernel *kernel = NULL;
    unsigned node = 0;
    unsigned long long count = 8;
    const struct tol_launch_shape shape = tol_launch_linear(8, 32);
    const struct tol_arguments arguments = TOL_ARGUMENTS(tol_buffer_address(buffer), count);
    tol_status status = tol_module_load(context, ptx, strlen(ptx), NULL, &module);
    if (status == TOL_OK) status = tol_module_kernel(module, "put", &kernel);
    if (status == TOL_OK) status = tol_pinned_create(context, 64, &pinned);
    if (status == TOL_OK) status = tol_graph_create(context, &graph);
    if (status == TOL_OK) {
        status = tol_graph_add_kernel(graph, kernel, shape, arguments, NULL, 0, &node);
    }
    if (status == TOL_OK) status = tol_graph_clone(graph, &clone);
    if (status == TOL_OK) status = tol_graph_set_kernel(clone, node, kernel, shape, arguments);
    if (status == TOL_OK) status = tol_graph_instantiate(graph, &exec);
    if (status == TOL_OK) {
        status = tol_graph_exec_set_kernel(exec, node, kernel, shape, arguments);
    }
    if (status == TOL_OK) status = tol_graph_exec_update(exec, clone);
    if (status == TOL_OK) status = tol_graph_launch(exec, stream);
    if (status == TOL_OK) status = tol_graph_capture_begin(stream);
    if (status == TOL_OK) {
        tol_status inside = tol_copy_to_device(stream, buffer, 0, pinned, 0, 64);
        if (inside == TOL_OK) {
            inside = tol_launch_programmatic(stream, kernel, shape, arguments);
        }
        if (inside == TOL_OK) inside = tol_stream_call(stream, do_nothing, NULL);
        if (inside == TOL_OK) {
            status = tol_graph_capture_end(stream, &captured);
        } else {
            /* The capture ends all the same, and the first failure is the one to tell. */
            char message[400];
            snprintf(message, sizeof message, "%s", tol_message());
            (void)tol_graph_capture_end(stream, &captured);
            return tol_fail_again(inside, tol_message_cuda(), message);
        }
    }
    if (status == TOL_OK) status = tol_graph_instantiate(captured, &other);
    if (status == TOL_OK) status = tol_graph_launch(other, stream);
    if (status == TOL_OK) status = tol_stream_call(stream, do_nothing, NULL);
    if (status == TOL_OK) status = tol_stream_synchronize(stream);
    return status;
}

static tol_status workload(struct tol_driver *driver) {
    tol_auto_context struct tol_context *context = NULL;
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    struct tol_health health;
    int lowest = 0, highest = 0;
    tol_status status = tol_context_create(driver, 0, &context);
    if (status == TOL_OK) status = tol_context_bind(context);
    if (status == TOL_OK) status = tol_context_memory(context, NULL, NULL);
    if (status == TOL_OK) status = tol_context_priorities(context, &lowest, &highest);
    if (status == TOL_OK) status = tol_stream_create(context, NULL, &stream);
    if (status == TOL_OK) status = tol_stream_properties(stream, &lowest, NULL);
    if (status == TOL_OK) status = tol_buffer_create(context, 64, 1, &buffer);
    if (status == TOL_OK) status = tol_health_check(context, NULL, &health);
    if (status == TOL_OK) status = copies_workload(context, stream, buffer);
    if (status == TOL_OK) status = events_workload(context, stream);
    if (status == TOL_OK) status = transfers_workload(driver, context, buffer);
    if (status == TOL_OK) status = kernels_workload(context, stream, buffer);
    if (status == TOL_OK && tol_driver_has(driver, TOL_FEATURE_VMM)) {
        status = mapped_pools_workload(context, stream);
        if (status == TOL_OK) status = vram_workload(context);
    }
    if (status == TOL_OK && tol_driver_has(driver, TOL_FEATURE_GRAPH)) {
        status = graphs_workload(context, stream, buffer);
    }
    if (status == TOL_OK && tol_driver_has(driver, TOL_FEATURE_MEMORY_POOL)) {
        status = driver_pools_workload(context, stream);
    }
    if (status == TOL_OK) status = tol_stream_synchronize(stream);
    if (status == TOL_OK) status = tol_stream_query(stream);
    if (status == TOL_OK) status = tol_context_synchronize(context, TOL_DEADLINE_MS);
    return status;
}

/* What is made by one call and unmade by another. */
static const struct {
    enum tol_driver_index make, unmake;
} pairs[] = {
    {TOL_DRIVER_INDEX_cuDevicePrimaryCtxRetain, TOL_DRIVER_INDEX_cuDevicePrimaryCtxRelease_v2},
    {TOL_DRIVER_INDEX_cuStreamCreateWithPriority, TOL_DRIVER_INDEX_cuStreamDestroy_v2},
    {TOL_DRIVER_INDEX_cuEventCreate, TOL_DRIVER_INDEX_cuEventDestroy_v2},
    {TOL_DRIVER_INDEX_cuMemAlloc_v2, TOL_DRIVER_INDEX_cuMemFree_v2},
    {TOL_DRIVER_INDEX_cuMemHostAlloc, TOL_DRIVER_INDEX_cuMemFreeHost},
    {TOL_DRIVER_INDEX_cuModuleLoadDataEx, TOL_DRIVER_INDEX_cuModuleUnload},
    {TOL_DRIVER_INDEX_cuMemAddressReserve, TOL_DRIVER_INDEX_cuMemAddressFree},
    {TOL_DRIVER_INDEX_cuMemCreate, TOL_DRIVER_INDEX_cuMemRelease},
    {TOL_DRIVER_INDEX_cuMemMap, TOL_DRIVER_INDEX_cuMemUnmap},
    {TOL_DRIVER_INDEX_cuMemPoolCreate, TOL_DRIVER_INDEX_cuMemPoolDestroy},
    {TOL_DRIVER_INDEX_cuGraphCreate, TOL_DRIVER_INDEX_cuGraphDestroy},
    {TOL_DRIVER_INDEX_cuGraphClone, TOL_DRIVER_INDEX_cuGraphDestroy},
    {TOL_DRIVER_INDEX_cuStreamEndCapture, TOL_DRIVER_INDEX_cuGraphDestroy},
    {TOL_DRIVER_INDEX_cuGraphInstantiateWithFlags, TOL_DRIVER_INDEX_cuGraphExecDestroy},
};

static bool is_making(enum tol_driver_index index) {
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].make == index) return true;
    }
    return false;
}

/* Counts successes: a failed attempt to make something makes nothing. */
static uint64_t made[TOL_DRIVER_FUNCTIONS];
static struct test_refusal refusal;

static void refuse(struct tol_interpose_call *call, void *user) {
    test_refuse(call, user);
}

static void count_success(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->result == CUDA_SUCCESS || !is_making(call->index)) made[call->index]++;
    test_refuse_after(call, &refusal);
    if (call->index == TOL_DRIVER_INDEX_cuDeviceCanAccessPeer && peers_are_apart) {
        **(int *const *)call->arguments[0] = 0;
    }
}

/* The workload with its nth call refused. What was refused, if it came so far, is in refusal. */
static tol_status workload_without(struct tol_driver *driver, uint64_t n) {
    test_scenario_begin(driver, n, 2);
    memset(made, 0, sizeof made);
    peers_are_apart = false;
    refusal = (struct test_refusal){
        .nth = n, .result = CUDA_ERROR_NOT_PERMITTED, .refused = TOL_DRIVER_FUNCTIONS};
    MUST(tol_interpose_install(driver, &(struct tol_interpose_options){.before = refuse,
                                                                       .after = count_success,
                                                                       .user = &refusal}));
    tol_status status = workload(driver);
    tol_interpose_remove(driver);
    return status;
}

Test(failure, the_nth_driver_call_failing_loses_nothing, .fini = test_end, .timeout = 300) {
    struct tol_driver *driver = driver_of_workloads();
    ptx = test_ptx("handwritten/put.ptx");
    uint64_t n = test_next_scenario(0);
    for (;; n = test_next_scenario(n)) {
        tol_status status = workload_without(driver, n);
        const enum tol_driver_index failed = refusal.refused;
        const char *name = tol_driver_function_name(failed);
        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
            uint64_t all = 0;
            for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++) {
                if (pairs[k].unmake == pairs[i].unmake) all += made[pairs[k].make];
            }
            /* What the driver would not unmake may be tried again. */
            uint64_t again = failed == pairs[i].unmake && made[pairs[i].unmake] == all + 1;
            cr_assert(all + again == made[pairs[i].unmake],
                      "call %llu (%s) failed: %s and its like succeeded %llu times, %s was called "
                      "%llu times",
                      (unsigned long long)n, name, tol_driver_function_name(pairs[i].make),
                      (unsigned long long)all, tol_driver_function_name(pairs[i].unmake),
                      (unsigned long long)made[pairs[i].unmake]);
        }
        if (failed == TOL_DRIVER_FUNCTIONS) {
            MUST(status); /* n is past the last call: the workload came through */
            break;
        }
        if (status == TOL_OK)
            continue; /* it was a call whose failure changes nothing for the user */
        cr_assert(strstr(tol_message(), name) != NULL,
                  "call %llu (%s) failed, and the message says: %s", (unsigned long long)n, name,
                  tol_message());
    }
    test_scenarios_end();
    free(ptx);
    cr_assert(n > 60 && n > refusal.calls, "workload %llu made %llu calls", (unsigned long long)n,
              (unsigned long long)refusal.calls);
}

/* Calls whose failure the user need not see: queries of parameters and logs, which are extras,
 * destructions, after which the user cannot act, and calls that only improve a message. */
static bool may_be_silent(enum tol_driver_index index) {
    switch (index) {
    case TOL_DRIVER_INDEX_cuFuncGetParamInfo:
    case TOL_DRIVER_INDEX_cuLogsDumpToMemory:
    case TOL_DRIVER_INDEX_cuCtxSetCurrent: /* before an unmaking call */
    case TOL_DRIVER_INDEX_cuStreamQuery:   /* likewise */
    case TOL_DRIVER_INDEX_cuEventQuery:    /* of a staging block: another one is taken */
    case TOL_DRIVER_INDEX_cuMemFreeAsync:  /* of a block that is live when its pool ends */
        return true;
    default:
        break;
    }
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].unmake == index) return true;
    }
    return false;
}

Test(failure, only_unmaking_may_fail_in_silence, .fini = test_end, .timeout = 300) {
    struct tol_driver *driver = driver_of_workloads();
    ptx = test_ptx("handwritten/put.ptx");
    for (uint64_t n = test_next_scenario(0);; n = test_next_scenario(n)) {
        tol_status status = workload_without(driver, n);
        if (refusal.refused == TOL_DRIVER_FUNCTIONS) break;
        cr_assert(status != TOL_OK || may_be_silent(refusal.refused),
                  "call %llu, %s, failed unheard", (unsigned long long)n,
                  tol_driver_function_name(refusal.refused));
    }
    test_scenarios_end();
    free(ptx);
}

/* A call that fails once for a temporary reason: transfers repeat it, other calls report it, and
 * nothing is lost. */
Test(failure, transfers_get_over_what_passes, .fini = test_end, .timeout = 300) {
    static const enum tol_driver_index retried[] = {
        TOL_DRIVER_INDEX_cuMemcpyHtoDAsync_v2, TOL_DRIVER_INDEX_cuMemcpyDtoHAsync_v2,
        TOL_DRIVER_INDEX_cuMemcpyDtoDAsync_v2, TOL_DRIVER_INDEX_cuMemcpy2DAsync_v2,
        TOL_DRIVER_INDEX_cuMemcpyPeerAsync,    TOL_DRIVER_INDEX_cuEventRecord,
        TOL_DRIVER_INDEX_cuMemHostAlloc};
    struct tol_driver *driver = driver_of_workloads();
    tol_auto_context struct tol_context *context = NULL;
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    uint64_t scenario = 1;
    for (size_t i = 0; i < sizeof retried / sizeof retried[0]; i++) {
        for (uint64_t nth = 1;; nth++, scenario++) {
            const struct tol_interpose_rule rule = {.function =
                                                        tol_driver_function_name(retried[i]),
                                                    .nth = nth,
                                                    .action = TOL_INTERPOSE_FAIL,
                                                    .result = CUDA_ERROR_OUT_OF_MEMORY};
            const struct tol_interpose_options options = {
                .rules = &rule, .rule_count = 1, .after = count_success};
            test_scenario_begin(driver, scenario, 2);
            refusal = (struct test_refusal){.refused = TOL_DRIVER_FUNCTIONS};
            peers_are_apart = false;
            MUST(tol_interpose_install(driver, &options));
            MUST(tol_context_create(driver, 0, &context));
            MUST(tol_buffer_create(context, 64, 1, &buffer));
            tol_status status = transfers_workload(driver, context, buffer);
            tol_buffer_destroy(buffer);
            buffer = NULL;
            tol_context_destroy(context);
            context = NULL;
            tol_interpose_remove(driver);
            cr_assert(status == TOL_OK, "%s, call %llu: %s", rule.function, (unsigned long long)nth,
                      tol_message());
            if (refusal.refused == TOL_DRIVER_FUNCTIONS) {
                int count = 0;
                MUST(tol_device_count(driver, &count));
                cr_assert(nth > 1 || count < 2, "%s is never called", rule.function);
                break;
            }
        }
    }
    test_scenarios_end();
}

/* What collectives of processes call, or a watch sees, and the runtime's own calls do not call. */
static bool is_for_others(int i) {
    static const tol_feature of[] = {
#define TOL_DRIVER_FN(feature, name, parameters, names) TOL_FEATURE_##feature,
#include "tollens/driver.def"
    };
    return of[i] == TOL_FEATURE_SHARING || of[i] >= TOL_FEATURE_OTHERS;
}

/* The workload must call each driver function that the runtime calls. These are in the list for raw
 * use only. */
Test(failure, the_workload_calls_every_function_that_the_runtime_calls, .fini = test_end) {
    static const enum tol_driver_index raw_only[] = {
        TOL_DRIVER_INDEX_cuInit, TOL_DRIVER_INDEX_cuDriverGetVersion,
        TOL_DRIVER_INDEX_cuCtxGetCurrent, TOL_DRIVER_INDEX_cuCtxSynchronize,
        TOL_DRIVER_INDEX_cuModuleLoadData, TOL_DRIVER_INDEX_cuStreamCreate,
        TOL_DRIVER_INDEX_cuStreamSynchronize, TOL_DRIVER_INDEX_cuStreamIsCapturing,
        TOL_DRIVER_INDEX_cuLogsCurrent,
        /* the next two by operations of kernels/; then one by libtollens-torch.so alone */
        TOL_DRIVER_INDEX_cuTensorMapEncodeTiled, TOL_DRIVER_INDEX_cuOccupancyMaxActiveClusters,
        TOL_DRIVER_INDEX_cuThreadExchangeStreamCaptureMode,
        /* called by the runtime, but only after something failed */
        TOL_DRIVER_INDEX_cuLogsDumpToMemory};
    struct tol_driver *driver = driver_of_workloads();
    ptx = test_ptx("handwritten/put.ptx");
    MUST(tol_interpose_install(driver, &(struct tol_interpose_options){.after = count_success}));
    MUST(workload(driver));
    for (int i = 0; i < TOL_DRIVER_FUNCTIONS; i++) {
        bool expected = !is_for_others(i);
        for (size_t k = 0; k < sizeof raw_only / sizeof raw_only[0]; k++) {
            expected = expected && raw_only[k] != (enum tol_driver_index)i;
        }
        if (tol_driver_functions(driver)->cuFuncGetParamInfo == NULL &&
            i == TOL_DRIVER_INDEX_cuFuncGetParamInfo) {
            expected = false;
        }
        /* A GPU machine may have one device, or two that do not reach each other. */
        bool is_of_peers = i == TOL_DRIVER_INDEX_cuDeviceCanAccessPeer ||
                           i == TOL_DRIVER_INDEX_cuCtxEnablePeerAccess ||
                           i == TOL_DRIVER_INDEX_cuMemcpyPeerAsync;
        bool is_of_hopper = i == TOL_DRIVER_INDEX_cuLaunchKernelEx;
        if ((is_of_peers || is_of_hopper) && test_on_gpu()) continue;
        bool called = tol_interpose_count((enum tol_driver_index)i) > 0;
        cr_assert(called == expected, "%s was%s called",
                  tol_driver_function_name((enum tol_driver_index)i), called ? "" : " not");
    }
    tol_interpose_remove(driver);
    free(ptx);
}

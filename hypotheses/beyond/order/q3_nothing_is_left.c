/*
 * Attacks on Q3: lives of everything that the runtime has, and the books afterwards.
 */
#include "left_books.h"
#include "order_faults.h"

#include "harness/clock.h"
#include "pool/pool_state.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

#define FILL(lives, value)                                                                         \
    (lives)->fill, tol_launch_linear(64, 64),                                                      \
        TOL_ARGUMENTS(tol_buffer_address((lives)->buffer), 64u, (unsigned)(value))
#define TRY(lives, call)                                                                           \
    do {                                                                                           \
        if (!HYP_OK((lives)->attack, call)) return false;                                          \
    } while (0)

/* An attack on one kind of life. */
#define LEFT_ATTACK(name, what, count, life)                                                       \
    HYP_ATTACK(q3, name) {                                                                         \
        struct left_lives lives;                                                                   \
        if (left_lives_begin(attack, &lives)) left_lives_run(&lives, what, count, life);           \
        left_lives_end(&lives);                                                                    \
    }

/* ---- memory ---------------------------------------------------------------------------------- */

enum { BUFFERS = 4 };

static bool left_buffers(struct left_lives *lives) {
    struct tol_buffer *buffers[BUFFERS] = {NULL};
    struct hyp_attack *attack = lives->attack;
    bool ok = true;
    for (int i = 0; ok && i < BUFFERS; i++) {
        ok = HYP_OK(attack, tol_buffer_create(attack->context, 2 * MIB, 1, &buffers[i])) &&
             HYP_OK(attack, tol_buffer_fill_at(buffers[i], 0, 7, 4, 64));
    }
    for (int i = 0; i < BUFFERS; i++) tol_buffer_destroy(buffers[i]);
    return ok;
}

LEFT_ATTACK(buffers_leave_nothing, "buffers", 300, left_buffers)

static bool left_pinned(struct left_lives *lives) {
    struct hyp_attack *attack = lives->attack;
    struct tol_pinned *pinned[2] = {NULL};
    void *data = NULL;
    bool ok = true;
    for (int i = 0; ok && i < 2; i++) {
        ok =
            HYP_OK(attack, (i == 0 ? tol_pinned_create : tol_pinned_create_huge)(
                               attack->context, MIB / 4, &pinned[i])) &&
            HYP_OK(attack, tol_copy_to_host(lives->stream, pinned[i], 0, lives->buffer, 0, 4096)) &&
            HYP_OK(attack, tol_pinned_await(pinned[i], &data));
        if (ok) memset(data, 1, MIB / 4);
    }
    for (int i = 0; i < 2; i++) tol_pinned_destroy(pinned[i]);
    return ok;
}

LEFT_ATTACK(pinned_memory_leaves_nothing, "pinned memory", 100, left_pinned)

/* ---- order ----------------------------------------------------------------------------------- */

static tol_status left_called(void *user, char *reason, size_t bytes) {
    (void)reason;
    (void)bytes;
    ++*(unsigned *)user;
    return TOL_OK;
}

static bool left_streams(struct left_lives *lives) {
    struct hyp_attack *attack = lives->attack;
    struct tol_stream *streams[2] = {NULL};
    struct tol_event *events[4] = {NULL};
    unsigned calls = 0;
    bool ok = true;
    for (int i = 0; ok && i < 2; i++) {
        ok = HYP_OK(attack, tol_stream_create(attack->context, NULL, &streams[i]));
    }
    for (int i = 0; ok && i < 4; i++) {
        ok = HYP_OK(attack, tol_event_create(attack->context, i % 2 == 0, &events[i])) &&
             HYP_OK(attack, tol_launch(streams[i % 2], FILL(lives, i))) &&
             HYP_OK(attack, tol_event_record(events[i], streams[i % 2])) &&
             HYP_OK(attack, tol_stream_wait_event(streams[1 - i % 2], events[i]));
    }
    ok = ok && HYP_OK(attack, tol_stream_call(streams[0], left_called, &calls)) &&
         HYP_OK(attack, tol_stream_synchronize(streams[0])) &&
         HYP_OK(attack, tol_stream_synchronize(streams[1])) &&
         HYP_CHECK(attack, calls == 1, "a host function was called %u times", calls);
    for (int i = 0; i < 4; i++) tol_event_destroy(events[i]);
    for (int i = 0; i < 2; i++) tol_stream_destroy(streams[i]);
    return ok;
}

LEFT_ATTACK(streams_and_events_leave_nothing, "streams and events", 600, left_streams)

static bool left_stream_pools(struct left_lives *lives) {
    struct tol_stream_pool *pool = NULL;
    struct tol_stream *branches[2] = {NULL};
    TRY(lives, tol_stream_pool_create(lives->attack->context, NULL, &pool));
    const bool ok = HYP_OK(lives->attack, tol_stream_pool_fork(pool, lives->stream, 2, branches)) &&
                    HYP_OK(lives->attack, tol_launch(branches[0], FILL(lives, 1))) &&
                    HYP_OK(lives->attack, tol_stream_pool_join(pool, lives->stream, 2, branches)) &&
                    HYP_OK(lives->attack, tol_stream_synchronize(lives->stream));
    tol_stream_pool_destroy(pool);
    return ok;
}

LEFT_ATTACK(stream_pools_leave_nothing, "pools of streams", 300, left_stream_pools)

/* ---- modules and graphs ---------------------------------------------------------------------- */

/* Its variable takes 4 MiB of the device. */
static const char heavy[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                            ".visible .global .align 4 .b8 weight[4194304];\n"
                            ".visible .entry lift(.param .u32 value) {\n"
                            "  .reg .u64 %a<1>; .reg .u32 %r<1>;\n  ld.param.u32 %r0, [value];\n"
                            "  mov.u64 %a0, weight;\n  st.global.u32 [%a0+4096], %r0;\n  ret;\n}\n";

static bool left_modules(struct left_lives *lives) {
    struct hyp_attack *attack = lives->attack;
    struct tol_module *module = NULL, *same = NULL, *apart = NULL;
    struct tol_kernel *kernel = NULL;
    struct tol_buffer *weight = NULL;
    const struct tol_module_options unshared = {.unshared = true};
    const bool ok =
        HYP_OK(attack, tol_module_load(attack->context, heavy, sizeof heavy - 1, NULL, &module)) &&
        HYP_OK(attack, tol_module_load(attack->context, heavy, sizeof heavy - 1, NULL, &same)) &&
        HYP_OK(attack,
               tol_module_load(attack->context, heavy, sizeof heavy - 1, &unshared, &apart)) &&
        HYP_OK(attack, tol_module_kernel(apart, "lift", &kernel)) &&
        HYP_OK(attack, tol_module_global(module, "weight", &weight)) &&
        HYP_OK(attack,
               tol_launch(lives->stream, kernel, tol_launch_linear(1, 1), TOL_ARGUMENTS(3u))) &&
        HYP_OK(attack, tol_stream_synchronize(lives->stream));
    tol_buffer_destroy(weight);
    tol_module_destroy(apart);
    tol_module_destroy(same);
    tol_module_destroy(module);
    return ok && HYP_CHECK(attack,
                           tol_module_load(attack->context, ".version 6.4 no", 15, NULL, &same) ==
                               TOL_INVALID_MODULE,
                           "text that is no module was not refused");
}

LEFT_ATTACK(modules_leave_nothing, "modules", 25, left_modules)

static bool left_graphs(struct left_lives *lives) {
    struct hyp_attack *attack = lives->attack;
    struct tol_graph *graph = NULL, *clone = NULL, *captured = NULL;
    struct tol_graph_exec *exec = NULL, *second = NULL;
    struct tol_batch *batch = NULL;
    unsigned node = 0;
    const bool ok = HYP_OK(attack, tol_graph_create(attack->context, &graph)) &&
                    HYP_OK(attack, tol_graph_add_kernel(graph, FILL(lives, 1), NULL, 0, &node)) &&
                    HYP_OK(attack, tol_graph_add_kernel(graph, FILL(lives, 2), &node, 1, NULL)) &&
                    HYP_OK(attack, tol_graph_clone(graph, &clone)) &&
                    HYP_OK(attack, tol_graph_instantiate(graph, &exec)) &&
                    HYP_OK(attack, tol_graph_exec_update(exec, clone)) &&
                    HYP_OK(attack, tol_graph_launch(exec, lives->stream)) &&
                    HYP_OK(attack, tol_graph_capture_begin(lives->stream)) &&
                    HYP_OK(attack, tol_launch(lives->stream, FILL(lives, 3))) &&
                    HYP_OK(attack, tol_graph_capture_end(lives->stream, &captured)) &&
                    HYP_OK(attack, tol_graph_instantiate(captured, &second)) &&
                    HYP_OK(attack, tol_graph_launch(second, lives->stream)) &&
                    HYP_OK(attack, tol_batch_create(attack->context, NULL, &batch)) &&
                    HYP_OK(attack, tol_batch_add(batch, FILL(lives, 4))) &&
                    HYP_OK(attack, tol_batch_launch(batch, lives->stream)) &&
                    HYP_OK(attack, tol_stream_synchronize(lives->stream));
    tol_batch_destroy(batch);
    tol_graph_exec_destroy(second);
    tol_graph_exec_destroy(exec);
    tol_graph_destroy(captured);
    tol_graph_destroy(clone);
    tol_graph_destroy(graph);
    return ok;
}

HYP_ATTACK(q3, graphs_leave_nothing) {
    struct left_lives lives;
    if (!tol_driver_has(attack->driver, TOL_FEATURE_GRAPH)) {
        hyp_attack_not_tested(attack, "no_graphs", "this driver has no graphs");
        return;
    }
    if (left_lives_begin(attack, &lives)) left_lives_run(&lives, "graphs", 300, left_graphs);
    left_lives_end(&lives);
}

/* ---- pools ----------------------------------------------------------------------------------- */

static bool left_pools(struct left_lives *lives) {
    static const size_t sizes[] = {4096, MIB / 2, 3 * MIB, 20 * MIB};
    struct hyp_attack *attack = lives->attack;
    const enum tol_pool_source *source = lives->user;
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    struct tol_block blocks[8];
    tol_pool_default(tol_context_device(attack->context), &options);
    options.source = *source;
    options.first_bytes = 4 * MIB;
    size_t free_before = 0, free_after = 0;
    TRY(lives, tol_context_memory(attack->context, &free_before, NULL));
    TRY(lives, tol_pool_create(attack->context, &options, &pool));
    bool ok = true;
    unsigned made = 0;
    for (; ok && made < 8; made += ok) {
        ok = HYP_OK(attack, tol_pool_allocate(pool, sizes[made % 4],
                                              made % 2 == 0 ? lives->stream : NULL, &blocks[made]));
    }
    /* The last one is left to the end of the pool. */
    for (unsigned i = 0; i + 1 < made; i++) {
        ok = HYP_OK(attack, tol_pool_free(pool, blocks[i], lives->stream)) && ok;
    }
    ok = HYP_OK(attack, tol_stream_synchronize(lives->stream)) &&
         HYP_OK(attack, tol_pool_trim(pool, 0)) &&
         HYP_OK(attack, tol_context_memory(attack->context, &free_after, NULL)) && ok;
    /* A GPU's own pool gives back what it can, which depends on its pieces. */
    if (ok && (attack->kind == HYP_DEVICE_SOFT || *source != TOL_POOL_DRIVER)) {
        ok = HYP_CHECK(attack, free_before <= free_after + 36 * MIB,
                       "a trimmed pool with one block of 20 MiB keeps %zu bytes of the device",
                       free_before - free_after);
    }
    tol_pool_destroy(pool);
    return ok;
}

static void left_pools_of(struct hyp_attack *attack, enum tol_pool_source source,
                          const char *what) {
    struct left_lives lives;
    struct tol_pool *pool = NULL;
    if (left_lives_begin(attack, &lives)) {
        const struct tol_pool_options options = {.source = source};
        lives.user = &source;
        if (source == TOL_POOL_DRIVER &&
            tol_pool_create(attack->context, &options, &pool) == TOL_UNSUPPORTED) {
            hyp_attack_not_tested(attack, "no_pools", "this driver has no pools");
        } else {
            tol_pool_destroy(pool);
            left_lives_run(&lives, what, 40, left_pools);
        }
    }
    left_lives_end(&lives);
}

HYP_ATTACK(q3, pools_leave_nothing) {
    left_pools_of(attack, TOL_POOL_MAPPED, "pools");
}

HYP_ATTACK(q3, pools_of_chunks_leave_nothing) {
    left_pools_of(attack, TOL_POOL_CHUNKED, "pools of chunks");
}

HYP_ATTACK(q3, driver_pools_leave_nothing) {
    left_pools_of(attack, TOL_POOL_DRIVER, "the driver's pools");
}

/* The addresses of ended pools can be reserved again: pools that are created one after the other
 * would need more than there are, even if the driver kept one in twenty. A driver need not give the
 * addresses that are asked for, so there is no shorter way. */
HYP_ATTACK(q3, pools_leave_no_addresses) {
    enum { SPACE_SHIFT_GPU = 47, SPACE_SHIFT_SOFT = 44, ONE_IN = 20, LIMIT_S = 60 };
    struct left_lives lives;
    bool ok = left_lives_begin(attack, &lives) && tol_driver_has(attack->driver, TOL_FEATURE_VMM);
    const uint64_t begin_ns = hyp_clock_ns();
    const bool is_soft = attack->session.kind == HYP_DEVICE_SOFT;
    const double space = (double)(1ull << (is_soft ? SPACE_SHIFT_SOFT : SPACE_SHIFT_GPU));
    double reserved = 0, most = space * ONE_IN * 1.5;
    HYP_CHECK(attack, true, "begins");
    for (unsigned i = 0; ok && reserved < most; i++) {
        struct tol_pool *pool = NULL;
        ok = HYP_CHECK(attack, tol_pool_create(attack->context, NULL, &pool) == TOL_OK,
                       "after %u pools have ended, another one cannot be created: %s", i,
                       tol_message());
        if (ok) reserved += (double)pool->pages.bytes;
        tol_pool_destroy(pool);
        hyp_attack_progress(attack, reserved / most);
        if ((double)(hyp_clock_ns() - begin_ns) * 1e-9 > LIMIT_S) most = reserved;
    }
    if (ok) {
        hyp_attack_note(attack, "pools reserved %.0f TiB in turn, of %.0f TiB that there are",
                        reserved / (double)(1ull << 40), space / (double)(1ull << 40));
    }
    left_lives_end(&lives);
}

/* ---- copies, memory by plain calls, health, watches ------------------------------------------ */

static bool left_transfers(struct left_lives *lives) {
    struct hyp_attack *attack = lives->attack;
    static unsigned char bytes[65536];
    struct tol_transfer_options options;
    struct tol_transfer *transfer = NULL;
    struct tol_buffer *buffer = NULL;
    tol_transfer_default(&options);
    options.threads = 2;
    options.block_bytes = 16384;
    options.streamed_bytes = 4096;
    const bool ok =
        HYP_OK(attack, tol_transfer_create(attack->context, &options, &transfer)) &&
        HYP_OK(attack, tol_buffer_create(attack->context, sizeof bytes, 1, &buffer)) &&
        HYP_OK(attack,
               tol_transfer_write(transfer, tol_place_of_buffer(buffer), 0, bytes, sizeof bytes)) &&
        HYP_OK(attack,
               tol_transfer_read(transfer, tol_place_of_buffer(buffer), 0, bytes, sizeof bytes));
    tol_transfer_destroy(transfer);
    tol_buffer_destroy(buffer);
    return ok;
}

LEFT_ATTACK(transfers_leave_nothing, "transfers", 150, left_transfers)

static bool left_health(struct left_lives *lives) {
    struct hyp_attack *attack = lives->attack;
    struct tol_health_mark *mark = NULL;
    struct tol_vram_context *vram = NULL;
    struct tol_watch *watch = NULL;
    struct tol_vram memory;
    struct tol_health health;
    const struct tol_watch_options options = {.rules = NULL};
    const bool ok =
        HYP_OK(attack, tol_health_mark_create(attack->context, &mark)) &&
        HYP_OK(attack, tol_vram_context_create(attack->context, 16 * MIB, &vram)) &&
        HYP_OK(attack, tol_vram_allocate(vram, 3 * MIB, &memory)) &&
        HYP_OK(attack, tol_health_check(attack->context, mark, &health)) &&
        HYP_CHECK(attack, health.leaked.bytes >= 3 * MIB, "health sees %llu new bytes, not 3 MiB",
                  (unsigned long long)health.leaked.bytes) &&
        HYP_OK(attack, tol_vram_free(vram, memory)) &&
        HYP_OK(attack, tol_watch_create(&options, &watch)) &&
        HYP_OK(attack, tol_watch_add(watch, tol_buffer_address(lives->buffer), 4096, "weights"));
    tol_watch_destroy(watch);
    tol_vram_context_destroy(vram);
    tol_health_mark_destroy(mark);
    return ok;
}

LEFT_ATTACK(vram_health_and_watches_leave_nothing, "vram, health and watches", 100, left_health)

static tol_status left_deliver(void *user, const struct tol_guard_answer *answer) {
    return user == NULL && answer != NULL ? TOL_OK : TOL_INVALID_ARGUMENT;
}

/* Jobs are submitted and not run: the guard's workers are processes of their own. */
static bool left_guards(struct left_lives *lives) {
    static const char *const program[] = {"true", NULL}, *const devices[] = {"soft:0"};
    const struct tol_guard_options options = {.program = program,
                                              .devices = devices,
                                              .device_count = 1,
                                              .talk = TOL_GUARD_LINES,
                                              .deliver = left_deliver};
    struct tol_guard *guard = NULL;
    uint64_t job = 0;
    TRY(lives, tol_guard_open(&options, &guard));
    const bool ok = HYP_OK(lives->attack, tol_guard_submit(guard, "1", 1, &job)) &&
                    HYP_OK(lives->attack, tol_guard_submit(guard, "2", 1, &job));
    tol_guard_close(guard);
    return ok;
}

LEFT_ATTACK(guards_leave_nothing, "guards", 200, left_guards)

/* ---- drivers, contexts, traces --------------------------------------------------------------- */

/* A second driver object, its context with everything in it, and a trace of it. */
static bool left_contexts(struct left_lives *lives) {
    struct hyp_attack *attack = lives->attack;
    const struct tol_trace_options options = {.calls_max = 100, .operations_max = 100};
    struct tol_driver *driver = NULL;
    struct left_lives inner;
    struct hyp_attack other = *attack;
    TRY(lives, tol_driver_open(tol_driver_path(attack->driver), &driver));
    order_fault_plant(attack, tol_driver_functions(driver));
    /* A process has one interposer. */
    const bool is_traced = tol_driver_functions(attack->driver) == attack->raw;
    bool ok = !is_traced || HYP_OK(attack, tol_trace_install(driver, &options, NULL));
    other.context = NULL;
    ok = ok && HYP_OK(attack, tol_context_create(driver, attack->session.ordinal, &other.context));
    if (ok) {
        ok = left_lives_begin(&other, &inner) && left_streams(&inner) && left_buffers(&inner);
        left_lives_end(&inner);
    }
    tol_context_destroy(other.context);
    if (is_traced) tol_trace_remove(driver);
    tol_driver_close(driver);
    return ok;
}

LEFT_ATTACK(contexts_and_traces_leave_nothing, "contexts and traces", 100, left_contexts)

/* Whether the device's primary context is there, by the driver's own word. */
static bool left_is_active(struct hyp_attack *attack, bool *is_active) {
    CUresult(CUDAAPI * state)(CUdevice device, unsigned *flags, int *active) = NULL;
    unsigned flags = 0;
    int active = 0;
    CUdevice device = 0;
    void *library = dlopen(tol_driver_path(attack->driver), RTLD_NOW | RTLD_NOLOAD);
    void *found = library != NULL ? dlsym(library, "cuDevicePrimaryCtxGetState") : NULL;
    memcpy((void *)&state, &found, sizeof found);
    const bool ok =
        HYP_CHECK(attack, state != NULL, "the driver has no cuDevicePrimaryCtxGetState") &&
        HYP_CHECK(attack,
                  attack->raw->cuDeviceGet(&device, attack->session.ordinal) == CUDA_SUCCESS,
                  "there is no device %d", attack->session.ordinal) &&
        HYP_CHECK(attack, state(device, &flags, &active) == CUDA_SUCCESS,
                  "the driver does not tell whether its context is active");
    if (library != NULL) dlclose(library);
    *is_active = active != 0;
    return ok;
}

/* The attack's own context ends too. */
HYP_ATTACK(q3, the_last_context_ends_with_its_owner) {
    const unsigned count = attack->session.full ? 100 : 24;
    struct left_lives lives;
    bool is_active = false;
    bool ok = left_lives_begin(attack, &lives);
    for (unsigned i = 0; ok && i < count; i++) ok = left_contexts(&lives);
    left_lives_end(&lives);
    ok = left_is_active(attack, &is_active) && ok;
    HYP_CHECK(attack, !ok || is_active, "the context has ended before its owner");
    tol_context_destroy(attack->context);
    attack->context = NULL;
    if (ok && left_is_active(attack, &is_active)) {
        HYP_CHECK(attack, !is_active, "the driver's context is still active after its last owner");
    }
}

/* ---- what the driver says about its memory --------------------------------------------------- */

/* Memory that is allocated is not free, and is free again later: by the driver's own function and
 * by the runtime's. */
static void left_check_told(struct hyp_attack *attack, size_t bytes) {
    struct tol_buffer *buffer = NULL;
    size_t before[2] = {0}, during[2] = {0}, after[2] = {0}, total[2] = {0};
    const CUresult told = attack->raw->cuMemGetInfo_v2(&before[1], &total[1]);
    HYP_NEED(attack, tol_context_memory(attack->context, &before[0], &total[0]));
    HYP_NEED(attack, tol_buffer_create(attack->context, bytes, 1, &buffer));
    (void)attack->raw->cuMemGetInfo_v2(&during[1], &total[1]);
    HYP_OK(attack, tol_context_memory(attack->context, &during[0], &total[0]));
    tol_buffer_destroy(buffer);
    (void)attack->raw->cuMemGetInfo_v2(&after[1], &total[1]);
    HYP_NEED(attack, tol_context_memory(attack->context, &after[0], NULL));
    HYP_CHECK(attack, told == CUDA_SUCCESS && total[0] == total[1] && before[0] <= total[0],
              "of %zu and %zu bytes in all, %zu are free", total[0], total[1], before[0]);
    for (int i = 0; i < 2; i++) {
        HYP_CHECK(attack, before[i] >= during[i] + bytes,
                  "%zu bytes were free, and %zu while %zu more were allocated", before[i],
                  during[i], bytes);
        HYP_CHECK(attack, after[i] >= during[i] + bytes,
                  "%zu bytes were free while %zu were allocated, and %zu after their free",
                  during[i], bytes, after[i]);
    }
}

HYP_ATTACK(q3, what_is_free_is_told) {
    struct left_lives lives;
    const unsigned count = attack->session.full ? 200 : 24;
    if (left_lives_begin(attack, &lives)) {
        for (unsigned i = 0; i < count; i++) {
            left_check_told(attack, (8 + (size_t)hyp_random_below(attack, 24)) * 2 * MIB);
        }
    }
    left_lives_end(&lives);
}

/* ---- all together ---------------------------------------------------------------------------- */

static bool left_any(struct left_lives *lives) {
    static left_life *const all[] = {left_buffers, left_pinned,    left_streams, left_stream_pools,
                                     left_modules, left_transfers, left_health,  left_guards};
    return all[hyp_random_below(lives->attack, sizeof all / sizeof all[0])](lives);
}

LEFT_ATTACK(mixed_lives_leave_nothing, "lives of all kinds", 200, left_any)

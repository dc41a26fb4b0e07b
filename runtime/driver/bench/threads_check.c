/*
 * Many threads on one context, in a plain program: Criterion cannot run under ThreadSanitizer.
 *
 *     ninja test-tsan            builds this, the runtime and the soft device with it, and runs it
 *     threads-check [LIBRARY]    the driver's library; without, the platform's or the soft one's
 *
 * Each thread loads the same module and looks up the same kernel, launches on a stream of its own,
 * makes and ends events, takes and gives blocks of one pool, whose bytes must stay its own,
 * launches a batch of its own and an instance of a graph that all share, forks, joins, and queues
 * host functions. The pool wipes, guards some, keeps events, has a limit that is met, and is
 * queried for all that it can tell meanwhile; blocks are freed twice, and by other threads than
 * those that took them. All is done three times, twice of them under a trace, which is written
 * meanwhile. Exit code: 0 all was as it should be, 1 something was not, 2 there is no device.
 */
#include "threads_pool_check.h"

#include "core/any_driver.h"
#include "tollens/batch.h"
#include "tollens/event.h"
#include "tollens/health.h"
#include "tollens/launch.h"
#include "tollens/memory.h"
#include "tollens/module.h"
#include "tollens/pool_watch.h"
#include "tollens/stream.h"
#include "tollens/stream_pool.h"
#include "tollens/trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 60, LIVE = 12, BATCH = 2, EVENTS = 500 };

static const char ptx[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                          ".visible .entry count(.param .u64 own, .param .u64 all)\n{\n"
                          "    .reg .u64 %a;\n    .reg .u32 %v;\n"
                          "    ld.param.u64 %a, [own];\n    ld.global.u32 %v, [%a];\n"
                          "    add.u32 %v, %v, 1;\n    st.global.u32 [%a], %v;\n"
                          "    ld.param.u64 %a, [all];\n    red.global.add.u32 [%a], 1;\n"
                          "    ret;\n}\n";

struct all {
    struct tol_context *context;
    struct tol_pool *pool;
    struct tol_stream_pool *streams;
    struct tol_graph_exec *exec; /* adds one to the last, unused count, and to the sum */
    struct tol_buffer *counts;   /* one per thread, one for the graph, and the sum after them */
    pthread_mutex_t lock;        /* guards passed */
    struct tol_block passed;     /* of one thread, for another to free */
};

static const size_t limit_bytes = (size_t)192 << 20;

struct worker {
    struct all *all;
    unsigned number;
    const char *trouble;
    struct tol_batch *batch;
    unsigned calls; /* of host functions, on whatever thread they run */
};

struct piece {
    struct tol_block block;
    unsigned bytes, value;
};

/* A block of the pool, filled with a value, in the place of another, which must have kept its. */
static bool threads_check_swap_block(struct worker *w, struct tol_stream *stream,
                                     struct piece *piece, unsigned round) {
    struct tol_pool *pool = w->all->pool;
    const struct tol_driver_table *driver = tol_context_functions(w->all->context);
    if (piece->bytes > 0) {
        unsigned last = 0;
        CUdeviceptr end = tol_pool_address(pool, piece->block) + piece->bytes - 4;
        if (driver->cuMemcpyDtoHAsync_v2(&last, end, 4, tol_stream_handle(stream)) !=
                CUDA_SUCCESS ||
            tol_stream_synchronize(stream) != TOL_OK || last != piece->value) {
            return false;
        }
        if (tol_pool_free(pool, piece->block, stream) != TOL_OK) return false;
    }
    piece->bytes = 4 * (1 + (w->number * 7919 + round * 104729) % 100000);
    piece->value = w->number << 16 | round;
    if (tol_pool_allocate(pool, piece->bytes, stream, &piece->block) != TOL_OK) return false;
    return driver->cuMemsetD32Async(tol_pool_address(pool, piece->block), piece->value,
                                    piece->bytes / 4, tol_stream_handle(stream)) == CUDA_SUCCESS;
}

static tol_status threads_check_count_call(void *user, char *reason, size_t bytes) {
    (void)reason, (void)bytes;
    ++*(unsigned *)user; /* calls of one stream follow each other */
    return TOL_OK;
}

/* A batch of two launches, one of the graph that all share, and two branches. */
static bool run_graphs(struct worker *w, struct tol_stream *stream, const struct tol_kernel *kernel,
                       CUdeviceptr own, CUdeviceptr sum) {
    struct tol_stream *branches[2];
    bool ok = tol_batch_clear(w->batch) == TOL_OK;
    for (int i = 0; i < BATCH && ok; i++) {
        ok = tol_batch_add(w->batch, kernel, tol_launch_linear(1, 1), TOL_ARGUMENTS(own, sum)) ==
             TOL_OK;
    }
    ok = ok && tol_batch_launch(w->batch, stream) == TOL_OK &&
         tol_graph_launch(w->all->exec, stream) == TOL_OK &&
         tol_stream_pool_fork(w->all->streams, stream, 2, branches) == TOL_OK;
    if (!ok) return false;
    /* One branch after the other adds to the thread's count: it is not atomic. */
    ok = tol_launch(branches[0], kernel, tol_launch_linear(1, 1), TOL_ARGUMENTS(own, sum)) ==
             TOL_OK &&
         tol_stream_call(branches[1], threads_check_count_call, &w->calls) == TOL_OK;
    return tol_stream_pool_join(w->all->streams, stream, 2, branches) == TOL_OK && ok;
}

/* Leaves a block for the next thread, and frees the one that was left here, twice. */
static bool pass_block(struct worker *w, struct tol_stream *stream) {
    struct all *all = w->all;
    struct tol_block block = {0}, other = {0};
    if (tol_pool_allocate(all->pool, 3000, stream, &block) != TOL_OK) return false;
    pthread_mutex_lock(&all->lock);
    other = all->passed;
    all->passed = block;
    pthread_mutex_unlock(&all->lock);
    if (other.name == 0) return true;
    return tol_pool_free(all->pool, other, stream) == TOL_OK &&
           tol_pool_free(all->pool, other, stream) == TOL_INVALID_ARGUMENT;
}

/* Asks for more than there is, and for all that the pool can tell. */
static bool ask_pool(struct worker *w, const struct piece *piece) {
    struct tol_pool *pool = w->all->pool;
    struct tol_pool_stats stats;
    struct tol_pool_found found;
    struct tol_pool_event events[8];
    struct tol_block none = {0};
    struct tol_hdr *times = NULL;
    char *texts[3] = {NULL};
    bool ok = tol_pool_allocate(pool, (size_t)1 << 40, NULL, &none) == TOL_OUT_OF_DEVICE_MEMORY &&
              tol_pool_find(pool, tol_pool_address(pool, piece->block), &found) == TOL_OK &&
              found.block.block.name == piece->block.name &&
              tol_pool_times(pool, TOL_POOL_CALL_FREE, &times) == TOL_OK &&
              tol_pool_snapshot(pool, &texts[0]) == TOL_OK &&
              tol_pool_trace(pool, &texts[1]) == TOL_OK &&
              tol_pool_chrome_trace(pool, &texts[2]) == TOL_OK &&
              tol_pool_events(pool, events, 8, NULL) == 8 && tol_pool_trim(pool, 0) == TOL_OK &&
              tol_pool_stats(pool, &stats) == TOL_OK && stats.held <= limit_bytes;
    for (int i = 0; i < 3; i++) free(texts[i]);
    tol_hdr_free(times);
    return ok;
}

/* With all that it has. */
static tol_status make_pool(struct tol_context *context, struct tol_pool **pool) {
    struct tol_pool_options options;
    tol_pool_tight(tol_context_device(context), &options);
    options.limit_bytes = limit_bytes;
    options.large_bytes = (size_t)256 << 10;
    options.wipe = true;
    options.guard_one_in = 5;
    options.trace_events = EVENTS;
    return tol_pool_create(context, &options, pool);
}

static bool run_round(struct worker *w, struct tol_stream *stream, unsigned round) {
    struct tol_module *module = NULL;
    struct tol_kernel *kernel = NULL;
    struct tol_event *event = NULL;
    struct all *all = w->all;
    CUdeviceptr counts = tol_buffer_address(all->counts);
    CUdeviceptr own = counts + 4 * (CUdeviceptr)w->number, sum = counts + 4 * (THREADS + 1);
    bool ok =
        tol_module_load(all->context, ptx, sizeof ptx, NULL, &module) == TOL_OK &&
        tol_module_kernel(module, "count", &kernel) == TOL_OK &&
        tol_event_create(all->context, round % 2 == 0, &event) == TOL_OK &&
        tol_launch(stream, kernel, tol_launch_linear(1, 1), TOL_ARGUMENTS(own, sum)) == TOL_OK &&
        tol_event_record(event, stream) == TOL_OK && tol_event_synchronize(event) == TOL_OK &&
        run_graphs(w, stream, kernel, own, sum);
    tol_event_destroy(event);
    tol_module_destroy(module);
    return ok;
}

static void *threads_check_work(void *user) {
    struct worker *w = user;
    struct tol_stream *stream = NULL;
    struct piece pieces[LIVE] = {{{0}, 0, 0}};
    if (tol_stream_pool_of_thread(w->all->streams, &stream) != TOL_OK ||
        tol_batch_create(w->all->context, NULL, &w->batch) != TOL_OK) {
        w->trouble = "no stream or no batch";
        return NULL;
    }
    for (unsigned round = 0; round < ROUNDS && w->trouble == NULL; round++) {
        if (!run_round(w, stream, round)) w->trouble = "a launch failed";
        for (unsigned i = 0; i < 4 && w->trouble == NULL; i++) {
            unsigned at = (round * 5 + i) % LIVE;
            if (!threads_check_swap_block(w, stream, &pieces[at], round * 4 + i))
                w->trouble = "a block is lost";
        }
        if (!pass_block(w, stream)) w->trouble = "a block could not be passed on";
        if (round % 16 == 15 && !ask_pool(w, &pieces[round * 5 % LIVE])) {
            w->trouble = "the pool did not answer";
        }
    }
    for (unsigned i = 0; i < LIVE; i++) {
        if (pieces[i].bytes > 0) (void)tol_pool_free(w->all->pool, pieces[i].block, stream);
    }
    if (tol_stream_synchronize(stream) != TOL_OK) w->trouble = "a wait failed";
    if (w->calls != ROUNDS) w->trouble = "host functions are lost or doubled";
    tol_batch_destroy(w->batch);
    return NULL;
}

/* Each thread's count, and the sum of all, must be that of the launches. */
static bool counts_agree(struct tol_buffer *counts) {
    enum { EACH = ROUNDS * (2 + BATCH), SHARED = THREADS * ROUNDS };
    unsigned values[THREADS + 2] = {0};
    if (tol_buffer_read(counts, values, sizeof values) != TOL_OK) return false;
    bool ok = values[THREADS + 1] == THREADS * EACH + SHARED && values[THREADS] == SHARED;
    for (int i = 0; i < THREADS; i++) ok = ok && values[i] == EACH;
    return ok;
}

/* The graph that all share: launches of one instance follow each other, so its count is sound. */
static tol_status make_graph(struct all *all, struct tol_module **module) {
    struct tol_kernel *kernel = NULL;
    struct tol_graph *graph = NULL;
    CUdeviceptr own = tol_buffer_address(all->counts) + 4 * THREADS, sum = own + 4;
    tol_status status = tol_module_load(all->context, ptx, sizeof ptx, NULL, module);
    if (status == TOL_OK) status = tol_module_kernel(*module, "count", &kernel);
    if (status == TOL_OK) status = tol_graph_create(all->context, &graph);
    if (status == TOL_OK) {
        status = tol_graph_add_kernel(graph, kernel, tol_launch_linear(1, 1),
                                      TOL_ARGUMENTS(own, sum), NULL, 0, NULL);
    }
    if (status == TOL_OK) status = tol_graph_instantiate(graph, &all->exec);
    tol_graph_destroy(graph);
    return status;
}

/* Exit code: as the program's. */
static int threads_check_run_threads(struct tol_driver *driver) {
    enum { CHECKS = 50 };
    struct tol_module *module = NULL;
    struct all all = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    int code = 0;
    if (tol_context_create(driver, 0, &all.context) != TOL_OK ||
        make_pool(all.context, &all.pool) != TOL_OK ||
        tol_stream_pool_create(all.context, NULL, &all.streams) != TOL_OK ||
        tol_buffer_create(all.context, THREADS + 2, 4, &all.counts) != TOL_OK ||
        tol_buffer_fill_at(all.counts, 0, 0, 4, THREADS + 2) != TOL_OK ||
        make_graph(&all, &module) != TOL_OK) {
        fprintf(stderr, "threads-check: %s\n", tol_message());
        return 2;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.all = &all, .number = i};
        if (pthread_create(&threads[i], NULL, threads_check_work, &workers[i]) != 0) return 2;
    }
    for (unsigned i = 0; i < CHECKS; i++) {
        struct tol_health health;
        if (tol_health_check(all.context, NULL, &health) == TOL_OK && health.is_healthy) continue;
        fprintf(stderr, "threads-check: in bad health\n");
        code = 1;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        if (workers[i].trouble == NULL) continue;
        fprintf(stderr, "threads-check: thread %u: %s\n", i, workers[i].trouble);
        code = 1;
    }
    if (!counts_agree(all.counts)) {
        fprintf(stderr, "threads-check: launches are lost or doubled\n");
        code = 1;
    }
    struct tol_pool_stats stats;
    (void)tol_pool_free(all.pool, all.passed, NULL);
    if (tol_pool_stats(all.pool, &stats) != TOL_OK || stats.blocks != 0 || stats.requested != 0) {
        fprintf(stderr, "threads-check: the pool's account is wrong\n");
        code = 1;
    }
    tol_graph_exec_destroy(all.exec);
    tol_module_destroy(module);
    tol_stream_pool_destroy(all.streams);
    tol_buffer_destroy(all.counts);
    tol_pool_destroy(all.pool);
    tol_context_destroy(all.context);
    return code;
}

static bool write_trace(void) {
    FILE *file = tmpfile();
    bool ok = file != NULL && tol_trace_write(file, "threads", false) == TOL_OK;
    if (file != NULL) fclose(file);
    return ok;
}

static void *write_traces(void *user) {
    atomic_bool *is_done = user;
    bool ok = true;
    for (int i = 0; i < 5 && ok && !atomic_load(is_done); i++) {
        ok = write_trace();
        usleep(20000);
    }
    return ok ? NULL : user;
}

/* share: 1, or how many operations may leave their event to the thread's next, or to whoever comes
 * by, however much later. */
static int run_traced(struct tol_driver *driver, unsigned share) {
    const struct tol_trace_options options = {
        .calls_max = 20000, .operations_max = 2000, .share = share, .gap_ns = 1000000000};
    struct tol_trace_stats stats;
    atomic_bool is_done = false;
    pthread_t writer;
    void *failed = NULL;
    if (tol_trace_install(driver, &options, NULL) != TOL_OK ||
        pthread_create(&writer, NULL, write_traces, &is_done) != 0) {
        return 2;
    }
    int code = threads_check_run_threads(driver);
    atomic_store(&is_done, true);
    pthread_join(writer, &failed);
    tol_trace_stats(&stats);
    if (failed != NULL || !write_trace() || stats.operations < THREADS * ROUNDS) {
        fprintf(stderr, "threads-check: the trace has %zu operations\n", stats.operations);
        code = 1;
    }
    tol_trace_remove(driver);
    return code;
}

int main(int argc, char **argv) {
    struct tol_driver *driver = NULL;
    if (tol_any_driver_open(argc > 1 ? argv[1] : NULL, &driver, NULL) != TOL_OK) {
        fprintf(stderr, "threads-check: %s\n", tol_message());
        return 2;
    }
    int code = threads_check_run_threads(driver);
    if (code == 0) code = run_traced(driver, 1);
    if (code == 0) code = run_traced(driver, 4);
    if (code == 0) code = check_growing_pool(driver);
    if (code == 0) code = check_copies(driver);
    if (code == 0) code = check_watch(driver);
    tol_driver_close(driver);
    if (code == 0) printf("%d threads, %d rounds each: nothing was lost\n", THREADS, ROUNDS);
    return code;
}

/*
 * What a block costs: the pool's profiles beside the driver's own allocators, in one run.
 *
 *     bench-pool [--json] [--steps N] [--pairs N] [LIBRARY]    the driver's library; else the
 *                                                              platform's or the soft device's
 *
 * Hot: the same size freed and allocated again. Walk: the H12 walk, 1 KiB to 10 MiB, 70 of 100
 * steps allocate; then steps at 50 of 100. The ratio is bytes held from the driver to bytes asked
 * for, at the end and at its worst above a GiB; beside it, in how many of a hundred allocations a
 * pool took memory from the driver or gave it back, which is what p99 depends on. Times are the
 * host's, an allocation or a free each.
 */
#include "core/any_driver.h"
#include "core/monotonic.h"
#include "tollens/pool.h"
#include "tollens/stream.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
enum { HOT_PAIRS = 20000, LIVE_MAX = 60000, THREADS_MAX = 4, WALK_STEPS = 10000 };

static struct tol_driver *driver;
static struct tol_context *context;
static bool is_json;
static int walk_steps = WALK_STEPS, hot_pairs = HOT_PAIRS;

static void must(tol_status status, const char *what) {
    if (status == TOL_OK) return;
    fprintf(stderr, "bench-pool: %s: %s\n", what, tol_message());
    exit(2);
}

/* ---- the allocators ---- */

enum kind { POOL_DEFAULT, POOL_TIGHT, POOL_LATENCY, DRIVER_ASYNC, DRIVER_SYNC, KINDS };
static const char *const kind_names[KINDS] = {"pool, default", "pool, tight", "pool, latency",
                                              "cuMemAllocAsync", "cuMemAlloc"};

struct allocator {
    enum kind kind;
    struct tol_pool *pool;
    CUmemoryPool driver_pool;
};

union memory {
    struct tol_block block;
    CUdeviceptr address;
};

static void open_allocator(struct allocator *a, enum kind kind) {
    *a = (struct allocator){.kind = kind};
    const struct tol_driver_table *f = tol_context_functions(context);
    const struct tol_device *device = tol_context_device(context);
    struct tol_pool_options options;
    if (kind == POOL_DEFAULT) tol_pool_default(device, &options);
    if (kind == POOL_TIGHT) tol_pool_tight(device, &options);
    if (kind == POOL_LATENCY) tol_pool_latency(device, &options);
    if (kind <= POOL_LATENCY) must(tol_pool_create(context, &options, &a->pool), "a pool");
    if (kind == DRIVER_ASYNC) {
        const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
        cuuint64_t keep = UINT64_MAX;
        if (f->cuMemPoolCreate(&a->driver_pool, &props) != CUDA_SUCCESS ||
            f->cuMemPoolSetAttribute(a->driver_pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep) !=
                CUDA_SUCCESS) {
            fprintf(stderr, "bench-pool: the driver's pool could not be made\n");
            exit(2);
        }
    }
}

static void close_allocator(struct allocator *a) {
    const struct tol_driver_table *f = tol_context_functions(context);
    f->cuCtxSynchronize();
    tol_pool_destroy(a->pool);
    if (a->driver_pool != NULL) f->cuMemPoolDestroy(a->driver_pool);
}

static bool take(struct allocator *a, size_t bytes, struct tol_stream *stream,
                 union memory *memory) {
    const struct tol_driver_table *f = tol_context_functions(context);
    if (a->pool != NULL) return tol_pool_allocate(a->pool, bytes, stream, &memory->block) == TOL_OK;
    if (a->kind == DRIVER_SYNC) return f->cuMemAlloc_v2(&memory->address, bytes) == CUDA_SUCCESS;
    return f->cuMemAllocFromPoolAsync(&memory->address, bytes, a->driver_pool,
                                      tol_stream_handle(stream)) == CUDA_SUCCESS;
}

static void give(struct allocator *a, union memory memory, struct tol_stream *stream) {
    const struct tol_driver_table *f = tol_context_functions(context);
    if (a->pool != NULL) {
        must(tol_pool_free(a->pool, memory.block, stream), "a free");
    } else if (a->kind == DRIVER_SYNC) {
        f->cuMemFree_v2(memory.address);
    } else {
        f->cuMemFreeAsync(memory.address, tol_stream_handle(stream));
    }
}

/* Bytes held from the driver; 0 where the allocator cannot say. */
static double held(struct allocator *a) {
    struct tol_pool_stats stats;
    if (a->pool != NULL) {
        must(tol_pool_stats(a->pool, &stats), "the stats");
        return (double)stats.held;
    }
    cuuint64_t reserved = 0;
    if (a->driver_pool != NULL) {
        tol_context_functions(context)->cuMemPoolGetAttribute(
            a->driver_pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
    }
    return (double)reserved;
}

/* Handles taken from the driver and given back so far; 0 where the allocator cannot say. */
static uint64_t driver_calls(struct allocator *a) {
    struct tol_pool_stats stats = {.held = 0};
    if (a->pool != NULL) must(tol_pool_stats(a->pool, &stats), "the stats");
    return stats.driver_allocations + stats.driver_frees;
}

/* ---- hot ---- */

struct hot {
    struct allocator *allocator;
    size_t bytes;
    int pairs;
    double ns; /* a pair */
    pthread_barrier_t *start;
};

static void *run_hot(void *user) {
    struct hot *hot = user;
    struct tol_stream *stream = NULL;
    union memory memory;
    must(tol_stream_create(context, NULL, &stream), "a stream");
    for (int i = 0; i < 100; i++) {
        if (take(hot->allocator, hot->bytes, stream, &memory)) give(hot->allocator, memory, stream);
    }
    pthread_barrier_wait(hot->start);
    double begin = (double)tol_now_ns();
    for (int i = 0; i < hot->pairs; i++) {
        if (!take(hot->allocator, hot->bytes, stream, &memory)) exit(2);
        give(hot->allocator, memory, stream);
    }
    hot->ns = ((double)tol_now_ns() - begin) / hot->pairs;
    must(tol_stream_synchronize(stream), "a wait");
    tol_stream_destroy(stream);
    return NULL;
}

/* Nanoseconds a pair and thread, the mean over threads. */
static double measure_hot(struct allocator *a, size_t bytes, int threads, int pairs) {
    struct hot hot[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    pthread_barrier_t start;
    double sum = 0;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        hot[i] = (struct hot){.allocator = a, .bytes = bytes, .pairs = pairs, .start = &start};
        pthread_create(&ids[i], NULL, run_hot, &hot[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        sum += hot[i].ns;
    }
    pthread_barrier_destroy(&start);
    return sum / threads;
}

/* ---- the walk ---- */

static uint64_t random_state;

static uint64_t draw(uint64_t below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % below;
}

struct walk {
    double final, worst, alloc_p50, alloc_p99, free_p50;
    double driver_share; /* of allocations, in which the driver was called */
    bool ran_out;
};

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double percentile(double *values, size_t count, double share) {
    if (count == 0) return 0;
    qsort(values, count, sizeof *values, by_value);
    return values[(size_t)(share * (double)(count - 1))];
}

struct live {
    union memory memory;
    size_t bytes;
};

static struct live live[LIVE_MAX];
static size_t live_count;
static double live_bytes;

/* So many steps, of which a share allocate. Asking what is held is not timed. */
static struct walk walk(struct allocator *a, struct tol_stream *stream, int steps,
                        unsigned allocate_of_100, double floor_bytes) {
    static double allocs[200000], frees[200000];
    size_t alloc_count = 0, free_count = 0, with_driver = 0;
    struct walk result = {0};
    for (int step = 0; step < steps && !result.ran_out; step++) {
        if (live_count == 0 || (draw(100) < allocate_of_100 && live_count < LIVE_MAX)) {
            size_t bytes = 1024 + draw(10 * MIB - 1024);
            uint64_t calls = driver_calls(a);
            double begin = (double)tol_now_ns();
            result.ran_out = !take(a, bytes, stream, &live[live_count].memory);
            allocs[alloc_count++] = (double)tol_now_ns() - begin;
            if (result.ran_out) break;
            with_driver += driver_calls(a) != calls;
            live[live_count++].bytes = bytes;
            live_bytes += (double)bytes;
        } else {
            size_t i = draw(live_count);
            struct live one = live[i];
            live[i] = live[--live_count];
            live_bytes -= (double)one.bytes;
            double begin = (double)tol_now_ns();
            give(a, one.memory, stream);
            frees[free_count++] = (double)tol_now_ns() - begin;
        }
        if (live_bytes >= floor_bytes && (step % 8 == 0 || step == steps - 1)) {
            double ratio = held(a) / live_bytes;
            if (ratio > result.worst) result.worst = ratio;
            result.final = ratio;
        }
    }
    result.alloc_p50 = percentile(allocs, alloc_count, 0.5);
    result.alloc_p99 = percentile(allocs, alloc_count, 0.99);
    result.driver_share = alloc_count > 0 ? (double)with_driver / (double)alloc_count : 0;
    result.free_p50 = percentile(frees, free_count, 0.5);
    return result;
}

static void print_walk(const char *what, const char *name, const struct walk *w) {
    if (is_json) {
        printf("{\"walk\": \"%s\", \"allocator\": \"%s\", \"final\": %.4f, \"worst\": %.4f, "
               "\"allocate_p50_ns\": %.0f, \"allocate_p99_ns\": %.0f, \"free_p50_ns\": %.0f, "
               "\"allocate_driver_share\": %.4f, "
               "\"ran_out\": %s}\n",
               what, name, w->final, w->worst, w->alloc_p50, w->alloc_p99, w->free_p50,
               w->driver_share, w->ran_out ? "true" : "false");
    } else {
        printf("%-8s %-16s %8.4f %8.4f %12.0f %12.0f %10.0f %8.2f%s\n", what, name, w->final,
               w->worst, w->alloc_p50, w->alloc_p99, w->free_p50, 100 * w->driver_share,
               w->ran_out ? "  ran out of memory" : "");
    }
}

static void walk_both(struct allocator *a, const char *name, double floor_bytes) {
    struct tol_stream *stream = NULL;
    must(tol_stream_create(context, NULL, &stream), "a stream");
    random_state = 42;
    live_count = 0;
    live_bytes = 0;
    struct walk growth = walk(a, stream, walk_steps, 70, floor_bytes);
    print_walk("growth", name, &growth);
    if (!growth.ran_out) {
        struct walk steady = walk(a, stream, 10 * walk_steps, 50, floor_bytes);
        print_walk("steady", name, &steady);
    }
    while (live_count > 0) give(a, live[--live_count].memory, stream);
    must(tol_stream_synchronize(stream), "a wait");
    tol_stream_destroy(stream);
}

static void print_hot(const char *name, struct allocator *a, int pairs) {
    static const size_t sizes[] = {1024, 5 * MIB};
    for (int i = 0; i < 2; i++) {
        double one = measure_hot(a, sizes[i], 1, pairs), four = measure_hot(a, sizes[i], 4, pairs);
        if (is_json) {
            printf("{\"hot_bytes\": %zu, \"allocator\": \"%s\", \"pair_ns_1_thread\": %.1f, "
                   "\"pair_ns_4_threads\": %.1f, \"throughput_4_to_1\": %.2f}\n",
                   sizes[i], name, one, four, 4 * one / four);
        } else {
            printf("%-8zu %-16s %12.1f %12.1f %12.2f\n", sizes[i], name, one, four, 4 * one / four);
        }
    }
}

/* A number from 1 to most; most for anything else. */
static int read_count(const char *text, int most) {
    long number = strtol(text, NULL, 10);
    return number > 0 && number < most ? (int)number : most;
}

int main(int argc, char **argv) {
    const char *library = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            is_json = true;
        } else if (strcmp(argv[i], "--steps") == 0 && i + 1 < argc) {
            walk_steps = read_count(argv[++i], WALK_STEPS);
        } else if (strcmp(argv[i], "--pairs") == 0 && i + 1 < argc) {
            hot_pairs = read_count(argv[++i], HOT_PAIRS);
        } else if (argv[i][0] != '-' && library == NULL) {
            library = argv[i];
        } else {
            fprintf(stderr,
                    "usage: bench-pool [--json] [--steps N] [--pairs N] [LIBRARY], at most %d "
                    "steps and %d pairs\n",
                    WALK_STEPS, HOT_PAIRS);
            return 2;
        }
    }
    must(tol_any_driver_open(library, &driver, NULL), "the driver");
    must(tol_context_create(driver, 0, &context), "device 0");
    must(tol_context_bind(context), "device 0");
    const struct tol_device *about = tol_context_device(context);
    if (!is_json) {
        printf("%s, ns for an allocation and its free, hot:\n%-8s %-16s %12s %12s %12s\n",
               about->name, "bytes", "allocator", "1 thread", "4 threads", "throughput");
    }
    struct allocator a;
    for (int kind = 0; kind < KINDS; kind++) {
        open_allocator(&a, (enum kind)kind);
        print_hot(kind_names[kind], &a, kind == DRIVER_SYNC && hot_pairs > 200 ? 200 : hot_pairs);
        close_allocator(&a);
    }
    if (!is_json) {
        printf("\nwalk of 1 KiB to 10 MiB, %d steps, then %d; ratio held to asked for; ns:\n"
               "%-8s %-16s %8s %8s %12s %12s %10s %8s\n",
               walk_steps, 10 * walk_steps, "walk", "allocator", "final", "worst", "allocate p50",
               "p99", "free p50", "driver %");
    }
    for (int kind = 0; kind < DRIVER_SYNC; kind++) {
        open_allocator(&a, (enum kind)kind);
        walk_both(&a, kind_names[kind], 1024.0 * (double)MIB);
        close_allocator(&a);
    }
    tol_context_destroy(context);
    tol_driver_close(driver);
    return 0;
}

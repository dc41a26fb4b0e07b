/*
 * Walks: blocks of 1 KiB to 10 MiB, allocated in 70 of 100 steps, then in 50 of 100.
 *
 * A growing walk runs without pauses between its steps, and with pauses of 5 and 50 us, as in a
 * program that launches kernels. Its times and its ratios come from two walks of the same steps,
 * because querying what is held changes the contents of the caches.
 */
#include "pool_bench.h"

#include <stdio.h>
#include <stdlib.h>

struct walk {
    int steps;
    unsigned allocate_of_100;
    uint64_t think_ns; /* between two steps */
    bool is_sampled;   /* ask what is held */
    bool ran_out;
    double final, worst, alloc_p50, alloc_p99, alloc_max, free_p50, free_p99;
    double handles; /* that callers took or gave back, of an allocation */
    size_t several; /* allocations that took or gave back two or more; priced walks only */
};

struct live {
    union memory memory;
    size_t bytes;
};

static struct live live[LIVE_MAX];
static size_t live_count;
static double live_bytes;
static uint64_t random_state;

static uint64_t pool_bench_draw(uint64_t below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % below;
}

static int pool_bench_by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of sorted values. */
static double pool_bench_percentile(const double *values, size_t count, double share) {
    return count == 0 ? 0 : values[(size_t)(share * (double)(count - 1))];
}

/* Handles taken from the driver and given back so far; 0 where nothing is known. */
static double handles_of(struct allocator *a) {
    struct tol_pool_stats s = {.held = 0};
    if (a->pool != NULL) must(tol_pool_stats(a->pool, &s), "the stats");
    return (double)(s.driver_allocations + s.driver_frees);
}

static void pool_bench_think(uint64_t ns) {
    const uint64_t begin = tol_now_ns();
    while (ns > 0 && tol_now_ns() - begin < ns) continue;
}

static void pool_bench_sample(struct allocator *a, struct walk *w, int step) {
    if (!w->is_sampled || live_bytes < 1024.0 * (double)MIB) return;
    if (step % 8 != 0 && step != w->steps - 1) return;
    const double ratio = held(a) / live_bytes;
    if (ratio > w->worst) w->worst = ratio;
    w->final = ratio;
}

static void pool_bench_walk(struct allocator *a, struct tol_stream *stream, struct walk *w) {
    static double allocs[11 * WALK_STEPS], frees[11 * WALK_STEPS];
    size_t alloc_count = 0, free_count = 0;
    const double handles = handles_of(a);
    for (int step = 0; step < w->steps; step++) {
        pool_bench_think(w->think_ns);
        if (live_count == 0 ||
            (pool_bench_draw(100) < w->allocate_of_100 && live_count < LIVE_MAX)) {
            const size_t bytes = 1024 + pool_bench_draw(10 * MIB - 1024);
            const double begin = (double)bench_now_ns();
            w->ran_out = !take(a, bytes, stream, &live[live_count].memory);
            allocs[alloc_count++] = (double)bench_now_ns() - begin;
            w->several += take_handle_count() > 1;
            if (w->ran_out) break;
            live[live_count++].bytes = bytes;
            live_bytes += (double)bytes;
        } else {
            const size_t i = pool_bench_draw(live_count);
            const struct live one = live[i];
            live[i] = live[--live_count];
            live_bytes -= (double)one.bytes;
            const double begin = (double)bench_now_ns();
            give(a, one.memory, stream);
            frees[free_count++] = (double)bench_now_ns() - begin;
            (void)take_handle_count();
        }
        pool_bench_sample(a, w, step);
    }
    qsort(allocs, alloc_count, sizeof *allocs, pool_bench_by_value);
    qsort(frees, free_count, sizeof *frees, pool_bench_by_value);
    w->alloc_p50 = pool_bench_percentile(allocs, alloc_count, 0.5);
    w->alloc_p99 = pool_bench_percentile(allocs, alloc_count, 0.99);
    w->alloc_max = pool_bench_percentile(allocs, alloc_count, 1);
    w->free_p50 = pool_bench_percentile(frees, free_count, 0.5);
    w->free_p99 = pool_bench_percentile(frees, free_count, 0.99);
    if (alloc_count > 0) w->handles = (handles_of(a) - handles) / (double)alloc_count;
}

static void print_walk(const char *what, enum kind kind, const struct walk *w) {
    if (bench.is_json) {
        printf("{\"walk\": \"%s\", \"allocator\": \"%s\", \"think_ns\": %llu, \"final\": %.4f, "
               "\"worst\": %.4f, \"allocate_p50_ns\": %.0f, \"allocate_p99_ns\": %.0f, "
               "\"allocate_max_ns\": %.0f, \"free_p50_ns\": %.0f, \"free_p99_ns\": %.0f, "
               "\"caller_handles\": %.4f, \"ran_out\": %s}\n",
               what, kind_name(kind), (unsigned long long)w->think_ns, w->final, w->worst,
               w->alloc_p50, w->alloc_p99, w->alloc_max, w->free_p50, w->free_p99, w->handles,
               w->ran_out ? "true" : "false");
    } else {
        printf("%-8s %-16s %6.1f %8.4f %8.4f %8.0f %8.0f %9.0f %8.0f %8.0f %8.4f%s\n", what,
               kind_name(kind), (double)w->think_ns * 1e-3, w->final, w->worst, w->alloc_p50,
               w->alloc_p99, w->alloc_max, w->free_p50, w->free_p99, w->handles,
               w->ran_out ? "  ran out of memory" : "");
    }
    fflush(stdout);
}

static void pool_bench_restart(uint64_t seed) {
    random_state = seed;
    live_count = 0;
    live_bytes = 0;
}

static void pool_bench_end(struct allocator *a, struct tol_stream *stream) {
    while (live_count > 0) give(a, live[--live_count].memory, stream);
    must(tol_stream_synchronize(stream), "a wait");
    close_allocator(a);
}

/* Times of a growing walk with so much time between steps, and the ratios of another one. */
static void grow_twice(enum kind kind, struct tol_stream *stream, uint64_t think_ns) {
    struct walk times = {.steps = bench.steps, .allocate_of_100 = 70, .think_ns = think_ns};
    struct walk ratios = times;
    struct allocator a;
    open_allocator(&a, kind);
    pool_bench_restart(42);
    pool_bench_walk(&a, stream, &times);
    pool_bench_end(&a, stream);
    open_allocator(&a, kind);
    pool_bench_restart(42);
    ratios.is_sampled = true;
    pool_bench_walk(&a, stream, &ratios);
    times.final = ratios.final;
    times.worst = ratios.worst;
    print_walk("growth", kind, &times);
    if (think_ns == 0 && !times.ran_out && !ratios.ran_out) {
        struct walk steady = {.steps = 10 * bench.steps, .allocate_of_100 = 50, .is_sampled = true};
        pool_bench_walk(&a, stream, &steady);
        print_walk("steady", kind, &steady);
    }
    pool_bench_end(&a, stream);
}

void print_walks(enum kind kind) {
    static const uint64_t thinks[] = {0, 5000, 50000};
    struct tol_stream *stream = NULL;
    must(tol_stream_create(bench.context, NULL, &stream), "a stream");
    for (int i = 0; i < 3; i++) {
        if (i > 0 && kind != DEFAULT && kind != DRIVER_ASYNC) break;
        grow_twice(kind, stream, thinks[i]);
    }
    tol_stream_destroy(stream);
}

/* ---- priced ---- */

enum { SEEDS = 8 };

/* A growing walk and the steady one after it, of several seeds: the first seed's, and the mean and
 * the highest of all. */
void print_priced_walks(enum kind kind) {
    static const char *const names[] = {"growth", "steady"};
    struct tol_stream *stream = NULL;
    must(tol_stream_create(bench.context, NULL, &stream), "a stream");
    struct walk walks[SEEDS][2];
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct allocator a;
        open_allocator(&a, kind);
        pool_bench_restart(42 + seed);
        for (int i = 0; i < 2; i++) {
            walks[seed][i] = (struct walk){.steps = i == 0 ? bench.steps : 10 * bench.steps,
                                           .allocate_of_100 = i == 0 ? 70 : 50,
                                           .is_sampled = true};
            pool_bench_walk(&a, stream, &walks[seed][i]);
        }
        pool_bench_end(&a, stream);
    }
    tol_stream_destroy(stream);
    for (int i = 0; i < 2; i++) {
        double final = 0, worst = 0, highest = 0, p99 = 0, several = 0;
        for (int seed = 0; seed < SEEDS; seed++) {
            const struct walk *w = &walks[seed][i];
            final += w->final / SEEDS;
            worst += w->worst / SEEDS;
            p99 += w->alloc_p99 / SEEDS;
            several += (double)w->several / SEEDS;
            if (w->worst > highest) highest = w->worst;
        }
        const struct walk *w = &walks[0][i];
        printf("%-7s %-16s %7.4f %7.4f %7.4f %5zu %6.1f %6.1f %7.1f %7.1f | %7.4f %7.4f %7.4f "
               "%7.1f %6.1f\n",
               names[i], kind_name(kind), w->final, w->worst, w->handles, w->several,
               w->alloc_p50 * 1e-3, w->alloc_p99 * 1e-3, w->alloc_max * 1e-3, w->free_p99 * 1e-3,
               final, worst, highest, several, p99 * 1e-3);
        fflush(stdout);
    }
}

/*
 * Frees in flight: blocks of a busy stream are freed, and another stream allocates the same number.
 */
#include "pool_bench.h"

#include "tollens/host_function.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 1000, BLOCK_BYTES = 2 << 20 };

static atomic_bool is_let_go;

static tol_status pool_bench_hold(void *unused, char *reason, size_t bytes) {
    (void)unused, (void)reason, (void)bytes;
    while (!atomic_load(&is_let_go)) continue;
    return TOL_OK;
}

static uint64_t driver_calls(struct allocator *a) {
    struct tol_pool_stats stats = {.held = 0};
    if (a->pool != NULL) must(tol_pool_stats(a->pool, &stats), "the stats");
    return stats.driver_calls;
}

void print_flights(enum kind kind) {
    static union memory blocks[BLOCKS], others[BLOCKS];
    struct tol_stream *busy = NULL, *other = NULL;
    struct allocator a;
    int count = 0, taken = 0;
    open_allocator(&a, kind);
    must(tol_stream_create(bench.context, NULL, &busy), "a stream");
    must(tol_stream_create(bench.context, NULL, &other), "a stream");
    while (count < BLOCKS && take(&a, BLOCK_BYTES, busy, &blocks[count])) count++;
    atomic_store(&is_let_go, false);
    must(tol_stream_call(busy, pool_bench_hold, NULL), "a host function");
    const uint64_t calls = driver_calls(&a), begin = tol_now_ns();
    for (int i = 0; i < count; i++) give(&a, blocks[i], busy);
    const uint64_t freed = tol_now_ns();
    /* Nothing but what is in flight serves the second half. */
    while (taken < count && take(&a, BLOCK_BYTES, other, &others[taken])) taken++;
    const uint64_t end = tol_now_ns(), made = driver_calls(&a) - calls;
    atomic_store(&is_let_go, true);
    if (bench.is_json) {
        printf("{\"flight\": %d, \"allocator\": \"%s\", \"free_ns\": %.1f, \"allocate_ns\": %.1f, "
               "\"driver_calls\": %llu}\n",
               count, kind_name(kind), (double)(freed - begin) / count,
               (double)(end - freed) / count, (unsigned long long)made);
    } else {
        printf("%-16s %8.0f %14.0f %12llu\n", kind_name(kind), (double)(freed - begin) / count,
               (double)(end - freed) / count, (unsigned long long)made);
    }
    while (taken > 0) give(&a, others[--taken], other);
    must(tol_stream_synchronize(busy), "a wait");
    must(tol_stream_synchronize(other), "a wait");
    tol_stream_destroy(busy);
    tol_stream_destroy(other);
    close_allocator(&a);
}

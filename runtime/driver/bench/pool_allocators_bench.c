/*
 * The allocators of bench-pool.
 */
#include "pool_bench.h"

#include <stdio.h>
#include <stdlib.h>

struct pool_bench bench;

const char *kind_name(enum kind kind) {
    static const char *const names[KINDS] = {"pool, default", "pool, no caches", "pool, tight",
                                             "pool, latency", "cuMemAllocAsync", "cuMemAlloc"};
    return names[kind];
}

void must(tol_status status, const char *what) {
    if (status == TOL_OK) return;
    fprintf(stderr, "bench-pool: %s: %s\n", what, tol_message());
    exit(2);
}

static void pool_bench_open_pool(struct allocator *a, enum kind kind) {
    const struct tol_device *device = tol_context_device(bench.context);
    struct tol_pool_options options;
    tol_pool_default(device, &options);
    if (kind == TIGHT) tol_pool_tight(device, &options);
    if (kind == LATENCY) tol_pool_latency(device, &options);
    if (kind == NO_CACHES) options.magazine_max_bytes = 0;
    if (bench.grow_share >= 0 && kind != TIGHT && kind != LATENCY) {
        options.grow_share = bench.grow_share;
    }
    must(tol_pool_create(bench.context, &options, &a->pool), "a pool");
}

void open_allocator(struct allocator *a, enum kind kind) {
    *a = (struct allocator){.kind = kind};
    const struct tol_driver_table *f = tol_context_functions(bench.context);
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    cuuint64_t keep = UINT64_MAX;
    if (kind < DRIVER_ASYNC) pool_bench_open_pool(a, kind);
    if (kind != DRIVER_ASYNC) return;
    if (f->cuMemPoolCreate(&a->driver_pool, &props) != CUDA_SUCCESS ||
        f->cuMemPoolSetAttribute(a->driver_pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep) !=
            CUDA_SUCCESS) {
        fprintf(stderr, "bench-pool: the driver's pool could not be made\n");
        exit(2);
    }
}

void close_allocator(struct allocator *a) {
    const struct tol_driver_table *f = tol_context_functions(bench.context);
    f->cuCtxSynchronize();
    tol_pool_destroy(a->pool);
    if (a->driver_pool != NULL) f->cuMemPoolDestroy(a->driver_pool);
}

bool take(struct allocator *a, size_t bytes, struct tol_stream *stream, union memory *memory) {
    const struct tol_driver_table *f = tol_context_functions(bench.context);
    if (a->pool != NULL) return tol_pool_allocate(a->pool, bytes, stream, &memory->block) == TOL_OK;
    if (a->kind == DRIVER_SYNC) return f->cuMemAlloc_v2(&memory->address, bytes) == CUDA_SUCCESS;
    return f->cuMemAllocFromPoolAsync(&memory->address, bytes, a->driver_pool,
                                      tol_stream_handle(stream)) == CUDA_SUCCESS;
}

void give(struct allocator *a, union memory memory, struct tol_stream *stream) {
    const struct tol_driver_table *f = tol_context_functions(bench.context);
    if (a->pool != NULL) {
        must(tol_pool_free(a->pool, memory.block, stream), "a free");
    } else if (a->kind == DRIVER_SYNC) {
        f->cuMemFree_v2(memory.address);
    } else {
        f->cuMemFreeAsync(memory.address, tol_stream_handle(stream));
    }
}

double held(struct allocator *a) {
    struct tol_pool_stats stats;
    if (a->pool != NULL) {
        must(tol_pool_stats(a->pool, &stats), "the stats");
        return (double)stats.held;
    }
    cuuint64_t reserved = 0;
    if (a->driver_pool != NULL) {
        tol_context_functions(bench.context)
            ->cuMemPoolGetAttribute(a->driver_pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                                    &reserved);
    }
    return (double)reserved;
}

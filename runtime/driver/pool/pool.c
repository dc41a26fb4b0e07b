/*
 * Profiles, and creating and destroying a pool.
 */
#include "core/deadline.h"
#include "core/nvtx.h"
#include "core/nvtx_marks.h"
#include "tollens/health.h"
#include "stitch.h"

#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Addresses cost nothing, so a pool reserves this multiple of the device's memory. */
enum { ADDRESS_TIMES = 8 };

/* A GPU's driver takes some 30 to 45 us per handle, whatever its size. Pages of 2 MiB, and growth
 * by 0.15 % of the bytes in use if that is more, call the driver less often than steps of 4 MiB,
 * and hold less (reports/notes/2026-11-22-pool-tuning.md). 0.5 % would hold too much, because a
 * large handle is hardly ever empty. The first four handles suffice for a small program. At most 64
 * MiB of freed large blocks are kept. */
void tol_pool_default(const struct tol_device *device, struct tol_pool_options *options) {
    size_t memory = device != NULL ? (size_t)device->memory_bytes : 0;
    *options = (struct tol_pool_options){
        .source = TOL_POOL_MAPPED,
        .address_bytes = ADDRESS_TIMES * memory,
        .page_bytes = 2 * MIB,
        .first_bytes = 64 * MIB,
        .first_count = 4,
        .grow_share = 0.0015,
        .joins_pages = true,
        .large_bytes = 16 * MIB,
        .trim_above = 1.025,
        .trim_to = 1.015,
        .slack_bytes = 8 * MIB,
        .keep_bytes = 64 * MIB,
        .magazine_max_bytes = MIB,
        .magazine_bytes = 8 * MIB,
        .park_bytes = 64 * MIB,
        .time_one_in = 64,
    };
    /* The first handles must not fill a small device. */
    while (options->first_bytes > options->page_bytes &&
           options->first_bytes * options->first_count > memory / 8) {
        options->first_bytes /= 2;
    }
}

void tol_pool_tight(const struct tol_device *device, struct tol_pool_options *options) {
    tol_pool_default(device, options);
    options->grow_share = 0;
    options->joins_pages = false;
    options->trim_above = 1.02;
    options->trim_to = 1.01;
    options->slack_bytes = 4 * MIB;
    options->magazine_max_bytes = 256 * KIB;
    options->magazine_bytes = 2 * MIB;
    options->park_bytes = 16 * MIB;
}

/* 99 of 100 allocations call no driver function while a walk of 7000 grows to 20 GiB: the pool
 * doubles up to 1 GiB, then grows by up to 7 %, in 66 handles. At worst a whole handle is unused,
 * in addition to 2 to 5 % between blocks. Smaller steps would hold less and call the driver more
 * often. */
void tol_pool_latency(const struct tol_device *device, struct tol_pool_options *options) {
    tol_pool_default(device, options);
    options->double_bytes = 1088 * MIB;
    options->grow_share = 0.072;
    options->large_bytes = 64 * MIB;
    options->trim_above = 1.25;
    options->trim_to = 1.2;
    options->slack_bytes = 256 * MIB;
    options->keep_bytes = 0;
    options->magazine_bytes = 64 * MIB;
    options->park_bytes = 256 * MIB;
}

/* In each step such a program allocates and frees the same memory: nothing is released, and all
 * blocks are on pages, where larger and smaller blocks can reuse a freed one. A separate mapping
 * could be reused only for its own size, and sizes vary with the input. At 0.5 % above the peak,
 * idle pages are remapped first, within a budget of time. */
void tol_pool_torch(const struct tol_device *device, struct tol_pool_options *options) {
    tol_pool_default(device, options);
    options->first_bytes = options->page_bytes;
    options->large_bytes = device != NULL ? (size_t)device->memory_bytes : SIZE_MAX / 2;
    options->trim_above = options->trim_to = 0;
    options->lowest_first = true;
    options->stitch_above = 1.005;
}

/* Handles are small enough to be idle often, and large enough to be few. */
void tol_pool_lean(const struct tol_device *device, struct tol_pool_options *options) {
    tol_pool_torch(device, options);
    options->grow_share = 0;
    options->join_bytes = 32 * MIB;
    options->lowest_first = false;
    options->stitch_always = true;
    options->magazine_max_bytes = 64 * KIB;
}

static size_t pool_round_up(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

/* Rounds the sizes to what the driver supports; rejects meaningless options. */
static tol_status pool_settle(struct tol_pool *pool) {
    tol_status status = TOL_OK;
    struct tol_pool_options *o = &pool->options;
    const size_t unit = (size_t)pool->granularity;
    TOL_CHECK((int)o->source >= TOL_POOL_MAPPED && o->source <= TOL_POOL_CHUNKED,
              TOL_INVALID_ARGUMENT, "source: %d is not an enum tol_pool_source", (int)o->source);
    TOL_CHECK(o->trim_above >= 0 && o->trim_above < 1e6 && o->trim_to <= o->trim_above,
              TOL_INVALID_ARGUMENT,
              "trim_above is %g and trim_to is %g: trim_above must be 0 or more and below 1e6, "
              "trim_to at most trim_above",
              o->trim_above, o->trim_to);
    TOL_CHECK(o->grow_share >= 0 && o->grow_share <= 1, TOL_INVALID_ARGUMENT,
              "grow_share is %g: it must be 0 to 1", o->grow_share);
    TOL_CHECK(o->stitch_above == 0 || (o->stitch_above >= 1 && o->stitch_above < 1e6),
              TOL_INVALID_ARGUMENT, "stitch_above is %g: it must be 0, or 1 or more and below 1e6",
              o->stitch_above);
    const bool is_above = o->stitch_above > 0 && o->wait_above >= o->stitch_above;
    TOL_CHECK(o->wait_above == 0 || (is_above && o->wait_above < 1e6), TOL_INVALID_ARGUMENT,
              "wait_above is %g: it must be 0, or at least stitch_above, which is %g and not 0",
              o->wait_above, o->stitch_above);
    TOL_CHECK(o->magazine_max_bytes <= UINT32_MAX, TOL_INVALID_ARGUMENT,
              "magazine_max_bytes is %zu: it must be less than 4 GiB", o->magazine_max_bytes);
    if (o->source == TOL_POOL_DRIVER) {
        o->park_bytes = 0;
        goto out;
    }
    TOL_CHECK(o->page_bytes > 0 && o->large_bytes > 0 && o->address_bytes > 0, TOL_INVALID_ARGUMENT,
              "page_bytes is %zu, large_bytes %zu, address_bytes %zu: none may be 0", o->page_bytes,
              o->large_bytes, o->address_bytes);
    o->page_bytes = pool_round_up(o->page_bytes, unit);
    o->first_bytes = pool_round_up(o->first_bytes, o->page_bytes);
    o->address_bytes = pool_round_up(o->address_bytes, o->page_bytes);
    if (o->first_bytes == 0) o->first_count = 0;
    TOL_CHECK(!pool->is_chunked || o->guard_one_in == 0, TOL_UNSUPPORTED,
              "guard_one_in: guards need virtual memory management");
    if (o->magazine_max_bytes >= o->large_bytes) o->magazine_max_bytes = o->large_bytes - 1;
    if (o->magazine_max_bytes == 0) o->park_bytes = 0;
out:
    return status;
}

static tol_status pool_reserve(struct tol_pool *pool) {
    tol_status status = TOL_OK;
    struct tol_context *context = pool->context;
    const size_t bytes = pool->options.address_bytes;
    TOL_TRY(tol_pages_open(&pool->pages, context, bytes, pool->granularity,
                           (uint32_t)(pool->options.page_bytes / pool->granularity)));
    TOL_CONTEXT_CU(context, cuMemAddressReserve,
                   (&pool->large_begin, bytes, pool->granularity, 0, 0),
                   "reserving %zu bytes of addresses", bytes);
    pool->large_reserved = bytes;
    return TOL_OK;
out:
    tol_pages_close(&pool->pages);
    return status;
}

/* Addresses may be scarce: under a limit on the process, or if other code holds many. Halves the
 * reservation; false: it would be too small for any use. */
static bool reserve_less(struct tol_pool *pool) {
    struct tol_pool_options *options = &pool->options;
    size_t less = options->address_bytes / 2 / options->page_bytes * options->page_bytes;
    if (less < 64 * MIB || less < options->first_bytes) return false;
    options->address_bytes = less;
    return true;
}

/* The unit in which cuMemAlloc allocates more than 1 MiB on all GPUs measured so far. */
enum { CHUNK_UNIT = 2 << 20 };

/* A profile for mapped memory may have all blocks on pages; a chunk is twice large_bytes. */
enum { CHUNK_SHARE = 1024 };

static tol_status open_chunked(struct tol_pool *pool) {
    const size_t most = (size_t)pool->context->device.memory_bytes / CHUNK_SHARE;
    pool->is_chunked = true;
    pool->granularity = CHUNK_UNIT;
    if (pool->options.large_bytes > most && most >= 16 * MIB) pool->options.large_bytes = most;
    return pool_settle(pool);
}

static tol_status open_mapped(struct tol_pool *pool) {
    tol_status status = TOL_OK;
    struct tol_context *context = pool->context;
    int can_map = 0;
    /* A tool that receives blocks knows the driver's allocations; guards must be mapped. */
    tol_marks_open();
    const bool is_marked = tol_marks_listen && pool->options.guard_one_in == 0;
    if (pool->options.source == TOL_POOL_MAPPED && !is_marked &&
        tol_driver_has(context->driver, TOL_FEATURE_VMM)) {
        TOL_CONTEXT_CU(context, cuDeviceGetAttribute,
                       (&can_map, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                        context->device_handle),
                       "checking for virtual memory management");
    }
    if (can_map == 0) return open_chunked(pool);
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, context->device_handle}};
    size_t granularity = 0;
    TOL_CONTEXT_CU(context, cuMemGetAllocationGranularity,
                   (&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                   "getting the granularity of mapped memory");
    pool->granularity = granularity;
    TOL_TRY(pool_settle(pool));
    do {
        status = pool_reserve(pool);
    } while (status == TOL_OUT_OF_DEVICE_MEMORY && reserve_less(pool));
    if (status != TOL_OK) goto out;
    TOL_CHECK(tol_spans_add(&pool->spans, pool->pages.begin, pool->pages.bytes) &&
                  tol_spans_add(&pool->large_spans, pool->large_begin, pool->large_reserved),
              TOL_OUT_OF_HOST_MEMORY, "no host memory for the records of a pool");
out:
    return status;
}

static tol_status pool_open_driver(struct tol_pool *pool) {
    tol_status status = TOL_OK;
    struct tol_context *context = pool->context;
    TOL_CHECK(tol_driver_has(context->driver, TOL_FEATURE_MEMORY_POOL), TOL_UNSUPPORTED,
              "the driver has no memory pools");
    TOL_TRY(pool_settle(pool));
    const CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, context->device_handle}};
    cuuint64_t keep = UINT64_MAX;
    TOL_CONTEXT_CU(context, cuMemPoolCreate, (&pool->driver_pool, &props),
                   "creating the driver's pool");
    TOL_CONTEXT_CU(context, cuMemPoolSetAttribute,
                   (pool->driver_pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
                   "setting the release threshold of the driver's pool");
out:
    return status;
}

struct reporting {
    tol_held_visit *visit;
    void *user;
};

static void report_block(void *user, const struct tol_pool_live *live) {
    const struct reporting *reporting = user;
    reporting->visit(reporting->user, &(struct tol_held){.kind = TOL_HELD_BLOCK,
                                                         .address = live->address,
                                                         .bytes = live->bytes,
                                                         .tag = live->tag,
                                                         .site = live->site});
}

static void report_pool(struct tol_holder *holder, tol_held_visit *visit, void *user) {
    struct tol_pool *pool = (void *)((char *)holder - offsetof(struct tol_pool, holder));
    tol_pool_each(pool, report_block, &(struct reporting){visit, user});
}

tol_status tol_pool_create(struct tol_context *context, const struct tol_pool_options *options,
                           struct tol_pool **result) {
    TOL_RANGE("tol_pool_create", 0);
    static _Atomic(uint64_t) ids = 1;
    tol_status status = TOL_OK;
    struct tol_pool *pool = NULL;
    TOL_CHECK(context != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_pool_create: an argument is NULL");
    TOL_TRY(tol_context_enter(context));
    pool = aligned_alloc(_Alignof(struct tol_pool), sizeof *pool);
    TOL_CHECK(pool != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a pool of %zu bytes",
              sizeof *pool);
    memset((void *)pool, 0, sizeof *pool);
    pool->id = atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed);
    pthread_mutex_init(&pool->lock, NULL);
    pool->context = context;
    tol_context_retain(context);
    pool->tickets.context = context;
    pool->tag_count = 1;
    pool->begin_ns = tol_now_ns();
    if (options != NULL) {
        pool->options = *options;
    } else {
        tol_pool_default(&context->device, &pool->options);
    }
    TOL_CHECK(tol_ring_open(&pool->ring, pool->options.trace_events), TOL_OUT_OF_HOST_MEMORY,
              "no host memory for %zu events", pool->options.trace_events);
    TOL_TRY(pool->options.source == TOL_POOL_DRIVER ? pool_open_driver(pool) : open_mapped(pool));
    tol_context_add_holder(context, &pool->holder, report_pool);
    *result = pool;
    pool = NULL;
out:
    tol_pool_destroy(pool);
    return status;
}

static void free_driver_block(void *user, struct tol_span *span) {
    struct tol_pool *pool = user;
    pool->context->functions->cuMemFreeAsync(span->begin, NULL);
}

void tol_pool_destroy(struct tol_pool *pool) {
    if (pool == NULL) return;
    struct tol_context *context = pool->context;
    tol_context_drop_holder(context, &pool->holder);
    if (tol_bound_context != context->id) (void)tol_context_bind_slow(context);
    /* Work that the program has queued on freed blocks, and the wiping of them, must not meet
     * addresses without memory. */
    if (tol_tickets_wait(&pool->tickets, ~(uint64_t)0, pool->tickets.now) != TOL_OK) {
        (void)tol_context_synchronize(context, TOL_DEADLINE_MS);
    }
    if (pool->options.wipe && tol_deadline_wait_legacy(context) != TOL_OK) {
        (void)tol_deadline_wait_legacy(context); /* one that failed for a reason that passes */
    }
    tol_magazine_drop_all(pool);
    if (pool->driver_pool != NULL) {
        tol_spans_each(&pool->spans, free_driver_block, pool);
        context->functions->cuMemPoolDestroy(pool->driver_pool);
    }
    tol_pool_close_large(pool);
    tol_stitch_release(pool, UINT64_MAX);
    free(pool->spares.all);
    tol_pool_close_chunks(pool);
    tol_pages_close(&pool->pages);
    tol_spans_clear(&pool->spans);
    tol_tickets_clear(&pool->tickets);
    tol_ring_close(&pool->ring);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
    tol_context_destroy(context);
}

tol_status tol_pool_trim(struct tol_pool *pool, size_t keep_bytes) {
    TOL_RANGE("tol_pool_trim", 0);
    tol_status status = TOL_OK;
    TOL_CHECK(pool != NULL, TOL_INVALID_ARGUMENT, "tol_pool_trim: pool is NULL");
    TOL_TRY(tol_context_enter(pool->context));
    struct tol_pool_event event = {.kind = TOL_POOL_EVENT_TRIM};
    tol_event_set_bytes(&event, keep_bytes);
    const uint64_t begin = tol_pool_keeps_events(pool) ? tol_now_ns() : 0;
    const uint64_t number = begin != 0 ? tol_pool_note_event(pool, &event, NULL, begin) : 0;
    tol_magazine_flush_all(pool);
    if (pool->driver_pool != NULL) {
        TOL_TRY(tol_context_show_ends(pool->context));
        TOL_CONTEXT_CU(pool->context, cuMemPoolTrimTo, (pool->driver_pool, keep_bytes),
                       "trimming the driver's pool to %zu bytes", keep_bytes);
    } else {
        pthread_mutex_lock(&pool->lock);
        (void)tol_pool_give_back(pool, keep_bytes);
        tol_pool_note_held(pool);
        pthread_mutex_unlock(&pool->lock);
    }
    if (begin != 0) tol_ring_took(&pool->ring, number, tol_now_ns() - begin);
out:
    return status;
}

/*
 * The arenas of a device in a list, and the routes: which thread allocates from which. All under
 * the device's lock.
 */
#include "torch_arena.h"

#include "core/stream_state.h"
#include "pool/spans.h"
#include "torch_report.h"

#include <stdlib.h>

#define MIB ((size_t)1 << 20)

enum { STREAMS = 63, CANDIDATES = 16, REAP_MS = 1000 };

struct segment {
    struct tol_block block;
    size_t bytes;
    struct segment *next;
};

struct torch_arena {
    struct tol_torch_pool_id id;
    bool is_unnamed;  /* of captures that PyTorch did not announce: never released */
    unsigned holders; /* begun and not released */
    struct tol_spans spans;
    struct segment *segments;
    size_t blocks, used, held;
    struct tol_stream *streams[STREAMS]; /* by their bit in a span's wait_streams */
    struct torch_arena *next;
};

/* A thread that allocates from an arena. */
struct torch_route {
    pthread_t thread;
    struct torch_arena *arena;
    struct torch_route *next; /* the one begun before */
};

/* ---- which arena ---- */

static bool torch_arena_is_named(const struct torch_arena *arena, struct tol_torch_pool_id id) {
    return !arena->is_unnamed && arena->id.first == id.first && arena->id.second == id.second;
}

static struct torch_arena *torch_arena_find(struct torch_device *device,
                                            struct tol_torch_pool_id id) {
    struct torch_arena *arena = device->arenas;
    while (arena != NULL && !torch_arena_is_named(arena, id)) arena = arena->next;
    return arena;
}

static struct torch_arena *torch_arena_add(struct torch_device *device, struct tol_torch_pool_id id,
                                           bool is_unnamed) {
    struct torch_arena *arena = calloc(1, sizeof *arena);
    if (arena == NULL) return NULL;
    arena->id = id;
    arena->is_unnamed = is_unnamed;
    arena->holders = is_unnamed;
    arena->next = device->arenas;
    device->arenas = arena;
    return arena;
}

static struct torch_arena *torch_arena_unnamed(struct torch_device *device) {
    struct torch_arena *arena = device->arenas;
    while (arena != NULL && !arena->is_unnamed) arena = arena->next;
    return arena != NULL ? arena : torch_arena_add(device, (struct tol_torch_pool_id){0, 0}, true);
}

/* Not tol_stream_is_captured: the legacy stream does not answer while another one is captured, and
 * its own work is not captured for that. */
static bool torch_arena_is_captured(const struct tol_stream *stream) {
    CUstreamCaptureStatus captured = CU_STREAM_CAPTURE_STATUS_NONE;
    return stream->functions->cuStreamIsCapturing(stream->handle, &captured) == CUDA_SUCCESS &&
           captured != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* The thread's own route, or else the latest if the stream is captured: autograd's threads allocate
 * for the capturing thread. */
struct torch_arena *torch_arena_for(struct torch_device *device, const struct tol_stream *stream) {
    const bool captured = torch_arena_is_captured(stream);
    if (!captured && atomic_load_explicit(&device->route_count, memory_order_acquire) == 0) {
        return NULL;
    }
    struct torch_arena *arena = NULL;
    pthread_mutex_lock(&device->lock);
    struct torch_route *route = device->routes;
    while (route != NULL && !pthread_equal(route->thread, pthread_self())) route = route->next;
    if (route == NULL && captured) route = device->routes;
    if (route != NULL) {
        arena = route->arena;
    } else if (captured) {
        arena = torch_arena_unnamed(device);
    }
    pthread_mutex_unlock(&device->lock);
    return arena;
}

void torch_arena_begin(struct torch_device *device, struct tol_torch_pool_id id) {
    struct torch_route *route = calloc(1, sizeof *route);
    pthread_mutex_lock(&device->lock);
    struct torch_arena *arena = route != NULL ? torch_arena_find(device, id) : NULL;
    if (arena == NULL && route != NULL) arena = torch_arena_add(device, id, false);
    if (arena != NULL) {
        arena->holders++;
        *route = (struct torch_route){pthread_self(), arena, device->routes};
        device->routes = route;
        atomic_fetch_add(&device->route_count, 1);
    }
    pthread_mutex_unlock(&device->lock);
    if (arena == NULL) {
        free(route);
        torch_report("no host memory for the memory of a graph", "");
    }
}

void torch_arena_end(struct torch_device *device, struct tol_torch_pool_id id) {
    pthread_mutex_lock(&device->lock);
    struct torch_route **link = &device->routes;
    while (*link != NULL && !torch_arena_is_named((*link)->arena, id)) link = &(*link)->next;
    struct torch_route *route = *link;
    if (route != NULL) {
        *link = route->next;
        atomic_fetch_sub(&device->route_count, 1);
    }
    pthread_mutex_unlock(&device->lock);
    free(route);
}

void torch_arena_release(struct torch_device *device, struct tol_torch_pool_id id) {
    pthread_mutex_lock(&device->lock);
    struct torch_arena *arena = torch_arena_find(device, id);
    if (arena != NULL && arena->holders > 0) arena->holders--;
    pthread_mutex_unlock(&device->lock);
    (void)torch_arena_reap(device);
}

/* ---- blocks; the caller holds the device's lock ---- */

/* The bit of a stream. Streams beyond the last separate bit share one, and what they free stays
 * unused until the arena ends. */
static unsigned torch_arena_bit_of(struct torch_arena *arena, struct tol_stream *stream) {
    unsigned bit = 0;
    while (bit < STREAMS && arena->streams[bit] != NULL && arena->streams[bit] != stream) bit++;
    if (bit < STREAMS) arena->streams[bit] = stream;
    return bit;
}

static bool is_at_its_end(const struct tol_stream *stream) {
    return !tol_stream_is_captured(stream) &&
           stream->functions->cuStreamQuery(stream->handle) == CUDA_SUCCESS;
}

/* Whether a stream may have a piece that others have freed. */
static bool can_have(const struct torch_arena *arena, const struct tol_span *span, unsigned bit) {
    uint64_t others = span->wait_streams & ~((uint64_t)1 << bit);
    if (bit == STREAMS) others = span->wait_streams;
    for (; others != 0; others &= others - 1) {
        const unsigned other = (unsigned)__builtin_ctzll(others);
        if (other == STREAMS || !is_at_its_end(arena->streams[other])) return false;
    }
    return true;
}

static struct tol_span *find_piece(const struct torch_arena *arena, uint64_t bytes, unsigned bit) {
    struct tol_span *found[CANDIDATES];
    const size_t count = tol_spans_fitting(&arena->spans, bytes, found, CANDIDATES);
    for (size_t i = 0; i < count; i++) {
        if (can_have(arena, found[i], bit)) return found[i];
    }
    return NULL;
}

/* Small blocks share a segment; a large one has its own, with little more than it needs. */
static size_t segment_bytes(size_t bytes) {
    if (bytes <= MIB) return 2 * MIB;
    if (bytes < 10 * MIB) return 20 * MIB;
    return (bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

/* Memory for the host's use: the graph runs later, and on any stream. */
static tol_status add_segment(struct torch_device *device, struct torch_arena *arena, size_t least,
                              struct tol_span **piece) {
    tol_status status = TOL_OK;
    struct segment *segment = calloc(1, sizeof *segment);
    TOL_CHECK(segment != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a segment");
    segment->bytes = segment_bytes(least);
    status = tol_pool_allocate(device->pool, segment->bytes, NULL, &segment->block);
    if (status == TOL_OUT_OF_DEVICE_MEMORY && segment->bytes > least) {
        segment->bytes = least;
        status = tol_pool_allocate(device->pool, segment->bytes, NULL, &segment->block);
    }
    if (status != TOL_OK) goto out;
    *piece = tol_spans_add(&arena->spans, tol_pool_address(device->pool, segment->block),
                           segment->bytes);
    if (*piece == NULL) {
        (void)tol_pool_free(device->pool, segment->block, NULL);
        TOL_FAIL(TOL_OUT_OF_HOST_MEMORY, "no host memory for the record of a segment");
    }
    segment->next = arena->segments;
    arena->segments = segment;
    arena->held += segment->bytes;
    segment = NULL;
out:
    free(segment);
    return status;
}

tol_status torch_arena_take(struct torch_device *device, struct torch_arena *arena, size_t bytes,
                            struct tol_stream *stream, struct torch_block *block) {
    tol_status status = TOL_OK;
    const size_t rounded = (bytes + TOL_SPAN_GRANULE - 1) / TOL_SPAN_GRANULE * TOL_SPAN_GRANULE;
    pthread_mutex_lock(&device->lock);
    TOL_CHECK(rounded >= bytes, TOL_OUT_OF_DEVICE_MEMORY, "%zu bytes are more than any device has",
              bytes);
    const unsigned bit = torch_arena_bit_of(arena, stream);
    struct tol_span *piece = find_piece(arena, rounded, bit);
    if (piece == NULL) TOL_TRY(add_segment(device, arena, rounded, &piece));
    struct tol_span *span = tol_spans_take(&arena->spans, piece, piece->begin, rounded);
    TOL_CHECK(span != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a record of a block");
    block->address = span->begin;
    block->arena = arena;
    block->span = span;
    arena->blocks++;
    arena->used += rounded;
out:
    pthread_mutex_unlock(&device->lock);
    return status;
}

void torch_arena_give(struct torch_device *device, const struct torch_block *block) {
    struct torch_arena *arena = block->arena;
    pthread_mutex_lock(&device->lock);
    const unsigned bit = torch_arena_bit_of(arena, block->stream);
    arena->blocks--;
    arena->used -= block->span->bytes;
    (void)tol_spans_give(&arena->spans, block->span, (uint64_t)1 << bit, 1);
    pthread_mutex_unlock(&device->lock);
}

/* ---- the end ---- */

static bool torch_arena_is_over(const struct torch_arena *arena) {
    return arena->holders == 0 && arena->blocks == 0;
}

static bool any_capture(struct torch_device *device) {
    if (device->routes != NULL) return true;
    for (int i = 0; i < TORCH_STREAM_BUCKETS; i++) {
        const struct torch_stream *known =
            atomic_load_explicit(&device->streams[i], memory_order_acquire);
        for (; known != NULL; known = known->next) {
            if (tol_stream_is_captured(known->stream)) return true;
        }
    }
    return false;
}

/* A replay may be running on a stream that has allocated nothing here. Known streams are waited for
 * with a deadline, and the driver waits for the others. */
static bool is_all_done(struct torch_device *device) {
    return tol_context_synchronize(device->context, REAP_MS) == TOL_OK &&
           device->context->functions->cuCtxSynchronize() == CUDA_SUCCESS;
}

static void end_torch_arena(struct torch_device *device, struct torch_arena *arena) {
    while (arena->segments != NULL) {
        struct segment *segment = arena->segments;
        arena->segments = segment->next;
        if (tol_pool_free(device->pool, segment->block, NULL) != TOL_OK) {
            torch_report("a segment of a graph could not be freed", tol_message());
        }
        free(segment);
    }
    tol_spans_clear(&arena->spans);
    free(arena);
}

size_t torch_arena_reap(struct torch_device *device) {
    size_t bytes = 0;
    pthread_mutex_lock(&device->lock);
    struct torch_arena **link = &device->arenas;
    while (*link != NULL && !torch_arena_is_over(*link)) link = &(*link)->next;
    if (*link != NULL && !any_capture(device) && is_all_done(device)) {
        while (*link != NULL) {
            struct torch_arena *arena = *link;
            if (!torch_arena_is_over(arena)) {
                link = &arena->next;
                continue;
            }
            *link = arena->next;
            bytes += arena->held;
            end_torch_arena(device, arena);
        }
    }
    pthread_mutex_unlock(&device->lock);
    return bytes;
}

void torch_arena_sum(struct torch_device *device, size_t *held, size_t *used) {
    *held = *used = 0;
    pthread_mutex_lock(&device->lock);
    for (const struct torch_arena *arena = device->arenas; arena != NULL; arena = arena->next) {
        *held += arena->held;
        *used += arena->used;
    }
    pthread_mutex_unlock(&device->lock);
}

/*
 * The events of a pool: the call, its time, and the bytes held after it.
 */
#include "pool_state.h"

static uint16_t pool_events_narrow(uint64_t number) {
    return number < UINT16_MAX ? (uint16_t)number : UINT16_MAX;
}

void tol_event_set_bytes(struct tol_pool_event *event, uint64_t bytes) {
    const uint64_t most = ((uint64_t)1 << 48) - 1;
    event->bytes = (bytes < most ? bytes : most) & most;
}

/* Threads are numbered in the order of their first event, of whatever pool. */
static uint64_t thread_number(void) {
    static _Atomic(uint64_t) threads;
    static _Thread_local uint64_t mine;
    if (mine == 0) mine = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed);
    return mine;
}

uint64_t tol_pool_note_event(struct tol_pool *pool, const struct tol_pool_event *event,
                             const struct tol_stream *stream, uint64_t begin_ns) {
    struct tol_pool_event whole = *event;
    whole.begin_ns = (begin_ns - pool->begin_ns) & (((uint64_t)1 << 48) - 1);
    whole.thread = pool_events_narrow(thread_number());
    whole.stream = stream != NULL ? pool_events_narrow(stream->number) : 0;
    return tol_ring_add(&pool->ring, &whole);
}

uint64_t tol_pool_note_call(struct tol_pool *pool, enum tol_pool_event_kind kind,
                            const struct tol_pool_label *label, struct tol_block block,
                            const struct tol_stream *stream, uint64_t begin_ns, uint64_t ns) {
    struct tol_pool_event event = {.block = block.name,
                                   .took_ns = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX,
                                   .tag = (uint16_t)label->tag,
                                   .kind = (uint8_t)kind};
    if (!tol_pool_keeps_events(pool)) return 0;
    tol_event_set_bytes(&event, label->bytes);
    return tol_pool_note_event(pool, &event, stream, begin_ns);
}

void tol_pool_note_held(struct tol_pool *pool) {
    const uint64_t held = tol_pool_held(pool);
    if (held > pool->held_peak) pool->held_peak = held;
    if (held == pool->held_seen) return;
    struct tol_pool_event event = {.kind = held > pool->held_seen ? TOL_POOL_EVENT_GROW
                                                                  : TOL_POOL_EVENT_SHRINK};
    pool->held_seen = held;
    if (!tol_pool_keeps_events(pool)) return;
    tol_event_set_bytes(&event, held);
    tol_pool_note_event(pool, &event, NULL, tol_now_ns());
}

void tol_pool_note_stitched(struct tol_pool *pool, uint64_t handles, uint64_t bytes) {
    struct tol_pool_event event = {.kind = TOL_POOL_EVENT_STITCH};
    pool->stitched += handles;
    pool->stitched_bytes += bytes;
    if (!tol_pool_keeps_events(pool)) return;
    tol_event_set_bytes(&event, bytes);
    tol_pool_note_event(pool, &event, NULL, tol_now_ns());
}

size_t tol_pool_events(struct tol_pool *pool, struct tol_pool_event *events, size_t count,
                       uint64_t *lost) {
    uint64_t before = 0;
    size_t read = 0;
    if (pool != NULL && (events != NULL || count == 0) && tol_pool_keeps_events(pool)) {
        read = tol_ring_read(&pool->ring, events, count, &before);
    }
    if (lost != NULL) *lost = before;
    return read;
}

const char *tol_pool_event_name(unsigned kind) {
    static const char *const names[TOL_POOL_EVENT_KINDS] = {"allocate", "free",   "refuse", "trim",
                                                            "grow",     "shrink", "stitch"};
    return kind < TOL_POOL_EVENT_KINDS ? names[kind] : NULL;
}

tol_status tol_pool_times(struct tol_pool *pool, enum tol_pool_call call, struct tol_hdr **result) {
    tol_status status = TOL_OK;
    struct tol_hdr *times = NULL;
    TOL_CHECK(pool != NULL && result != NULL && (unsigned)call < TOL_POOL_CALLS,
              TOL_INVALID_ARGUMENT, "tol_pool_times: an argument is NULL, or call is %d",
              (int)call);
    TOL_TRY(tol_times_new(&times));
    TOL_TRY(tol_magazine_times(pool, call, times));
    *result = times;
    times = NULL;
out:
    tol_hdr_free(times);
    return status;
}

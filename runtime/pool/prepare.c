/*
 * The thread, what it plans, and how others meet it.
 */
#include "prepare.h"

#include "core/deep.h"

#include <sched.h>
#include <signal.h>

/* The longest that a caller waits for a handle, which takes 45 us on an H200. It does not sleep
 * meanwhile, because to be woken takes as long. */
enum { AWAIT_NS = 1000000 };

/* A handle in hand. */
struct prepare_work {
    bool is_release;
    struct tol_span *span; /* its addresses */
    uint32_t first, count; /* its pages */
    CUmemGenericAllocationHandle memory;
    bool has_worked; /* the driver did it */
};

/* The thread takes no memory unless so many handles of the next size fit under the limits. It keeps
 * one share of the bytes in use mapped ahead at most. Callers leave trimming to it while no more is
 * held beyond trim_above than this share of the bytes in use and so many bytes. */
enum { ROOM_HANDLES = 16, AHEAD_SHARE = 256 };
static const double LATE_SHARE = 0.0025;
static const uint64_t LATE_BYTES = 4 << 20;

/* ---- where to grow --------------------------------------------------------------------------- */

struct tol_span *tol_prepare_frontier(const struct tol_pool *pool) {
    return tol_spans_largest(&pool->spans);
}

static uint32_t page_of(const struct tol_pages *pages, uint64_t address) {
    return (uint32_t)((address - pages->begin) / pages->page_bytes);
}

/* The bytes to be mapped ahead: little is in use at first, and much of it would be too much. */
static uint64_t ahead_of(const struct tol_pool *pool) {
    const uint64_t share = pool->arena_used / AHEAD_SHARE, most = pool->options.prepare_bytes;
    return share < most ? share : most;
}

/* The bytes from the beginning of a hole that have memory, and the first page that has none. */
static uint64_t ready_bytes(const struct tol_pool *pool, const struct tol_span *hole,
                            uint32_t *next) {
    const struct tol_pages *pages = &pool->pages;
    const uint64_t most = hole->begin + pool->options.prepare_bytes;
    uint32_t page = page_of(pages, hole->begin);
    while (page < pages->page_count && pages->table[page] != 0 &&
           tol_pages_address(pages, page) < most) {
        const struct tol_page_handle *handle = &pages->handles[pages->table[page] - 1];
        if (handle->is_closed || handle->is_shared) break;
        page = handle->first + handle->pages;
    }
    *next = page;
    const uint64_t end = tol_pages_address(pages, page);
    return end > hole->begin ? end - hole->begin : 0;
}

static bool has_room(const struct tol_pool *pool, uint64_t limit, uint64_t bytes) {
    return limit == 0 || tol_pool_held(pool) + ROOM_HANDLES * bytes <= limit;
}

static uint64_t next_bytes(const struct tol_pool *pool) {
    const uint64_t bytes = tol_pool_growth(pool), page = pool->pages.page_bytes;
    return bytes > page ? bytes / page * page : page;
}

/* Whether the pool is past its first handles and away from its limits. */
static bool may_grow(const struct tol_pool *pool) {
    const struct tol_pool_options *options = &pool->options;
    return options->prepare_bytes > 0 && !pool->prepare.has_failed && !pool->is_short &&
           pool->pages.creates >= options->first_count &&
           pool->pages.mapped >= options->double_bytes &&
           has_room(pool, options->limit_bytes, next_bytes(pool)) &&
           has_room(pool, options->soft_limit_bytes, next_bytes(pool));
}

static bool plan_growth(struct tol_pool *pool, struct prepare_work *work) {
    struct tol_pages *pages = &pool->pages;
    struct tol_span *hole = tol_prepare_frontier(pool);
    uint32_t next = 0, most = (uint32_t)(next_bytes(pool) / pages->page_bytes), count = 0;
    if (!may_grow(pool) || hole == NULL || ready_bytes(pool, hole, &next) >= ahead_of(pool)) {
        return false;
    }
    const uint64_t begin = tol_pages_address(pages, next), end = hole->begin + hole->bytes;
    while (count < most && next + count < pages->page_count && pages->table[next + count] == 0 &&
           tol_pages_address(pages, next + count + 1) <= end) {
        count++;
    }
    if (count == 0 || begin < hole->begin || !tol_spans_reserve(&pool->spans, 2)) return false;
    *work = (struct prepare_work){.first = next, .count = count};
    work->span = tol_spans_block(&pool->spans, hole, begin, count * pages->page_bytes);
    return work->span != NULL;
}

/* ---- what to give back ----------------------------------------------------------------------- */

static bool holds_too_much(const struct tol_pool *pool, double share, uint64_t slack) {
    const struct tol_pool_options *options = &pool->options;
    const double used = (double)(pool->arena_used + pool->large_held - pool->large_kept);
    return (double)tol_pool_held(pool) > used * share + (double)(options->slack_bytes + slack);
}

/* A handle without a block between two addresses, the last one; NULL: there is none. */
static struct tol_page_handle *idle_between(struct tol_pages *pages, uint64_t begin, uint64_t end) {
    const struct tol_page_gap range = tol_pages_between(pages, begin, end);
    const uint32_t behind = range.first + range.pages;
    for (uint32_t page = behind; page > range.first;) {
        const uint32_t place = pages->table[--page];
        if (place == 0) continue;
        struct tol_page_handle *handle = &pages->handles[place - 1];
        page = handle->first;
        if (handle->blocks == 0 && !handle->is_shared && handle->first >= range.first &&
            handle->first + handle->pages <= behind) {
            return handle;
        }
    }
    return NULL;
}

/* The same in a hole: where no work uses it, and not what is mapped ahead. */
static struct tol_page_handle *idle_in(struct tol_pool *pool, struct tol_span *hole) {
    const uint64_t end = hole->begin + hole->bytes;
    uint64_t begin = hole->begin;
    struct tol_page_handle *found = NULL;
    if (hole == tol_prepare_frontier(pool)) begin += pool->options.prepare_bytes;
    if (tol_tickets_open(&pool->tickets, hole->wait_streams, hole->wait_ticket, true) == 0) {
        hole->wait_streams = 0;
        return idle_between(&pool->pages, begin, end);
    }
    found = idle_between(&pool->pages, begin > hole->wait_end ? begin : hole->wait_end, end);
    return found != NULL ? found : idle_between(&pool->pages, begin, hole->wait_begin);
}

static struct tol_page_handle *find_idle(struct tol_pool *pool, struct tol_span **result) {
    if (pool->pages.idle_count == 0) return NULL;
    for (unsigned bin = TOL_SPAN_BINS; bin-- > 0;) {
        for (struct tol_span *hole = pool->spans.bins[bin]; hole != NULL; hole = hole->bin_behind) {
            if (hole->bytes < pool->pages.page_bytes) return NULL;
            struct tol_page_handle *handle = idle_in(pool, hole);
            *result = hole;
            if (handle != NULL) return handle;
        }
    }
    return NULL;
}

static bool plan_release(struct tol_pool *pool, struct prepare_work *work) {
    struct tol_pages *pages = &pool->pages;
    struct tol_span *hole = NULL;
    if (!holds_too_much(pool, pool->options.trim_to, 0)) return false;
    tol_tickets_begin_pass(&pool->tickets);
    struct tol_page_handle *handle = find_idle(pool, &hole);
    tol_tickets_end_pass(&pool->tickets);
    pool->is_dense = handle == NULL;
    if (handle == NULL || !tol_spans_reserve(&pool->spans, 2)) return false;
    *work =
        (struct prepare_work){.is_release = true, .first = handle->first, .count = handle->pages};
    work->span = tol_spans_block(&pool->spans, hole, tol_pages_address(pages, work->first),
                                 work->count * pages->page_bytes);
    if (work->span == NULL) return false;
    work->memory = tol_pages_detach(pages, handle);
    return true;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Without the pool's lock. */
static void call_driver(struct tol_pool *pool, struct prepare_work *work) {
    const struct tol_driver_table *driver = pool->context->functions;
    const struct tol_pages *pages = &pool->pages;
    const CUdeviceptr at = pages->begin + work->first * pages->page_bytes;
    const size_t bytes = work->count * pages->page_bytes;
    if (work->is_release) {
        work->has_worked = driver->cuMemUnmap(at, bytes) == CUDA_SUCCESS;
        if (work->has_worked) driver->cuMemRelease(work->memory);
        return;
    }
    if (driver->cuMemCreate(&work->memory, bytes, &pages->prop, 0) != CUDA_SUCCESS) return;
    if (driver->cuMemMap(at, bytes, 0, work->memory, 0) == CUDA_SUCCESS) {
        work->has_worked = driver->cuMemSetAccess(at, bytes, &pages->access, 1) == CUDA_SUCCESS;
        if (!work->has_worked) driver->cuMemUnmap(at, bytes);
    }
    if (!work->has_worked) driver->cuMemRelease(work->memory);
}

/* There is no host memory for its record. */
static void drop_memory(struct tol_pool *pool, const struct prepare_work *work) {
    const struct tol_driver_table *driver = pool->context->functions;
    driver->cuMemUnmap(tol_pages_address(&pool->pages, work->first),
                       work->count * pool->pages.page_bytes);
    driver->cuMemRelease(work->memory);
    pool->pages.releases++;
}

/* Hands the addresses back, with memory or without. */
static void finish(struct tol_pool *pool, const struct prepare_work *work) {
    struct tol_pages *pages = &pool->pages;
    struct tol_prepare *prepare = &pool->prepare;
    const bool has_memory = work->has_worked != work->is_release;
    prepare->bytes = 0;
    if (has_memory && !tol_pages_adopt(pages, work->first, work->count, work->memory)) {
        drop_memory(pool, work);
    }
    if (work->has_worked) {
        pages->creates += !work->is_release;
        pages->opens += !work->is_release;
        pages->releases += work->is_release;
        prepare->created += !work->is_release;
        prepare->released += work->is_release;
    } else {
        prepare->has_failed = true;
        prepare->grows = prepare->trims = false;
    }
    if (!work->is_release) pool->is_dense = false;
    tol_spans_give(&pool->spans, work->span, work->span->wait_streams, work->span->wait_ticket);
    tol_pool_note_held(pool);
    TOL_DEEP_ASSERT(tol_pool_is_valid(pool));
}

static bool plan(struct tol_pool *pool, struct prepare_work *work) {
    struct tol_prepare *prepare = &pool->prepare;
    if (prepare->grows) prepare->grows = plan_growth(pool, work);
    if (!prepare->grows && prepare->trims) prepare->trims = plan_release(pool, work);
    return prepare->grows || prepare->trims;
}

static void serve_once(struct tol_pool *pool, struct prepare_work *work) {
    struct tol_prepare *prepare = &pool->prepare;
    prepare->is_busy = true;
    prepare->bytes = work->count * pool->pages.page_bytes;
    pthread_mutex_unlock(&pool->lock);
    const uint64_t begin = tol_now_ns();
    call_driver(pool, work);
    const uint64_t end = tol_now_ns();
    pthread_mutex_lock(&pool->lock);
    pool->driver_ns += end - begin;
    finish(pool, work);
    prepare->is_busy = false;
    atomic_fetch_add_explicit(&prepare->served, 1, memory_order_relaxed);
    pthread_cond_broadcast(&prepare->done);
}

static void *serve(void *user) {
    struct tol_pool *pool = user;
    struct tol_prepare *prepare = &pool->prepare;
    const bool is_bound = tol_context_bind(pool->context) == TOL_OK;
    pthread_mutex_lock(&pool->lock);
    prepare->has_failed = prepare->has_failed || !is_bound;
    while (!prepare->is_ending) {
        struct prepare_work work = {0};
        if (is_bound && plan(pool, &work)) {
            serve_once(pool, &work);
        } else {
            prepare->grows = prepare->trims = false;
            pthread_cond_wait(&prepare->wake, &pool->lock);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* ---- the others ------------------------------------------------------------------------------ */

/* The program's signals are for its own threads. */
static bool start(struct tol_pool *pool) {
    struct tol_prepare *prepare = &pool->prepare;
    sigset_t all, before;
    if (prepare->has_thread) return true;
    if (!prepare->is_open) {
        pthread_cond_init(&prepare->wake, NULL);
        pthread_cond_init(&prepare->done, NULL);
        prepare->is_open = true;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    prepare->has_thread = pthread_create(&prepare->thread, NULL, serve, pool) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    prepare->has_failed = !prepare->has_thread;
    return prepare->has_thread;
}

void tol_prepare_close(struct tol_pool *pool) {
    struct tol_prepare *prepare = &pool->prepare;
    if (prepare->has_thread) {
        pthread_mutex_lock(&pool->lock);
        prepare->is_ending = true;
        pthread_cond_signal(&prepare->wake);
        pthread_mutex_unlock(&pool->lock);
        pthread_join(prepare->thread, NULL);
    }
    if (!prepare->is_open) return;
    pthread_cond_destroy(&prepare->wake);
    pthread_cond_destroy(&prepare->done);
}

void tol_prepare_note(struct tol_pool *pool) {
    struct tol_prepare *prepare = &pool->prepare;
    uint32_t next = 0;
    if (prepare->grows || !may_grow(pool)) return;
    const struct tol_span *hole = tol_prepare_frontier(pool);
    if (hole == NULL || ready_bytes(pool, hole, &next) >= ahead_of(pool) / 2) return;
    if (!start(pool)) return;
    prepare->grows = true;
    pthread_cond_signal(&prepare->wake);
}

bool tol_prepare_trims(struct tol_pool *pool) {
    struct tol_prepare *prepare = &pool->prepare;
    if (!prepare->has_thread || prepare->has_failed ||
        holds_too_much(pool, pool->options.trim_above + LATE_SHARE, LATE_BYTES)) {
        return false;
    }
    if (!prepare->trims) pthread_cond_signal(&prepare->wake);
    prepare->trims = true;
    return true;
}

bool tol_prepare_is_near(const struct tol_pool *pool) {
    return pool->prepare.is_busy && pool->prepare.grows && !pool->is_short;
}

bool tol_prepare_await(struct tol_pool *pool) {
    struct tol_prepare *prepare = &pool->prepare;
    const uint64_t served = atomic_load_explicit(&prepare->served, memory_order_relaxed);
    prepare->waits++;
    pthread_mutex_unlock(&pool->lock);
    const uint64_t begin = tol_now_ns();
    bool is_done = false;
    while (!is_done && tol_now_ns() - begin < AWAIT_NS) {
        sched_yield();
        is_done = atomic_load_explicit(&prepare->served, memory_order_relaxed) != served;
    }
    pthread_mutex_lock(&pool->lock);
    return is_done;
}

void tol_prepare_settle(struct tol_pool *pool) {
    struct tol_prepare *prepare = &pool->prepare;
    prepare->grows = prepare->trims = false;
    while (prepare->is_busy) pthread_cond_wait(&prepare->done, &pool->lock);
}

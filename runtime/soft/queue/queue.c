/*
 * The queues and their threads: the choice of the next stream and of the working thread, and how
 * threads wait.
 */
#include "queue.h"

#include "base/deep_assert.h"
#include "state/contexts.h"
#include "dependence.h"
#include "base/dice.h"
#include "grid/grid.h"
#include "state/handle_set.h"
#include "base/options.h"
#include "base/soft_clock.h"
#include "perform.h"
#include "machine/print.h"
#include "stream_order.h"
#include "state/thread_state.h"
#include "trace_task.h"

#include <stdlib.h>
#include <time.h>

/* A grid runs for SLICE_NS before other streams get a turn. A query works for QUERY_NS. Work that
 * no thread waits for starts when it is between LAZY_NS and twice that old, and the helper that
 * executes it sleeps after IDLE_ROUNDS of LAZY_NS without work. */
enum {
    SLICE_NS = 2000 * 1000,
    QUERY_NS = 100 * 1000,
    LAZY_NS = 500 * 1000,
    IDLE_ROUNDS = 100,
    HELPERS_MAX = 256
};

static struct {
    pthread_cond_t done;  /* an operation has ended: for threads that wait */
    pthread_cond_t work;  /* a grid wants helpers, or the lazy helper is to wake */
    pthread_cond_t calls; /* a host function is to be called */
    unsigned waiting;     /* threads in done */
    uint64_t pending;     /* operations in all queues */
    uint64_t polled;    /* of them, those that wait for a value in memory, which is not announced */
    uint64_t functions; /* of them, those that call a host function */
    bool has_caller;    /* the thread that calls them has been started */
    unsigned helpers;
    bool lazy_asleep;
    bool wanted; /* a grid wants helpers */
    unsigned turn;
    uint64_t last_serial; /* of the operation that was submitted last */
} queue = {.done = PTHREAD_COND_INITIALIZER,
           .work = PTHREAD_COND_INITIALIZER,
           .calls = PTHREAD_COND_INITIALIZER};

static void queue_wait_a_little(pthread_cond_t *condition, uint64_t ns) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t sum = (uint64_t)until.tv_nsec + ns;
    until.tv_sec += (time_t)(sum / 1000000000u);
    until.tv_nsec = (long)(sum % 1000000000u);
    pthread_cond_timedwait(condition, &soft_lock, &until);
}

#ifndef NDEBUG

/* The number of queued operations and events that hold an event point. */
static int holders_of(const struct soft_event_point *point) {
    int holders = 0;
    for (const struct soft_context *c = soft_contexts(); c != NULL; c = c->next) {
        for (const struct soft_stream *s = c->streams; s != NULL; s = s->next) {
            for (const struct soft_operation *o = s->first; o != NULL; o = o->next) {
                holders += o->point == point;
            }
        }
        for (const struct soft_event *e = c->events; e != NULL; e = e->next) {
            holders += e->point == point;
        }
    }
    return holders;
}

bool soft_queue_is_valid(void) {
    uint64_t pending = 0, polled = 0, functions = 0;
    for (const struct soft_context *c = soft_contexts(); c != NULL; c = c->next) {
        unsigned count = 0;
        for (const struct soft_stream *s = c->streams; s != NULL; s = s->next, count++) {
            const struct soft_event_point *point = s->first != NULL ? s->first->point : NULL;
            if (s->context != c || !soft_stream_is_valid(s)) return false;
            if (s->destroyed && s->first == NULL && s->waiting == 0) return false;
            if (point != NULL && point->references < holders_of(point)) return false;
            for (const struct soft_operation *o = s->first; o != NULL; o = o->next, pending++) {
                if (!soft_operation_is_valid(o)) return false;
                if (o->next == NULL && o != s->last) return false;
                polled += soft_operation_is_polled(o);
                functions += soft_operation_calls(o);
            }
        }
        if (count != c->stream_count) return false;
    }
    return pending == queue.pending && polled == queue.polled && functions == queue.functions;
}

#endif

void soft_queue_pop(struct soft_stream *stream) {
    struct soft_operation *operation = stream->first;
    assert(soft_stream_is_valid(stream) && queue.pending > 0);
    soft_order_done(stream, operation);
    soft_trace_end(stream, operation);
    stream->first = operation->next;
    if (stream->first == NULL) stream->last = NULL;
    queue.pending--;
    queue.polled -= soft_operation_is_polled(operation);
    queue.functions -= soft_operation_calls(operation);
    if (operation->kind == SOFT_OPERATION_RECORD) {
        operation->point->reached = true;
        operation->point->time_ns = soft_now_ns();
    }
    soft_operation_free(operation);
    if (queue.waiting > 0) pthread_cond_broadcast(&queue.done);
    /* Its successors may be left to the lazy helper: a thread that waits for a kernel of one device
     * executes slices of that kernel again and again, and none of other devices. */
    if (queue.lazy_asleep && queue.pending > 0) pthread_cond_broadcast(&queue.work);
    soft_stream_settle(stream);
    SOFT_DEEP_ASSERT(soft_queue_is_valid());
}

void soft_queue_want_help(void) {
    if (queue.helpers == 0) return;
    queue.wanted = true;
    pthread_cond_broadcast(&queue.work);
}

void soft_queue_want_caller(void) {
    pthread_cond_signal(&queue.calls);
}

/* The limits of a step: its duration, and the largest serial number of its operations. */
struct step_limit {
    uint64_t slice_ns, serial;
};

/* The streams of a context between two positions of its list. */
static bool step_some(struct soft_context *context, int priority, unsigned from, unsigned to,
                      struct step_limit limit) {
    unsigned position = 0;
    struct soft_stream *stream = context->streams;
    for (; stream != NULL && position < to; stream = stream->next, position++) {
        if (position < from || stream->priority != priority) continue;
        if (stream->first != NULL && stream->first->serial > limit.serial) continue;
        if (soft_perform(stream, limit.slice_ns)) return true;
    }
    return false;
}

/* The stream whose next operation comes first after a place in the order of TOLLENS_SOFT_ORDER;
 * NULL: none does. */
static struct soft_stream *queue_next_of_order(uint64_t after, struct step_limit limit) {
    struct soft_stream *best = NULL;
    uint64_t least = UINT64_MAX;
    for (struct soft_context *c = soft_contexts(); c != NULL; c = c->next) {
        for (struct soft_stream *s = c->streams; s != NULL; s = s->next) {
            const bool is_queued = s->first != NULL && s->first->serial <= limit.serial;
            const uint64_t place = is_queued ? soft_options_turn(s->first->serial) : UINT64_MAX;
            if (place > after && place < least) best = s;
            if (best == s) least = place;
        }
    }
    return best;
}

/* Executes a step of the first operation of that order that can run. */
static bool step_in_order(struct step_limit limit) {
    uint64_t place = 0;
    for (struct soft_stream *s; (s = queue_next_of_order(place, limit)) != NULL;) {
        place = soft_options_turn(s->first->serial);
        if (soft_perform(s, limit.slice_ns)) return true;
    }
    return false;
}

/* Executes a step of one of the streams of all contexts, by priority, then round robin. */
static bool step_within(struct step_limit limit) {
    if (queue.pending == 0) return false;
    if (soft_options()->order != SOFT_ORDER_TURNS) return step_in_order(limit);
    unsigned turn = queue.turn++;
    for (int priority = SOFT_PRIORITY_GREATEST; priority <= 0; priority++) {
        for (struct soft_context *context = soft_contexts(); context != NULL;
             context = context->next) {
            if (context->stream_count == 0) continue;
            unsigned begin = turn % context->stream_count;
            if (step_some(context, priority, begin, UINT32_MAX, limit)) return true;
            if (step_some(context, priority, 0, begin, limit)) return true;
        }
    }
    return false;
}

static bool queue_step(uint64_t slice_ns) {
    return step_within((struct step_limit){slice_ns, UINT64_MAX});
}

/* A helper joins grids that want help. */
static void *queue_help(void *argument) {
    pthread_mutex_lock(&soft_lock);
    for (;;) {
        if (queue.wanted && queue_step(SLICE_NS)) continue;
        queue.wanted = false;
        pthread_cond_wait(&queue.work, &soft_lock);
    }
    return argument;
}

/* The serial number up to which work is LAZY_NS old and no thread has waited for it. */
static uint64_t last_neglected(void) {
    static uint64_t seen, seen_ns, neglected; /* the lock protects them */
    uint64_t now_ns = soft_now_ns();
    if (now_ns - seen_ns >= LAZY_NS) {
        neglected = seen;
        seen = queue.last_serial;
        seen_ns = now_ns;
    }
    return neglected;
}

/* The first helper also starts work that no thread waits for, but not younger work: a thread that
 * submits some operations and waits for them executes them itself, without a helper that contends
 * for the lock. */
static void *help_lazily(void *argument) {
    unsigned idle = 0;
    pthread_mutex_lock(&soft_lock);
    for (;;) {
        uint64_t serial = last_neglected();
        struct step_limit limit = {SLICE_NS, queue.wanted ? UINT64_MAX : serial};
        if (step_within(limit)) {
            idle = 0;
            continue;
        }
        queue.wanted = false;
        if (idle++ < IDLE_ROUNDS || queue.polled > 0 || serial < queue.last_serial) {
            queue_wait_a_little(&queue.work, LAZY_NS);
        } else {
            queue.lazy_asleep = true;
            pthread_cond_wait(&queue.work, &soft_lock);
            queue.lazy_asleep = false;
            idle = 0;
        }
    }
    return argument;
}

/* Starts the helpers with the first operation. The caller holds the lock. */
static void start_helpers(void) {
    pthread_attr_t attributes;
    unsigned wanted = (unsigned)soft_options()->workers;
    if (queue.helpers > 0 || pthread_attr_init(&attributes) != 0) return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (unsigned i = 0; i < wanted && i < HELPERS_MAX; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, i == 0 ? help_lazily : queue_help, NULL) != 0)
            break;
        queue.helpers++;
    }
    pthread_attr_destroy(&attributes);
}

/* Calls the next host function. This may free its stream. */
static bool call_one(void) {
    for (struct soft_context *c = soft_contexts(); c != NULL; c = c->next) {
        for (struct soft_stream *s = c->streams; s != NULL; s = s->next) {
            if (s->first != NULL && soft_operation_calls(s->first) && soft_perform(s, 0)) {
                return true;
            }
        }
    }
    return false;
}

/* Calls host functions, as their turns come. */
static void *queue_call(void *argument) {
    soft_thread()->in_host_function = true;
    pthread_mutex_lock(&soft_lock);
    for (;;) {
        if (call_one()) continue;
        if (queue.functions > 0) {
            queue_wait_a_little(&queue.calls, LAZY_NS);
        } else {
            pthread_cond_wait(&queue.calls, &soft_lock);
        }
    }
    return argument;
}

/* Starts the caller with the first host function. */
static CUresult start_caller(void) {
    pthread_t thread;
    if (queue.has_caller) return CUDA_SUCCESS;
    if (pthread_create(&thread, NULL, queue_call, NULL) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_detach(thread);
    queue.has_caller = true;
    return CUDA_SUCCESS;
}

void soft_queue_append(struct soft_stream *stream, struct soft_operation *operation) {
    soft_dependence_queue(stream, operation);
    if (stream->last != NULL) {
        stream->last->next = operation;
    } else {
        stream->first = operation;
    }
    stream->last = operation;
    operation->serial = ++queue.last_serial;
    queue.pending++;
    queue.polled += soft_operation_is_polled(operation);
    queue.functions += soft_operation_calls(operation);
    if (operation->launch != NULL) soft_operation_number(operation->launch, stream);
    assert(soft_operation_is_valid(operation) && soft_stream_is_valid(stream));
    SOFT_DEEP_ASSERT(soft_queue_is_valid());
    soft_order_queue(operation);
    start_helpers();
    if (queue.lazy_asleep) pthread_cond_broadcast(&queue.work);
}

CUresult soft_queue_add_all(struct soft_stream *stream, struct soft_operation *operations) {
    CUresult result = stream->context->error;
    if (result == CUDA_SUCCESS) result = soft_stream_order(stream);
    for (struct soft_operation *o = operations; o != NULL && result == CUDA_SUCCESS; o = o->next) {
        if (soft_operation_calls(o)) result = start_caller();
    }
    if (result != CUDA_SUCCESS) return result;
    while (operations != NULL) {
        struct soft_operation *operation = operations;
        operations = operation->next;
        operation->next = NULL;
        soft_queue_append(stream, operation);
    }
    return CUDA_SUCCESS;
}

CUresult soft_queue_add(struct soft_stream *stream, struct soft_operation *operation) {
    pthread_mutex_lock(&soft_lock);
    CUresult result = soft_queue_add_all(stream, operation);
    if (result != CUDA_SUCCESS) soft_operation_free(operation);
    pthread_mutex_unlock(&soft_lock);
    return result;
}

static bool context_is_empty(const struct soft_context *context) {
    for (const struct soft_stream *s = context->streams; s != NULL; s = s->next) {
        if (s->first != NULL) return false;
    }
    return true;
}

/* What a thread waits for: one of the three. */
struct goal {
    struct soft_context *context;
    struct soft_stream *stream;
    struct soft_event_point *point;
};

static bool queue_reached(const struct goal *goal) {
    if (goal->stream != NULL) return goal->stream->first == NULL;
    if (goal->point != NULL) return goal->point->reached;
    return context_is_empty(goal->context);
}

/* A stream that a thread waits for is kept, even if another thread destroys it. */
static void begin_waiting(const struct goal *goal) {
    pthread_mutex_lock(&soft_lock);
    if (goal->stream != NULL) goal->stream->waiting++;
}

static void end_waiting(const struct goal *goal) {
    if (goal->stream != NULL) {
        goal->stream->waiting--;
        soft_stream_settle(goal->stream);
    }
    pthread_mutex_unlock(&soft_lock);
}

/* The program is now ordered after what it has waited for. */
static void queue_know(const struct goal *goal) {
    if (goal->point != NULL) soft_order_know_point(goal->point);
    if (goal->stream != NULL) {
        soft_order_know_stream(goal->stream);
        soft_dependence_forget(goal->stream);
    }
    if (goal->point != NULL || goal->stream != NULL) return;
    soft_order_know_context(goal->context);
    struct soft_stream *stream = goal->context->streams;
    for (; stream != NULL; stream = stream->next) soft_dependence_forget(stream);
}

/* The stream waited for comes first: it is often the only one. */
static bool step_to(const struct goal *goal, uint64_t slice_ns) {
    const bool is_first = soft_options()->order == SOFT_ORDER_TURNS;
    return (is_first && goal->stream != NULL && soft_perform(goal->stream, slice_ns)) ||
           queue_step(slice_ns);
}

static CUresult queue_wait_for(const struct goal *goal) {
    begin_waiting(goal);
    while (!queue_reached(goal)) {
        if (step_to(goal, SLICE_NS)) continue;
        queue.waiting++;
        queue_wait_a_little(&queue.done, LAZY_NS);
        queue.waiting--;
    }
    CUresult result = goal->context->error;
    queue_know(goal);
    end_waiting(goal);
    soft_print_flush();
    return result;
}

CUresult soft_queue_wait_stream(struct soft_stream *stream) {
    struct goal goal = {.context = stream->context, .stream = stream};
    return queue_wait_for(&goal);
}

CUresult soft_queue_wait_point(struct soft_context *context, struct soft_event_point *point) {
    struct goal goal = {.context = context, .point = point};
    return queue_wait_for(&goal);
}

CUresult soft_queue_wait_context(struct soft_context *context) {
    struct goal goal = {.context = context};
    return queue_wait_for(&goal);
}

void soft_queue_wait_device(int device) {
    pthread_mutex_lock(&soft_lock);
    struct soft_context *context = soft_contexts();
    pthread_mutex_unlock(&soft_lock);
    /* Contexts are never taken off their list. */
    for (; context != NULL; context = context->next) {
        bool meant = device < 0 || context->device->ordinal == device;
        if (meant) soft_queue_wait_context(context);
    }
}

/* Whether a query works: in orders that keep work waiting, one in eight does. */
static bool query_works(void) {
    static uint64_t queries; /* the lock protects it */
    return soft_options()->order < SOFT_ORDER_NEWEST ||
           (soft_dice(soft_options()->seed, ++queries) >> 32) % 8 == 0;
}

static CUresult queue_query(const struct goal *goal) {
    begin_waiting(goal);
    uint64_t end = 0;
    while (!queue_reached(goal) && query_works()) {
        if (end == 0) end = soft_now_ns() + QUERY_NS;
        if (!step_to(goal, QUERY_NS) || soft_now_ns() >= end) break;
    }
    CUresult result = goal->context->error;
    if (result == CUDA_SUCCESS && !queue_reached(goal)) result = CUDA_ERROR_NOT_READY;
    if (result == CUDA_SUCCESS) queue_know(goal);
    end_waiting(goal);
    return result;
}

CUresult soft_queue_query_stream(struct soft_stream *stream) {
    struct goal goal = {.context = stream->context, .stream = stream};
    return queue_query(&goal);
}

CUresult soft_queue_query_context(struct soft_context *context) {
    struct goal goal = {.context = context};
    return queue_query(&goal);
}

CUresult soft_queue_query_point(struct soft_context *context, struct soft_event_point *point) {
    struct goal goal = {.context = context, .point = point};
    return queue_query(&goal);
}

void soft_queue_end_context(struct soft_context *context) {
    pthread_mutex_lock(&soft_lock);
    while (context->streams != NULL) {
        struct soft_stream *stream = context->streams;
        soft_handle_remove(SOFT_HANDLE_STREAM, stream);
        if (stream->capture != NULL) stream->leave_capture(stream);
        context->streams = stream->next;
        soft_order_end_stream(stream);
        soft_dependence_forget(stream);
        free(stream);
    }
    context->stream_count = 0;
    context->legacy = NULL;
    pthread_mutex_unlock(&soft_lock);
    soft_launch_trim();
    soft_worker_end(&soft_thread()->worker);
}

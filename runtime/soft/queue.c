/*
 * Carrying out operations: one step takes the head of some stream that can go on,
 * and does a slice. */
#include "queue.h"

#include "options.h"
#include "space.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A grid runs for SLICE_NS before other streams are looked at; FIRST_SLICE_NS before helpers are
 * called. A query works for QUERY_NS. Work that nobody waits for is begun after about LAZY_NS, and
 * the helper that does it goes back to sleep after IDLE_ROUNDS of that without work. */
enum {
    SLICE_NS = 2000 * 1000,
    FIRST_SLICE_NS = 50 * 1000,
    QUERY_NS = 100 * 1000,
    LAZY_NS = 500 * 1000,
    IDLE_ROUNDS = 100,
    HELPERS_MAX = 256
};

static struct {
    pthread_cond_t done; /* an operation has ended: for threads that wait */
    pthread_cond_t work; /* a grid wants helpers, or the lazy helper is to wake */
    unsigned waiting;    /* threads in done */
    uint64_t pending;    /* operations in all queues */
    unsigned helpers;
    bool lazy_asleep;
    bool wanted; /* a grid wants helpers */
    unsigned turn;
    uint64_t next_launch_id;
} queue = {.done = PTHREAD_COND_INITIALIZER, .work = PTHREAD_COND_INITIALIZER};

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct soft_worker *own_worker(void) {
    static _Thread_local struct soft_worker worker;
    return &worker;
}

static void wait_a_little(pthread_cond_t *condition, uint64_t ns) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t sum = (uint64_t)until.tv_nsec + ns;
    until.tv_sec += (time_t)(sum / 1000000000u);
    until.tv_nsec = (long)(sum % 1000000000u);
    pthread_cond_timedwait(condition, &soft_lock, &until);
}

void soft_moment_release(struct soft_moment *moment) {
    if (moment != NULL && --moment->references == 0) free(moment);
}

static void free_operation(struct soft_operation *operation) {
    struct soft_launch *launch = operation->launch;
    if (launch != NULL) {
        soft_launch_end(launch);
        soft_module_release(launch->module);
        pthread_mutex_destroy(&launch->lock);
        free(launch->parameters);
        free(launch);
    }
    soft_moment_release(operation->moment);
    free(operation->staged);
    free(operation);
}

static void free_stream(struct soft_stream *stream) {
    struct soft_stream **link = &stream->context->streams;
    while (*link != stream) link = &(*link)->next;
    *link = stream->next;
    stream->context->stream_count--;
    free(stream);
}

/* Takes the head off a stream: it is done. */
static void pop(struct soft_stream *stream) {
    struct soft_operation *operation = stream->first;
    stream->first = operation->next;
    if (stream->first == NULL) stream->last = NULL;
    queue.pending--;
    if (operation->kind == SOFT_OPERATION_RECORD) {
        operation->moment->reached = true;
        operation->moment->time_ns = now_ns();
    }
    free_operation(operation);
    if (queue.waiting > 0) pthread_cond_broadcast(&queue.done);
    if (stream->destroyed && stream->first == NULL) free_stream(stream);
}

/* A kernel has failed: nothing else runs in its context, and every later call says so. Operations
 * that other threads are at work on end by themselves. */
static void fail_context(struct soft_context *context, CUresult error) {
    if (context->error == CUDA_SUCCESS) context->error = error;
}

static bool do_copy(const struct soft_operation *operation) {
    const void *source =
        operation->staged != NULL ? operation->staged : (const void *)(uintptr_t)operation->source;
    switch (operation->copy) {
    case SOFT_COPY_TO_DEVICE:
        return soft_space_write(operation->destination, source, operation->bytes);
    case SOFT_COPY_TO_HOST:
        return soft_space_read(operation->source, (void *)(uintptr_t)operation->destination,
                               operation->bytes);
    default:
        return soft_space_copy(operation->destination, operation->source, operation->bytes);
    }
}

/* Runs a slice of a grid. The lock is held on entry and on return, and not in between. */
static void work_on_launch(struct soft_stream *stream, struct soft_operation *operation,
                           uint64_t slice_ns) {
    struct soft_launch *launch = operation->launch;
    bool first = !operation->begun;
    operation->begun = true;
    operation->workers++;
    pthread_mutex_unlock(&soft_lock);
    bool over = soft_launch_work(launch, own_worker(),
                                 first && slice_ns > FIRST_SLICE_NS ? FIRST_SLICE_NS : slice_ns);
    pthread_mutex_lock(&soft_lock);
    operation->workers--;
    if (!over && first && queue.helpers > 0 && atomic_load(&launch->next) < launch->ctas) {
        queue.wanted = true;
        pthread_cond_broadcast(&queue.work);
    }
    /* The last one out ends it. A CTA that was put aside belongs to the launch, not to a thread, so
     * "over" may have been false for the one who ran its last part. */
    over = atomic_load(&launch->failed) || atomic_load(&launch->ended) == launch->ctas;
    if (!over || operation->workers > 0) return;
    struct soft_context *context = stream->context;
    if (atomic_load(&launch->failed)) {
        struct soft_report report = launch->report;
        fail_context(context, (CUresult)report.result);
        pop(stream);
        pthread_mutex_unlock(&soft_lock);
        soft_report_tell(&report);
        pthread_mutex_lock(&soft_lock);
    } else {
        pop(stream);
    }
}

static void do_alone(struct soft_stream *stream, struct soft_operation *operation) {
    bool ok = true;
    operation->workers = 1;
    pthread_mutex_unlock(&soft_lock);
    if (operation->kind == SOFT_OPERATION_COPY) {
        ok = do_copy(operation);
    } else {
        ok = soft_space_fill(operation->destination, &operation->pattern, operation->pattern_bytes,
                             operation->bytes);
    }
    pthread_mutex_lock(&soft_lock);
    /* The range was live when the operation was queued; it has been freed since. */
    if (!ok) fail_context(stream->context, CUDA_ERROR_ILLEGAL_ADDRESS);
    pop(stream);
}

/* Does something for a stream, if its head can go on. */
static bool step_stream(struct soft_stream *stream, uint64_t slice_ns) {
    struct soft_operation *operation = stream->first;
    if (operation == NULL) return false;
    if (stream->context->error != CUDA_SUCCESS) {
        if (operation->workers > 0) return false;
        pop(stream);
        return true;
    }
    switch (operation->kind) {
    case SOFT_OPERATION_RECORD:
        pop(stream);
        return true;
    case SOFT_OPERATION_WAIT:
        if (!operation->moment->reached) return false;
        pop(stream);
        return true;
    case SOFT_OPERATION_LAUNCH: {
        struct soft_launch *launch = operation->launch;
        bool more = operation->workers == 0 ||
                    (operation->workers < soft_options()->workers &&
                     atomic_load(&launch->next) < launch->ctas && !atomic_load(&launch->failed));
        if (!more) return false;
        work_on_launch(stream, operation, slice_ns);
        return true;
    }
    default:
        if (operation->workers > 0) return false;
        do_alone(stream, operation);
        return true;
    }
}

/* The streams of a context between two positions of its list. */
static bool step_some(struct soft_context *context, int priority, unsigned from, unsigned to,
                      uint64_t slice_ns) {
    unsigned position = 0;
    struct soft_stream *stream = context->streams;
    for (; stream != NULL && position < to; stream = stream->next, position++) {
        if (position < from || stream->priority != priority) continue;
        if (step_stream(stream, slice_ns)) return true;
    }
    return false;
}

/* Does something for one of the streams of all contexts, urgent ones first, each in its turn. */
static bool step(uint64_t slice_ns) {
    if (queue.pending == 0) return false;
    unsigned turn = queue.turn++;
    for (int priority = SOFT_PRIORITY_GREATEST; priority <= 0; priority++) {
        for (int d = 0; d < soft_options()->devices; d++) {
            struct soft_context *context = soft_device_of(d)->context;
            if (context->stream_count == 0) continue;
            unsigned begin = turn % context->stream_count;
            if (step_some(context, priority, begin, UINT32_MAX, slice_ns)) return true;
            if (step_some(context, priority, 0, begin, slice_ns)) return true;
        }
    }
    return false;
}

/* A helper joins grids that want help; the first one also begins what nobody waits for. */
static void *help(void *argument) {
    bool lazy = argument != NULL;
    unsigned idle = 0;
    pthread_mutex_lock(&soft_lock);
    for (;;) {
        bool may = lazy ? queue.pending > 0 : queue.wanted;
        if (may && step(SLICE_NS)) {
            idle = 0;
            continue;
        }
        queue.wanted = false;
        if (lazy && idle++ < IDLE_ROUNDS) {
            wait_a_little(&queue.work, LAZY_NS);
        } else {
            if (lazy) queue.lazy_asleep = true;
            pthread_cond_wait(&queue.work, &soft_lock);
            if (lazy) queue.lazy_asleep = false;
            idle = 0;
        }
    }
    return NULL;
}

/* Starts the helpers with the first operation. The caller holds the lock. */
static void start_helpers(void) {
    static int lazy;
    pthread_attr_t attributes;
    unsigned wanted = (unsigned)soft_options()->workers;
    if (queue.helpers > 0 || pthread_attr_init(&attributes) != 0) return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (unsigned i = 0; i < wanted && i < HELPERS_MAX; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, help, i == 0 ? &lazy : NULL) != 0) break;
        queue.helpers++;
    }
    pthread_attr_destroy(&attributes);
}

static void append(struct soft_stream *stream, struct soft_operation *operation) {
    if (stream->last != NULL) {
        stream->last->next = operation;
    } else {
        stream->first = operation;
    }
    stream->last = operation;
    queue.pending++;
}

/* Makes one stream wait for what another has queued so far. */
static CUresult order_after(struct soft_stream *later, struct soft_stream *earlier) {
    if (earlier->first == NULL) return CUDA_SUCCESS;
    struct soft_moment *moment = calloc(1, sizeof *moment);
    struct soft_operation *record = calloc(1, sizeof *record), *wait = calloc(1, sizeof *wait);
    if (moment == NULL || record == NULL || wait == NULL) {
        free(moment);
        free(record);
        free(wait);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    moment->references = 2;
    *record = (struct soft_operation){.kind = SOFT_OPERATION_RECORD, .moment = moment};
    *wait = (struct soft_operation){.kind = SOFT_OPERATION_WAIT, .moment = moment};
    append(earlier, record);
    append(later, wait);
    return CUDA_SUCCESS;
}

/* The legacy stream waits for all blocking ones, and they for it (CUDA Driver API, "Stream
 * synchronization behavior"). */
static CUresult order_legacy(struct soft_stream *stream) {
    struct soft_context *context = stream->context;
    CUresult result = CUDA_SUCCESS;
    if ((stream->flags & CU_STREAM_NON_BLOCKING) != 0) return CUDA_SUCCESS;
    if (stream != context->legacy) return order_after(stream, context->legacy);
    for (struct soft_stream *s = context->streams; s != NULL && result == CUDA_SUCCESS;
         s = s->next) {
        if (s != stream && (s->flags & CU_STREAM_NON_BLOCKING) == 0) {
            result = order_after(stream, s);
        }
    }
    return result;
}

CUresult soft_queue_add(struct soft_stream *stream, struct soft_operation *operation) {
    pthread_mutex_lock(&soft_lock);
    CUresult result = stream->context->error;
    if (result == CUDA_SUCCESS) result = order_legacy(stream);
    if (result == CUDA_SUCCESS) {
        if (operation->launch != NULL) operation->launch->id = ++queue.next_launch_id;
        append(stream, operation);
        start_helpers();
        if (queue.lazy_asleep) pthread_cond_broadcast(&queue.work);
    } else {
        free_operation(operation);
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

struct soft_stream *soft_stream_new(struct soft_context *context, unsigned flags, int priority) {
    struct soft_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) return NULL;
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    stream->next = context->streams;
    context->streams = stream;
    context->stream_count++;
    return stream;
}

CUresult soft_stream_find(CUstream handle, struct soft_context **context,
                          struct soft_stream **stream) {
    CUresult result = soft_context_current(context);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    if (handle == NULL) {
        *stream = (*context)->legacy;
    } else if (soft_handle_is(SOFT_HANDLE_STREAM, handle)) {
        *stream = (struct soft_stream *)handle;
    } else {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

void soft_stream_drop(struct soft_stream *stream) {
    stream->destroyed = true;
    if (stream->first == NULL) free_stream(stream);
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
    struct soft_moment *moment;
};

static bool reached(const struct goal *goal) {
    if (goal->stream != NULL) return goal->stream->first == NULL;
    if (goal->moment != NULL) return goal->moment->reached;
    return context_is_empty(goal->context);
}

static CUresult wait_for(const struct goal *goal) {
    pthread_mutex_lock(&soft_lock);
    while (!reached(goal)) {
        /* The stream waited for comes first: it is often the only one. */
        if (goal->stream != NULL && step_stream(goal->stream, SLICE_NS)) continue;
        if (step(SLICE_NS)) continue;
        queue.waiting++;
        wait_a_little(&queue.done, LAZY_NS);
        queue.waiting--;
    }
    CUresult result = goal->context->error;
    pthread_mutex_unlock(&soft_lock);
    return result;
}

CUresult soft_queue_wait_stream(struct soft_stream *stream) {
    struct goal goal = {.context = stream->context, .stream = stream};
    return wait_for(&goal);
}

CUresult soft_queue_wait_moment(struct soft_context *context, struct soft_moment *moment) {
    struct goal goal = {.context = context, .moment = moment};
    return wait_for(&goal);
}

CUresult soft_queue_wait_context(struct soft_context *context) {
    struct goal goal = {.context = context};
    return wait_for(&goal);
}

static CUresult query(const struct goal *goal) {
    pthread_mutex_lock(&soft_lock);
    uint64_t end = 0;
    while (!reached(goal)) {
        if (end == 0) end = now_ns() + QUERY_NS;
        bool stepped = goal->stream != NULL && step_stream(goal->stream, QUERY_NS);
        if (!stepped) stepped = step(QUERY_NS);
        if (!stepped || now_ns() >= end) break;
    }
    CUresult result = goal->context->error;
    if (result == CUDA_SUCCESS && !reached(goal)) result = CUDA_ERROR_NOT_READY;
    pthread_mutex_unlock(&soft_lock);
    return result;
}

CUresult soft_queue_query_stream(struct soft_stream *stream) {
    struct goal goal = {.context = stream->context, .stream = stream};
    return query(&goal);
}

CUresult soft_queue_query_moment(struct soft_context *context, struct soft_moment *moment) {
    struct goal goal = {.context = context, .moment = moment};
    return query(&goal);
}

void soft_queue_end_context(struct soft_context *context) {
    pthread_mutex_lock(&soft_lock);
    while (context->streams != NULL) {
        struct soft_stream *stream = context->streams;
        soft_handle_remove(SOFT_HANDLE_STREAM, stream);
        context->streams = stream->next;
        free(stream);
    }
    context->stream_count = 0;
    context->legacy = NULL;
    pthread_mutex_unlock(&soft_lock);
    soft_launch_trim();
    soft_worker_end(own_worker());
}

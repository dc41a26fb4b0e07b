/*
 * Reads a context's events, outside of the path of calls, and computes times from them.
 */
#include "trace_state.h"

#include "core/monotonic.h"

#include <sched.h>
#include <stdlib.h>

/* An event that was recorded a moment ago, to end a run, may not be reached yet, although the
 * program has waited for the work itself. One reading waits at most this long in all. */
enum { PATIENCE_NS = 20 * 1000 * 1000 };

static bool read_ms(const struct tol_trace_context *context, CUevent event, uint64_t until_ns,
                    float *ms) {
    const struct tol_driver_table *cu = tol_trace.driver;
    CUresult result = cu->cuEventElapsedTime(ms, context->origin, event);
    /* During a capture, querying an event might break it. */
    while (result == CUDA_ERROR_NOT_READY && atomic_load(&tol_trace.captures) == 0 &&
           tol_now_ns() < until_ns) {
        sched_yield();
        result = cu->cuEventQuery(event);
        if (result == CUDA_SUCCESS) result = cu->cuEventElapsedTime(ms, context->origin, event);
    }
    return result == CUDA_SUCCESS;
}

static void read_operation(const struct tol_trace_context *context, uint64_t until_ns, size_t at) {
    struct tol_trace_operation *operation = &context->operations[at];
    if (operation->is_collected || !atomic_load(&operation->is_queued)) return;
    const struct tol_trace_operation *head = operation->head;
    if (!atomic_load(&head->is_ended)) return;
    if (head != operation) {
        /* It came before, and its event is read. */
        operation->is_collected = head->is_collected;
        operation->end_ms = head->end_ms;
        return;
    }
    operation->is_collected = read_ms(context, context->ends[at], until_ns, &operation->end_ms) &&
                              (!operation->has_begin || read_ms(context, context->begins[at],
                                                                until_ns, &operation->begin_ms));
}

/* Sorted by stream, and within a stream by the end of operations; those that share an event in the
 * order of their calls. */
static int trace_read_compare(const void *left, const void *right) {
    const struct tol_trace_operation *a = *(struct tol_trace_operation *const *)left,
                                     *b = *(struct tol_trace_operation *const *)right;
    if (a->stream != b->stream) return (uintptr_t)a->stream < (uintptr_t)b->stream ? -1 : 1;
    if (a->end_ms != b->end_ms) return a->end_ms < b->end_ms ? -1 : 1;
    if (a->head != b->head) return a->head < b->head ? -1 : 1;
    return (a > b) - (a < b);
}

static double ns_of(const struct tol_trace_context *context, float ms) {
    return context->origin_ns + (double)ms * context->per_ms_ns;
}

static double trace_read_least(double a, double b) {
    return a < b ? a : b;
}

/* An operation followed by its own event, or the head of those that share one. Without an event
 * in front it began when the one before it on its stream had ended, or, if it was called later than
 * that, with its call. */
static void derive_head(const struct tol_trace_context *context,
                        struct tol_trace_operation *operation,
                        const struct tol_trace_operation *before) {
    double call_ns = (double)operation->call_ns, end_ns = ns_of(context, operation->end_ms);
    double before_ns = before != NULL ? ns_of(context, before->end_ms) : 0;
    operation->end_ns = end_ns;
    operation->begin_from = TOL_TRACE_BEGIN_EVENT;
    if (operation->has_begin) {
        operation->begin_ns = ns_of(context, operation->begin_ms);
    } else if (operation->kind == TOL_TRACE_EVENT && operation->works == 0) {
        operation->begin_ns = end_ns; /* an event takes no time */
    } else if (before != NULL && before_ns >= call_ns) {
        operation->begin_from = TOL_TRACE_BEGIN_END;
        operation->begin_ns = before_ns;
    } else {
        operation->begin_from = TOL_TRACE_BEGIN_CALL;
        operation->begin_ns =
            trace_read_least(call_ns, end_ns); /* the clocks are not known that well */
    }
}

/* An operation that shares an event gets its part of the time, and ends the previous one. */
static void derive_shared(struct tol_trace_operation *operation, struct tol_trace_operation *before,
                          double begin_ns, double end_ns) {
    double works = operation->head->works > 0 ? operation->head->works : 1;
    double share_ns = begin_ns + (end_ns - begin_ns) * operation->place / works;
    if (share_ns < (double)operation->call_ns) {
        share_ns = trace_read_least((double)operation->call_ns, end_ns);
    }
    operation->begin_from = TOL_TRACE_BEGIN_SHARED;
    operation->begin_ns = share_ns;
    operation->end_ns = operation->kind == TOL_TRACE_EVENT ? share_ns : end_ns;
    if (before->kind != TOL_TRACE_EVENT) before->end_ns = share_ns;
}

static void trace_read_derive(const struct tol_trace_context *context,
                              struct tol_trace_operation **done, size_t count) {
    struct tol_trace_operation *before = NULL; /* the latest that has another event */
    double begin_ns = 0, end_ns = 0;           /* of the latest head */
    for (size_t i = 0; i < count; i++) {
        if (done[i]->head == done[i]) {
            bool is_same = i > 0 && done[i - 1]->stream == done[i]->stream;
            before = is_same ? done[i - 1] : NULL;
            derive_head(context, done[i], before);
            begin_ns = done[i]->begin_ns;
            end_ns = done[i]->end_ns;
            if (done[i]->kind == TOL_TRACE_EVENT) done[i]->end_ns = begin_ns;
        } else if (i > 0 && done[i - 1]->head == done[i]->head) {
            derive_shared(done[i], done[i - 1], begin_ns, end_ns);
        }
    }
}

void tol_trace_read_context(struct tol_trace_context *context) {
    size_t noted = atomic_load(&context->noted), count = 0;
    tol_trace_runs_end(NULL, context);
    /* During a capture, waiting for an event might break it. */
    if (atomic_load(&tol_trace.captures) == 0) tol_trace_set_rate(context);
    if (noted > context->usable) noted = context->usable;
    struct tol_trace_operation **done = malloc((noted + 1) * sizeof *done);
    if (done == NULL) return; /* their times are not reported */
    uint64_t until_ns = tol_now_ns() + PATIENCE_NS;
    for (size_t i = 0; i < noted; i++) {
        read_operation(context, until_ns, i);
        if (context->operations[i].is_collected) done[count++] = &context->operations[i];
    }
    qsort(done, count, sizeof *done, trace_read_compare);
    trace_read_derive(context, done, count);
    free(done);
}

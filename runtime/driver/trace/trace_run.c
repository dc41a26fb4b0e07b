/*
 * Runs: the operations of a burst that share an event. Each thread has at most one.
 *
 * A run stays open between the thread's calls, so another thread must be able to end it: one that
 * is about to queue other work on the stream, to capture or destroy the stream, or to collect the
 * trace.
 */
#include "trace_state.h"

#include "core/monotonic.h"

#include <sched.h>

static bool trace_run_change(struct tol_trace_run *run, int to) {
    int open = TOL_TRACE_RUN_OPEN;
    return atomic_compare_exchange_strong(&run->state, &open, to);
}

bool tol_trace_run_take(struct tol_trace_run *run) {
    return trace_run_change(run, TOL_TRACE_RUN_TAKEN);
}

bool tol_trace_end_head(struct tol_trace_context *context, struct tol_trace_operation *head) {
    CUevent end = context->ends[head - context->operations];
    if (tol_trace.driver->cuEventRecord(end, head->stream) != CUDA_SUCCESS) return false;
    atomic_store_explicit(&head->is_ended, true, memory_order_release);
    return true;
}

void tol_trace_run_end(struct tol_trace_run *run) {
    if (!trace_run_change(run, TOL_TRACE_RUN_ENDING)) {
        /* Later work on the stream must come after the event, and no new run begins before it. */
        while (atomic_load(&run->state) == TOL_TRACE_RUN_ENDING) sched_yield();
        return;
    }
    run->head->is_late = tol_now_ns() - run->ended_ns > tol_trace.options.gap_ns;
    (void)tol_trace_end_head(atomic_load(&run->context), run->head);
    atomic_store_explicit(&run->state, TOL_TRACE_RUN_NONE, memory_order_release);
}

void tol_trace_runs_end(CUstream stream, const struct tol_trace_context *context) {
    unsigned threads = atomic_load_explicit(&tol_trace.threads, memory_order_relaxed);
    for (unsigned i = 0; i < threads && i < TOL_TRACE_RUNS; i++) {
        struct tol_trace_run *run = &tol_trace.runs[i];
        if (atomic_load_explicit(&run->state, memory_order_acquire) != TOL_TRACE_RUN_OPEN) continue;
        bool is_meant = context != NULL ? context == atomic_load(&run->context)
                                        : stream == atomic_load(&run->stream);
        if (is_meant) tol_trace_run_end(run);
    }
}

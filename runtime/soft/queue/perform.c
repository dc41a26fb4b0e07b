/*
 * Executes operations: a slice of a grid, a copy, a host function.
 */
#include "perform.h"

#include "access_tell.h"
#include "state/device_memory.h"
#include "state/graph_memory.h"
#include "grid/grid.h"
#include "machine/prior.h"
#include "state/memory_pool.h"
#include "base/options.h"
#include "stream_order.h"
#include "task_fault.h"
#include "trace_task.h"
#include "state/thread_state.h"
#include "usage.h"

/* A grid runs for FIRST_SLICE_NS before helpers are called. */
enum { FIRST_SLICE_NS = 50 * 1000 };

/* A kernel has failed: nothing else runs in its context, and every later call returns the error,
 * unless the user wants the findings of what follows too. Operations that other threads execute end
 * by themselves. */
static void fail_context(struct soft_context *context, CUresult error) {
    if (soft_options()->check_continue) return;
    if (context->error == CUDA_SUCCESS) context->error = error;
}

/* Runs a slice of a grid. The lock is held on entry and on return, and not in between. */
static void work_on_launch(struct soft_stream *stream, struct soft_operation *operation,
                           uint64_t slice_ns) {
    struct soft_launch *launch = operation->launch;
    bool first = !operation->begun;
    operation->begun = true;
    if (first) {
        soft_usage_launch(operation->task.is.kernel.function);
        soft_prior_begin(launch);
        launch->is_told = soft_access_begin(launch);
    }
    operation->workers++;
    pthread_mutex_unlock(&soft_lock);
    bool over = soft_launch_work(launch, &soft_thread()->worker,
                                 first && slice_ns > FIRST_SLICE_NS ? FIRST_SLICE_NS : slice_ns);
    pthread_mutex_lock(&soft_lock);
    operation->workers--;
    if (!over && first && atomic_load(&launch->next) < launch->clusters) soft_queue_want_help();
    /* The last thread to leave ends it. A parked CTA belongs to the launch, not to a thread, so
     * "over" may have been false for the thread that ran its last part. */
    over = atomic_load(&launch->failed) || atomic_load(&launch->ended) == launch->clusters;
    if (!over || operation->workers > 0) return;
    soft_prior_end(launch);
    struct soft_context *context = stream->context;
    if (launch->is_told) {
        operation->workers++;
        pthread_mutex_unlock(&soft_lock);
        soft_access_end(operation);
        pthread_mutex_lock(&soft_lock);
        operation->workers--;
    }
    if (atomic_load(&launch->failed)) {
        /* Reported before the error becomes visible: a thread that gets the code finds the
         * report. */
        operation->workers++;
        pthread_mutex_unlock(&soft_lock);
        soft_report_print(&launch->report);
        pthread_mutex_lock(&soft_lock);
        operation->workers--;
        fail_context(context, (CUresult)launch->report.result);
    }
    soft_queue_pop(stream);
}

/* Copies and fills. The lock is held on entry and on return, and not in between. */
static void do_alone(struct soft_stream *stream, struct soft_operation *operation) {
    const struct soft_task *task = &operation->task;
    operation->workers = 1;
    pthread_mutex_unlock(&soft_lock);
    bool ok = task->kind == SOFT_TASK_COPY ? soft_copy_do(&task->is.copy, operation->staged)
                                           : soft_fill_do(&task->is.fill);
    /* The range was live when the operation was queued, but has been freed since. */
    if (!ok) soft_task_fault_report(task, 0, &stream->context->reach);
    pthread_mutex_lock(&soft_lock);
    if (!ok) fail_context(stream->context, CUDA_ERROR_ILLEGAL_ADDRESS);
    soft_queue_pop(stream);
}

static bool do_values(struct soft_stream *stream, struct soft_operation *operation) {
    const struct soft_task *task = &operation->task;
    bool ok = true, moved = false;
    while (ok && operation->done < task->is.values.count &&
           soft_stream_value_do(&task->is.values.items[operation->done], &ok)) {
        operation->done++;
        moved = true;
    }
    if (!ok) {
        soft_task_fault_report(task, operation->done - 1, &stream->context->reach);
        fail_context(stream->context, CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    bool over = !ok || operation->done == task->is.values.count;
    if (over) soft_queue_pop(stream);
    return moved || over;
}

/* Host functions run on a separate thread. In a context that has failed they are not called; stream
 * callbacks are, with the error. */
static bool do_function(struct soft_stream *stream, struct soft_operation *operation) {
    const struct soft_task *task = &operation->task;
    CUresult error = stream->context->error;
    if (operation->workers > 0) return false;
    if (error != CUDA_SUCCESS && task->kind == SOFT_TASK_HOST) {
        soft_queue_pop(stream);
        return true;
    }
    if (!soft_thread()->in_host_function) {
        soft_queue_want_caller();
        return false;
    }
    operation->workers = 1;
    soft_order_know_stream(stream);
    pthread_mutex_unlock(&soft_lock);
    if (task->kind == SOFT_TASK_HOST) {
        task->is.host.function(task->is.host.data);
    } else {
        task->is.callback.function(task->is.callback.stream, error, task->is.callback.data);
    }
    pthread_mutex_lock(&soft_lock);
    soft_queue_pop(stream);
    return true;
}

static bool perform_is_free(const struct soft_operation *operation) {
    return operation->kind == SOFT_OPERATION_TASK && operation->task.kind == SOFT_TASK_FREE;
}

/* Allocates or frees. Memory is freed in a failed context as well. */
static bool do_memory(struct soft_stream *stream, struct soft_operation *operation) {
    bool ok = true;
    if (operation->workers > 0) return false;
    operation->workers = 1;
    if (perform_is_free(operation))
        soft_order_done(stream, operation); /* while it is known what it is */
    pthread_mutex_unlock(&soft_lock);
    if (perform_is_free(operation)) {
        soft_memory_free(operation->task.is.address);
    } else {
        ok = soft_graph_memory_begin(operation->task.is.address);
    }
    pthread_mutex_lock(&soft_lock);
    if (!ok) fail_context(stream->context, CUDA_ERROR_OUT_OF_MEMORY);
    soft_queue_pop(stream);
    return true;
}

static bool do_launch(struct soft_stream *stream, struct soft_operation *operation,
                      uint64_t slice_ns) {
    struct soft_launch *launch = operation->launch;
    bool more = operation->workers == 0 ||
                (operation->workers < soft_options()->workers &&
                 atomic_load(&launch->next) < launch->clusters && !atomic_load(&launch->failed));
    if (more) work_on_launch(stream, operation, slice_ns);
    return more;
}

static bool do_task(struct soft_stream *stream, struct soft_operation *operation,
                    uint64_t slice_ns) {
    switch (operation->task.kind) {
    case SOFT_TASK_KERNEL:
        return do_launch(stream, operation, slice_ns);
    case SOFT_TASK_COPY:
    case SOFT_TASK_FILL:
        if (operation->workers > 0) return false;
        do_alone(stream, operation);
        return true;
    case SOFT_TASK_HOST:
    case SOFT_TASK_CALLBACK:
        return do_function(stream, operation);
    case SOFT_TASK_VALUES:
        return do_values(stream, operation);
    case SOFT_TASK_ALLOC:
    case SOFT_TASK_FREE:
        return do_memory(stream, operation);
    default:
        soft_queue_pop(stream);
        return true;
    }
}

bool soft_perform(struct soft_stream *stream, uint64_t slice_ns) {
    struct soft_operation *operation = stream->first;
    if (operation == NULL) return false;
    if (stream->context->error == CUDA_SUCCESS) soft_trace_begin(operation);
    if (soft_operation_calls(operation)) return do_function(stream, operation);
    if (perform_is_free(operation)) return do_memory(stream, operation);
    if (stream->context->error != CUDA_SUCCESS) {
        if (operation->workers > 0) return false;
        soft_queue_pop(stream);
        return true;
    }
    switch (operation->kind) {
    case SOFT_OPERATION_TASK:
        return do_task(stream, operation, slice_ns);
    case SOFT_OPERATION_WAIT:
        if (!operation->point->reached) return false;
        break;
    case SOFT_OPERATION_FAULT:
        soft_fault_strike(stream->context, &operation->fault);
        break;
    default:
        break;
    }
    soft_queue_pop(stream);
    return true;
}

/*
 * Submits tasks: to a queue, or to the graph that the stream is captured to.
 */
#include "submit.h"

#include "capture.h"

/* A copy of a task's source, if the source may change as soon as the call returns. It may be large,
 * so the lock is released meanwhile. */
static bool submit_stage(struct soft_operation *operation) {
    pthread_mutex_unlock(&soft_lock);
    operation->staged = soft_copy_stage(&operation->task.is.copy);
    pthread_mutex_lock(&soft_lock);
    return operation->staged != NULL;
}

static CUresult queue_task(struct soft_stream *stream, struct soft_task *task, bool stages) {
    struct soft_operation *operation = soft_operation_new(task);
    CUresult result = operation != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (operation != NULL && stages && !submit_stage(operation)) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) result = soft_queue_add_all(stream, operation);
    if (result != CUDA_SUCCESS && operation != NULL) soft_operation_free(operation);
    return result;
}

/* Makes a node of a task. */
static CUresult capture_task(struct soft_stream *stream, struct soft_task *task) {
    struct soft_node_content content;
    if (task->kind == SOFT_TASK_CALLBACK) {
        soft_capture_break(stream);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    CUresult result = soft_content_of_task(task, stream->context, &content);
    if (result != CUDA_SUCCESS) return result;
    result = soft_capture_add(stream, &content);
    if (result != CUDA_SUCCESS) soft_content_clear(&content);
    return result;
}

/* A fault may end a copy early. */
static void submit_cut(struct soft_copy *copy) {
    copy->lost = soft_fault_lost(copy->width * copy->height * copy->depth);
}

CUresult soft_submit_locked(struct soft_stream *stream, struct soft_task *task, bool stages) {
    bool capturing = false;
    CUresult result = soft_capture_check(stream, &capturing);
    if (task->kind == SOFT_TASK_COPY) submit_cut(&task->is.copy);
    if (result == CUDA_SUCCESS) {
        result = capturing ? capture_task(stream, task) : queue_task(stream, task, stages);
    }
    soft_task_clear(task);
    return result;
}

CUresult soft_submit(struct soft_stream *stream, struct soft_task *task, bool stages) {
    pthread_mutex_lock(&soft_lock);
    CUresult result = soft_submit_locked(stream, task, stages);
    pthread_mutex_unlock(&soft_lock);
    return result;
}

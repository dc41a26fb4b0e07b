/*
 * Submits tasks: to a queue, or to the graph that the stream is captured to.
 */
#include "submit.h"

#include "capture.h"

/* A copy of a task's source, if the source may change as soon as the call returns. */
static bool submit_stage(struct soft_operation *operation) {
    operation->staged = soft_copy_stage(&operation->task.is.copy);
    return operation->staged != NULL;
}

static CUresult queue_task(struct soft_stream *stream, struct soft_task *task, bool stages) {
    struct soft_operation *operation = soft_operation_new(task);
    if (operation == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    if (stages && !submit_stage(operation)) {
        soft_operation_free(operation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return soft_queue_add(stream, operation);
}

/* Makes a node of a task. The stream may have left its capture meanwhile, so it is checked
 * again. */
static CUresult capture_task(struct soft_stream *stream, struct soft_task *task) {
    struct soft_node_content content;
    bool capturing = false;
    if (task->kind == SOFT_TASK_CALLBACK) {
        pthread_mutex_lock(&soft_lock);
        soft_capture_break(stream);
        pthread_mutex_unlock(&soft_lock);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    CUresult result = soft_content_of_task(task, stream->context, &content);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    result = soft_capture_check(stream, &capturing);
    if (result == CUDA_SUCCESS && !capturing) result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (result == CUDA_SUCCESS) result = soft_capture_add(stream, &content);
    if (result != CUDA_SUCCESS) soft_content_clear(&content);
    pthread_mutex_unlock(&soft_lock);
    return result;
}

/* A fault may end a copy early. */
static void submit_cut(struct soft_copy *copy) {
    copy->lost = soft_fault_lost(copy->width * copy->height * copy->depth);
}

CUresult soft_submit(struct soft_stream *stream, struct soft_task *task, bool stages) {
    bool capturing = false;
    pthread_mutex_lock(&soft_lock);
    CUresult result = soft_capture_check(stream, &capturing);
    pthread_mutex_unlock(&soft_lock);
    if (task->kind == SOFT_TASK_COPY) submit_cut(&task->is.copy);
    if (result == CUDA_SUCCESS) {
        result = capturing ? capture_task(stream, task) : queue_task(stream, task, stages);
    }
    soft_task_clear(task);
    return result;
}

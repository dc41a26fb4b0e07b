/*
 * Checks and submits copies and fills.
 *
 * Ranges are checked when an operation is queued, as a driver does. If the program frees one before
 * the operation runs, the operation fails and ends the context.
 */
#include "copy_call.h"

#include "graph/capture.h"
#include "graph/submit.h"

/* Whether a device may use the memory, so that the call need not wait for its use. */
static bool is_pinned(const struct soft_copy_end *end, const struct soft_copy *copy) {
    return soft_space_is_live(end->address, copy->width, SOFT_ACCESS_READ);
}

CUresult soft_copy_submit(CUstream handle, const struct soft_copy *copy, bool wait) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (copy->width == 0 || copy->height == 0 || copy->depth == 0) return CUDA_SUCCESS;
    if (!soft_copy_is_sound(copy)) return CUDA_ERROR_INVALID_VALUE;
    bool stages = !copy->from.in_space && !is_pinned(&copy->from, copy);
    bool waits = !copy->to.in_space && !is_pinned(&copy->to, copy);
    struct soft_task task = {.kind = SOFT_TASK_COPY, .is.copy = *copy};
    if (wait) {
        /* A call that waits cannot be captured. */
        result = soft_capture_allows_stream(stream);
        if (result != CUDA_SUCCESS) return result;
        stages = false;
        waits = !copy->to.in_space || !copy->from.in_space;
    }
    result = soft_submit(stream, &task, stages);
    /* A captured copy cannot be waited for. */
    return result == CUDA_SUCCESS && waits ? soft_queue_wait_stream(stream) : result;
}

CUresult soft_fill_submit(CUstream handle, const struct soft_fill_rows *fill) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (fill->width == 0 || fill->height == 0) return CUDA_SUCCESS;
    if (!soft_fill_is_sound(fill)) return CUDA_ERROR_INVALID_VALUE;
    struct soft_task task = {.kind = SOFT_TASK_FILL, .is.fill = *fill};
    return soft_submit(stream, &task, false);
}

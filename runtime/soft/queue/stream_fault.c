/*
 * Putting faults into streams.
 */
#include "stream_fault.h"

#include "state/contexts.h"
#include "queue.h"

#include <stdlib.h>

/* A fault after the queued work of a stream. */
static struct soft_operation *new_fault(const struct soft_fault_rule *rule, CUresult code,
                                        uint64_t chance) {
    struct soft_operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL) return NULL;
    operation->kind = SOFT_OPERATION_FAULT;
    operation->fault = (struct soft_stream_fault){.rule = rule, .code = code, .chance = chance};
    return operation;
}

CUresult soft_stream_fault_ask(struct soft_stream *stream) {
    struct soft_call_fault *fault = soft_fault_now();
    if (fault == NULL || fault->stream != 0) return CUDA_SUCCESS;
    pthread_mutex_lock(&soft_lock);
    fault->context = stream->context;
    fault->stream = stream->id;
    bool captures = stream->capture != NULL;
    pthread_mutex_unlock(&soft_lock);
    CUresult result = soft_fault_ask_stream(fault);
    if (result != CUDA_SUCCESS || fault->flip == NULL || captures) return result;
    struct soft_operation *operation =
        new_fault(fault->flip, CUDA_SUCCESS, soft_fault_chance(fault));
    return operation != NULL ? soft_queue_add(stream, operation) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The stream that gets an error: the call's own while it exists, else the default one; none if that
 * is being captured. The caller holds soft_lock. */
static struct soft_stream *stream_fault_stream_of(const struct soft_call_fault *fault) {
    struct soft_context *context = soft_fault_context(fault);
    if (context == NULL || !soft_context_is(context)) return NULL;
    struct soft_stream *stream = context->streams;
    while (stream != NULL && (stream->id != fault->stream || stream->destroyed)) {
        stream = stream->next;
    }
    if (stream == NULL) stream = context->legacy;
    return stream->capture == NULL ? stream : NULL;
}

void soft_stream_fault_end(CUresult result) {
    struct soft_call_fault *fault = soft_fault_now();
    if (fault == NULL) return;
    fault->active = false;
    if (result != CUDA_SUCCESS || fault->later == CUDA_SUCCESS) return;
    struct soft_operation *operation = new_fault(fault->later_rule, fault->later, 0);
    if (operation == NULL) return;
    pthread_mutex_lock(&soft_lock);
    struct soft_stream *stream = stream_fault_stream_of(fault);
    if (stream == NULL || soft_queue_add_all(stream, operation) != CUDA_SUCCESS) {
        soft_operation_free(operation);
    }
    pthread_mutex_unlock(&soft_lock);
}

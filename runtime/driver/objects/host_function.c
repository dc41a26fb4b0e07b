/*
 * Calls of host functions. Their results are in core/outcome.h.
 */
#include "tollens/host_function.h"

#include "core/check.h"
#include "capture_state.h"
#include "core/outcome.h"
#include "outcome_relay.h"

#include <stdio.h>
#include <stdlib.h>

static void host_function_run(struct tol_host_call *call) {
    char reason[TOL_REASON_BYTES] = "", message[TOL_OUTCOME_BYTES];
    /* The driver may run it on a waiting thread; the call must not change that thread's context. */
    uint64_t bound = tol_bound_context;
    tol_bound_context = 0;
    tol_inside_host_function = true;
    tol_status status = call->function(call->user, reason, sizeof reason);
    tol_inside_host_function = false;
    tol_bound_context = bound;
    if (status == TOL_OK) return;
    reason[sizeof reason - 1] = '\0';
    char where[32] = "a graph";
    if (call->outcome->stream_number > 0) {
        snprintf(where, sizeof where, "stream %u", call->outcome->stream_number);
    }
    snprintf(message, sizeof message, "a host function on %s failed%s%s", where,
             reason[0] != '\0' ? ": " : "", reason);
    tol_outcome_put(call->outcome, status, message);
}

/* What the driver calls. */
static void CUDAAPI on_driver_thread(void *user) {
    struct tol_host_call *call = user;
    if (call->from != NULL) {
        char message[TOL_OUTCOME_BYTES];
        tol_status status = tol_outcome_take(call->from, message, sizeof message);
        if (status != TOL_OK) tol_outcome_put(call->outcome, status, message);
    } else {
        host_function_run(call);
    }
    if (!call->is_kept) tol_outcome_unlist(call);
}

/* The stream's outcome, made when it is first needed. */
static tol_status outcome_of(struct tol_stream *stream, struct tol_outcome **result) {
    struct tol_context *context = stream->context;
    struct tol_outcome *outcome = atomic_load_explicit(&stream->outcome, memory_order_acquire);
    if (outcome == NULL) {
        pthread_mutex_lock(&context->lock);
        outcome = atomic_load_explicit(&stream->outcome, memory_order_relaxed);
        if (outcome == NULL) {
            outcome = tol_outcome_create(stream->number);
            atomic_store_explicit(&stream->outcome, outcome, memory_order_release);
        }
        pthread_mutex_unlock(&context->lock);
    }
    *result = outcome;
    return outcome != NULL ? TOL_OK
                           : tol_fail(__FILE__, __LINE__, TOL_OUT_OF_HOST_MEMORY,
                                      "no host memory for the results of host functions");
}

static tol_status host_function_queue(struct tol_stream *stream,
                                      const struct tol_host_call *wanted) {
    tol_status status = TOL_OK;
    struct tol_host_call *call = malloc(sizeof *call);
    TOL_CHECK(call != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a call of a host function");
    *call = *wanted;
    tol_outcome_list(call);
    CUresult result = stream->functions->cuLaunchHostFunc(stream->handle, on_driver_thread, call);
    if (result != CUDA_SUCCESS) {
        tol_outcome_unlist(call);
        status =
            tol_context_fail(stream->context, __FILE__, __LINE__, "cuLaunchHostFunc", (int)result,
                             "queueing a host function on stream %u", stream->number);
    }
out:
    return status;
}

tol_status tol_stream_call(struct tol_stream *stream, tol_host_function function, void *user) {
    tol_status status = TOL_OK;
    struct tol_host_call call = {.function = function, .user = user};
    TOL_CHECK(stream != NULL && function != NULL, TOL_INVALID_ARGUMENT,
              "tol_stream_call: an argument is NULL");
    TOL_TRY(tol_context_enter(stream->context));
    struct tol_capture *capture = atomic_load_explicit(&stream->capture, memory_order_relaxed);
    call.is_kept = capture != NULL;
    if (capture != NULL) {
        call.outcome = capture->outcome;
    } else {
        TOL_TRY(outcome_of(stream, &call.outcome));
    }
    status = host_function_queue(stream, &call);
out:
    return status;
}

tol_status tol_outcome_relay(struct tol_stream *stream, struct tol_outcome *from) {
    struct tol_host_call call = {.from = from};
    tol_status status = outcome_of(stream, &call.outcome);
    return status == TOL_OK ? host_function_queue(stream, &call) : status;
}

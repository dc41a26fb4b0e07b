/*
 * Calls of host functions, and what became of them.
 *
 * An outcome belongs to a stream or to a captured graph. Its calls are listed, so that those that
 * never come to run, because the context is lost, are freed with it.
 */
#include "host_function.h"

#include "check.h"
#include "handles.h"

#include <stdio.h>
#include <stdlib.h>

enum { REASON_BYTES = 256 };

_Thread_local bool tol_inside_host_function;

struct tol_host_call {
    tol_host_function function;
    void *user;
    struct tol_outcome *outcome; /* where it is listed, and where a failure goes */
    struct tol_outcome *from;    /* of a relay: what is handed on */
    bool is_kept;                /* it is a graph's, and may run again */
    struct tol_host_call *next, *previous;
};

struct tol_outcome {
    pthread_mutex_t lock; /* guards all below */
    struct tol_host_call *calls;
    unsigned stream_number; /* 0: of a graph */
    tol_status status;
    char message[REASON_BYTES + 128];
};

struct tol_outcome *tol_outcome_create(unsigned stream_number) {
    struct tol_outcome *outcome = calloc(1, sizeof *outcome);
    if (outcome == NULL) return NULL;
    pthread_mutex_init(&outcome->lock, NULL);
    outcome->stream_number = stream_number;
    return outcome;
}

void tol_outcome_destroy(struct tol_outcome *outcome) {
    if (outcome == NULL) return;
    while (outcome->calls != NULL) {
        struct tol_host_call *call = outcome->calls;
        outcome->calls = call->next;
        free(call);
    }
    pthread_mutex_destroy(&outcome->lock);
    free(outcome);
}

static tol_status take(struct tol_outcome *outcome, char *message, size_t bytes) {
    pthread_mutex_lock(&outcome->lock);
    tol_status status = outcome->status;
    if (status != TOL_OK) snprintf(message, bytes, "%s", outcome->message);
    outcome->status = TOL_OK;
    pthread_mutex_unlock(&outcome->lock);
    return status;
}

static void put(struct tol_outcome *outcome, tol_status status, const char *message) {
    pthread_mutex_lock(&outcome->lock);
    if (outcome->status == TOL_OK) {
        outcome->status = status;
        snprintf(outcome->message, sizeof outcome->message, "%s", message);
    }
    pthread_mutex_unlock(&outcome->lock);
}

tol_status tol_outcome_deliver(struct tol_outcome *outcome) {
    char message[sizeof outcome->message];
    tol_status status = take(outcome, message, sizeof message);
    return status == TOL_OK ? TOL_OK : tol_fail(__FILE__, __LINE__, status, "%s", message);
}

bool tol_outcome_has_calls(struct tol_outcome *outcome) {
    pthread_mutex_lock(&outcome->lock);
    bool has = outcome->calls != NULL;
    pthread_mutex_unlock(&outcome->lock);
    return has;
}

static void list(struct tol_host_call *call) {
    struct tol_outcome *outcome = call->outcome;
    pthread_mutex_lock(&outcome->lock);
    call->next = outcome->calls;
    if (call->next != NULL) call->next->previous = call;
    outcome->calls = call;
    pthread_mutex_unlock(&outcome->lock);
}

static void unlist(struct tol_host_call *call) {
    struct tol_outcome *outcome = call->outcome;
    pthread_mutex_lock(&outcome->lock);
    if (call->next != NULL) call->next->previous = call->previous;
    if (call->previous != NULL) {
        call->previous->next = call->next;
    } else {
        outcome->calls = call->next;
    }
    pthread_mutex_unlock(&outcome->lock);
    free(call);
}

static void run(struct tol_host_call *call) {
    char reason[REASON_BYTES] = "", message[sizeof call->outcome->message];
    /* A driver may run it on a thread that waits, whose context is then no business of the call. */
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
    put(call->outcome, status, message);
}

/* What the driver calls. */
static void CUDAAPI on_driver_thread(void *user) {
    struct tol_host_call *call = user;
    if (call->from != NULL) {
        char message[sizeof call->outcome->message];
        tol_status status = take(call->from, message, sizeof message);
        if (status != TOL_OK) put(call->outcome, status, message);
    } else {
        run(call);
    }
    if (!call->is_kept) unlist(call);
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

static tol_status queue(struct tol_stream *stream, const struct tol_host_call *wanted) {
    tol_status status = TOL_OK;
    struct tol_host_call *call = malloc(sizeof *call);
    TOL_CHECK(call != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a call of a host function");
    *call = *wanted;
    list(call);
    CUresult result = stream->functions->cuLaunchHostFunc(stream->handle, on_driver_thread, call);
    if (result != CUDA_SUCCESS) {
        unlist(call);
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
    status = queue(stream, &call);
out:
    return status;
}

tol_status tol_outcome_relay(struct tol_stream *stream, struct tol_outcome *from) {
    struct tol_host_call call = {.from = from};
    tol_status status = outcome_of(stream, &call.outcome);
    return status == TOL_OK ? queue(stream, &call) : status;
}

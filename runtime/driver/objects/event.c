/*
 * Events: record, wait, measure.
 */
#include "tollens/event.h"

#include "core/check.h"
#include "core/nvtx.h"
#include "core/deadline.h"
#include "capture_state.h"
#include "core/event_state.h"

#include <stdlib.h>

tol_status tol_event_create(struct tol_context *context, bool timed, struct tol_event **result) {
    tol_status status = TOL_OK;
    struct tol_event *event = NULL;
    TOL_CHECK(context != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_event_create: an argument is NULL");
    TOL_TRY(tol_context_enter(context));
    event = calloc(1, sizeof *event);
    TOL_CHECK(event != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for an event of %zu bytes",
              sizeof *event);
    TOL_CONTEXT_CU(context, cuEventCreate,
                   (&event->handle, timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING),
                   "creating an event");
    event->context = context;
    event->timed = timed;
    tol_context_retain(context);
    *result = event;
    event = NULL;
out:
    free(event);
    return status;
}

void tol_event_destroy(struct tol_event *event) {
    if (event == NULL) return;
    struct tol_context *context = event->context;
    if (tol_bound_context != context->id) (void)tol_context_bind_slow(context);
    context->functions->cuEventDestroy_v2(event->handle);
    free(event);
    tol_context_destroy(context);
}

tol_status tol_event_record(struct tol_event *event, struct tol_stream *stream) {
    tol_status status = TOL_OK;
    TOL_CHECK(event != NULL && stream != NULL, TOL_INVALID_ARGUMENT,
              "tol_event_record: an argument is NULL");
    TOL_CHECK(event->context == stream->context, TOL_WRONG_CONTEXT,
              "the event belongs to device %d, the stream to device %d",
              event->context->device.ordinal, stream->context->device.ordinal);
    TOL_TRY(tol_context_enter(event->context));
    TOL_CONTEXT_CU(event->context, cuEventRecord, (event->handle, stream->handle),
                   "recording an event on stream %u", stream->number);
    const struct tol_capture *capture =
        atomic_load_explicit(&stream->capture, memory_order_relaxed);
    atomic_store_explicit(&event->capture_id, capture != NULL ? capture->id : 0,
                          memory_order_relaxed);
out:
    return status;
}

tol_status tol_stream_wait_event(struct tol_stream *stream, struct tol_event *event) {
    tol_status status = TOL_OK;
    TOL_CHECK(event != NULL && stream != NULL, TOL_INVALID_ARGUMENT,
              "tol_stream_wait_event: an argument is NULL");
    TOL_CHECK(event->context == stream->context, TOL_WRONG_CONTEXT,
              "the event belongs to device %d, the stream to device %d",
              event->context->device.ordinal, stream->context->device.ordinal);
    TOL_TRY(tol_context_enter(event->context));
    TOL_CONTEXT_CU(event->context, cuStreamWaitEvent, (stream->handle, event->handle, 0),
                   "making stream %u wait for an event", stream->number);
    uint64_t id = atomic_load_explicit(&event->capture_id, memory_order_relaxed);
    if (TOL_UNLIKELY(id != 0)) tol_capture_join(stream, id);
out:
    return status;
}

tol_status tol_event_query(struct tol_event *event) {
    tol_status status = TOL_OK;
    TOL_CHECK(event != NULL, TOL_INVALID_ARGUMENT, "tol_event_query: event is NULL");
    TOL_TRY(tol_context_enter(event->context));
    CUresult result = event->context->functions->cuEventQuery(event->handle);
    if (result == CUDA_ERROR_NOT_READY) return TOL_NOT_READY;
    if (result != CUDA_SUCCESS) {
        status = tol_context_fail(event->context, __FILE__, __LINE__, "cuEventQuery", (int)result,
                                  "querying an event");
    }
out:
    return status;
}

tol_status tol_event_synchronize(struct tol_event *event) {
    return tol_event_synchronize_for(event, TOL_DEADLINE_MS);
}

tol_status tol_event_synchronize_for(struct tol_event *event, unsigned deadline_ms) {
    TOL_RANGE("tol_event_synchronize", 0);
    tol_status status = TOL_OK;
    TOL_CHECK(event != NULL, TOL_INVALID_ARGUMENT, "tol_event_synchronize: event is NULL");
    TOL_TRY(tol_context_enter(event->context));
    struct tol_deadline deadline = tol_deadline_after(deadline_ms);
    status = tol_deadline_wait_event(event, &deadline);
out:
    return status;
}

tol_status tol_event_elapsed_ns(struct tol_event *begin, struct tol_event *end, double *ns) {
    tol_status status = TOL_OK;
    float milliseconds = 0;
    TOL_CHECK(begin != NULL && end != NULL && ns != NULL, TOL_INVALID_ARGUMENT,
              "tol_event_elapsed_ns: an argument is NULL");
    TOL_CHECK(begin->context == end->context, TOL_WRONG_CONTEXT,
              "the events belong to device %d and device %d", begin->context->device.ordinal,
              end->context->device.ordinal);
    TOL_CHECK(begin->timed && end->timed, TOL_INVALID_ARGUMENT,
              "both events must be created as timed");
    TOL_TRY(tol_context_enter(begin->context));
    TOL_CONTEXT_CU(begin->context, cuEventElapsedTime, (&milliseconds, begin->handle, end->handle),
                   "getting the time between two events");
    *ns = (double)milliseconds * 1e6;
out:
    return status;
}

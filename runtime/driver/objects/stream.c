/*
 * Streams: the driver's own, listed in their context so that the context can wait for all of them.
 */
#include "tollens/stream.h"

#include "core/check.h"
#include "core/nvtx.h"
#include "core/deadline.h"
#include "core/stream_state.h"

#include <stdlib.h>

tol_status tol_stream_create(struct tol_context *context, const struct tol_stream_options *options,
                             struct tol_stream **result) {
    tol_status status = TOL_OK;
    struct tol_stream *stream = NULL;
    static const struct tol_stream_options normal = {0};
    if (options == NULL) options = &normal;

    TOL_CHECK(context != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_stream_create: an argument is NULL");
    TOL_TRY(tol_context_enter(context));
    stream = calloc(1, sizeof *stream);
    TOL_CHECK(stream != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a stream of %zu bytes",
              sizeof *stream);
    TOL_CONTEXT_CU(context, cuStreamCreateWithPriority,
                   (&stream->handle, options->blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING,
                    options->priority),
                   "creating a stream of priority %d", options->priority);
    stream->functions = context->functions;
    stream->context = context;
    stream->blocking = options->blocking;
    if (stream->blocking) atomic_fetch_add(&context->blocking_streams, 1);
    tol_context_retain(context);
    tol_context_add_stream(context, stream);
    *result = stream;
    stream = NULL;
out:
    free(stream);
    return status;
}

/* Whether the legacy default stream waits for it. Querying the flags of a captured stream would
 * break the capture, and so would a query of the legacy stream. So a captured stream counts as one
 * that it does not wait for. */
static tol_status stream_is_blocking(struct tol_context *context, CUstream handle, bool *result) {
    tol_status status = TOL_OK;
    CUstreamCaptureStatus captured = CU_STREAM_CAPTURE_STATUS_NONE;
    unsigned flags = CU_STREAM_NON_BLOCKING;
    TOL_CONTEXT_CU(context, cuStreamIsCapturing, (handle, &captured),
                   "querying whether a stream to adopt is captured");
    if (captured == CU_STREAM_CAPTURE_STATUS_NONE) {
        TOL_CONTEXT_CU(context, cuStreamGetFlags, (handle, &flags),
                       "getting the flags of a stream to adopt");
    }
    *result = (flags & CU_STREAM_NON_BLOCKING) == 0;
out:
    return status;
}

tol_status tol_stream_adopt(struct tol_context *context, CUstream handle,
                            struct tol_stream **result) {
    tol_status status = TOL_OK;
    struct tol_stream *stream = NULL;
    bool blocks = false;
    TOL_CHECK(context != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_stream_adopt: an argument is NULL");
    TOL_TRY(tol_context_enter(context));
    TOL_CHECK(handle == NULL || tol_driver_has(context->driver, TOL_FEATURE_GRAPH), TOL_UNSUPPORTED,
              "the driver has no stream captures");
    if (handle != NULL) TOL_TRY(stream_is_blocking(context, handle, &blocks));
    stream = calloc(1, sizeof *stream);
    TOL_CHECK(stream != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a stream of %zu bytes",
              sizeof *stream);
    stream->handle = handle;
    stream->functions = context->functions;
    stream->context = context;
    stream->adopted = true;
    stream->blocking = blocks;
    if (stream->blocking) atomic_fetch_add(&context->blocking_streams, 1);
    tol_context_retain(context);
    tol_context_add_stream(context, stream);
    *result = stream;
    stream = NULL;
out:
    free(stream);
    return status;
}

void tol_stream_destroy(struct tol_stream *stream) {
    if (stream == NULL) return;
    struct tol_context *context = stream->context;
    tol_context_release_stream(stream);
    tol_context_destroy(context);
}

tol_status tol_stream_query(struct tol_stream *stream) {
    tol_status status = TOL_OK;
    TOL_CHECK(stream != NULL, TOL_INVALID_ARGUMENT, "tol_stream_query: stream is NULL");
    TOL_TRY(tol_context_enter(stream->context));
    CUresult result = stream->context->functions->cuStreamQuery(stream->handle);
    if (result == CUDA_ERROR_NOT_READY) return TOL_NOT_READY;
    if (result != CUDA_SUCCESS) {
        status = tol_context_fail(stream->context, __FILE__, __LINE__, "cuStreamQuery", (int)result,
                                  "querying stream %u", stream->number);
    }
out:
    return status;
}

tol_status tol_stream_synchronize(struct tol_stream *stream) {
    return tol_stream_synchronize_for(stream, TOL_DEADLINE_MS);
}

tol_status tol_stream_synchronize_for(struct tol_stream *stream, unsigned deadline_ms) {
    TOL_RANGE("tol_stream_synchronize", 0);
    tol_status status = TOL_OK;
    TOL_CHECK(stream != NULL, TOL_INVALID_ARGUMENT, "tol_stream_synchronize: stream is NULL");
    TOL_TRY(tol_context_enter(stream->context));
    struct tol_deadline deadline = tol_deadline_after(deadline_ms);
    status = tol_deadline_wait_stream(stream, &deadline);
out:
    return status;
}

tol_status tol_stream_properties(struct tol_stream *stream, int *priority, bool *non_blocking) {
    tol_status status = TOL_OK;
    int value = 0;
    unsigned flags = 0;
    TOL_CHECK(stream != NULL, TOL_INVALID_ARGUMENT, "tol_stream_properties: stream is NULL");
    TOL_TRY(tol_context_enter(stream->context));
    TOL_CONTEXT_CU(stream->context, cuStreamGetPriority, (stream->handle, &value),
                   "getting the priority of stream %u", stream->number);
    TOL_CONTEXT_CU(stream->context, cuStreamGetFlags, (stream->handle, &flags),
                   "getting the flags of stream %u", stream->number);
    if (priority != NULL) *priority = value;
    if (non_blocking != NULL) *non_blocking = (flags & CU_STREAM_NON_BLOCKING) != 0;
out:
    return status;
}

struct tol_context *tol_stream_context(const struct tol_stream *stream) {
    return stream->context;
}

CUstream tol_stream_handle(const struct tol_stream *stream) {
    return stream->handle;
}

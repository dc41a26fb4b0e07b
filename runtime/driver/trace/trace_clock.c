/*
 * Maps a device's clock to the host's by two clock points.
 *
 * A clock point is an event on an otherwise idle stream. The tracer reads the host's clock before
 * it records the event and after it sees the event complete. It uses the midpoint as the event's
 * time, and half the distance as the error. Of several tries the one with the smallest distance
 * counts. No wait is longer than a deadline: the device may hang.
 */
#include "trace_state.h"

#include "core/monotonic.h"

#include <sched.h>

enum { TURNS = 8, RATE_MIN_MS = 50 };

/* The first event may take a driver longer, and without an origin there are no device times. */
static const uint64_t origin_deadline_ns = 5000000000, rate_deadline_ns = 20000000;

/* Records spare. ns: the host's clock when the device reached it; width_ns: the distance of the two
 * readings around it. */
static bool find_clock_point(const struct tol_trace_context *context, uint64_t deadline_ns,
                             double *ns, uint64_t *width_ns) {
    const struct tol_driver_table *cu = tol_trace.driver;
    CUresult result = CUDA_ERROR_NOT_READY;
    uint64_t begin_ns = tol_now_ns(), end_ns = begin_ns;
    if (cu->cuEventRecord(context->spare, context->stream) != CUDA_SUCCESS) return false;
    while (result == CUDA_ERROR_NOT_READY && end_ns - begin_ns < deadline_ns) {
        sched_yield();
        result = cu->cuEventQuery(context->spare);
        end_ns = tol_now_ns();
    }
    *width_ns = end_ns - begin_ns;
    *ns = (double)begin_ns + (double)*width_ns / 2;
    return result == CUDA_SUCCESS;
}

bool tol_trace_set_origin(struct tol_trace_context *context) {
    const struct tol_driver_table *cu = tol_trace.driver;
    uint64_t width_ns = 0, best_ns = UINT64_MAX;
    double ns = 0;
    if (cu->cuEventCreate(&context->origin, CU_EVENT_DEFAULT) != CUDA_SUCCESS ||
        cu->cuEventCreate(&context->spare, CU_EVENT_DEFAULT) != CUDA_SUCCESS ||
        cu->cuStreamCreate(&context->stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
        return false;
    }
    context->per_ms_ns = 1e6;
    for (int turn = 0; turn < TURNS; turn++) {
        if (!find_clock_point(context, origin_deadline_ns, &ns, &width_ns)) break;
        if (width_ns >= best_ns) continue;
        CUevent worse = context->origin;
        context->origin = context->spare;
        context->spare = worse;
        context->origin_ns = ns;
        best_ns = width_ns;
    }
    return best_ns != UINT64_MAX;
}

void tol_trace_set_rate(struct tol_trace_context *context) {
    uint64_t width_ns = 0, best_ns = UINT64_MAX;
    double ns = 0;
    float ms = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        if (!find_clock_point(context, rate_deadline_ns, &ns, &width_ns)) return;
        if (tol_trace.driver->cuEventElapsedTime(&ms, context->origin, context->spare) !=
            CUDA_SUCCESS) {
            return;
        }
        /* After so short a time the width of the clock points would be taken for a difference of
         * the clocks. */
        if (!(ms >= RATE_MIN_MS)) return;
        if (width_ns >= best_ns) continue;
        double rate = (ns - context->origin_ns) / (double)ms;
        /* Clocks differ by some millionths; a larger difference means that the host was delayed. */
        if (rate > 0.999e6 && rate < 1.001e6) context->per_ms_ns = rate;
        best_ns = width_ns;
    }
}

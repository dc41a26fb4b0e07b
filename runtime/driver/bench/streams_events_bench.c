/*
 * bench-streams: what an event after a launch costs the host, with the driver's own calls. This is
 * a lower bound for a trace with such events: one event recorded repeatedly, several events, many
 * events that are queried late, and events without timing.
 */
#include "streams_bench.h"

#include "core/check.h"

#include <stdio.h>

enum { EVENTS_MAX = 4096, PER_TURN = 200 };

const char *const event_names[EVENTS] = {
    "launch",           "with_the_same_event", "with_1_of_64",         "with_1_of_4096",
    "with_2nd_of_4096", "with_2_of_64",        "with_1_untimed_of_64", "1_of_64_alone"};

static const struct way {
    unsigned launches, events; /* of the latter after each */
    unsigned stride, count;    /* every stride-th of count */
    bool untimed;
} ways[EVENTS] = {
    {1, 0, 0, 1, false},          {1, 1, 0, 1, false},          {1, 1, 1, 64, false},
    {1, 1, 1, EVENTS_MAX, false}, {1, 1, 2, EVENTS_MAX, false}, {1, 2, 1, 64, false},
    {1, 1, 1, 64, true},          {0, 1, 1, 64, false},
};

struct events {
    CUevent timed[EVENTS_MAX], untimed[64];
    unsigned at;
};

/* After a long kernel, so that no launch waits for the device. */
static tol_status record_after(struct bench *b, struct tol_stream *stream, const struct way *way,
                               struct events *events, double *ns) {
    enum { STEPS = 400000 };
    tol_status status = TOL_OK;
    CUstream handle = tol_stream_handle(stream);
    CUfunction function = tol_kernel_handle(b->none);
    CUdeviceptr address = tol_buffer_address(b->buffer);
    unsigned value = 0;
    void *values[] = {&address, &value};
    CUresult result = CUDA_SUCCESS;
    TOL_TRY(tol_launch(stream, b->grind, tol_launch_linear(1, 1),
                       TOL_ARGUMENTS(address, (unsigned)STEPS)));
    double begin = (double)tol_now_ns();
    for (unsigned i = 0; i < PER_TURN && result == CUDA_SUCCESS; i++) {
        if (way->launches > 0) {
            result = b->raw->cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, handle, values, NULL);
        }
        for (unsigned k = 0; k < way->events && result == CUDA_SUCCESS; k++) {
            events->at = (events->at + way->stride) % way->count;
            result = b->raw->cuEventRecord(
                way->untimed ? events->untimed[events->at] : events->timed[events->at], handle);
        }
    }
    *ns = ((double)tol_now_ns() - begin) / PER_TURN;
    TOL_CHECK(result == CUDA_SUCCESS, TOL_DRIVER_ERROR, "a launch or an event failed: %d",
              (int)result);
    TOL_TRY(tol_stream_synchronize(stream));
out:
    return status;
}

static tol_status streams_bench_make_events(struct bench *b, struct events *events) {
    tol_status status = TOL_OK;
    for (int i = 0; i < EVENTS_MAX; i++) {
        TOL_CU(b->raw, cuEventCreate, (&events->timed[i], CU_EVENT_DEFAULT), "making event %d", i);
    }
    for (int i = 0; i < 64; i++) {
        TOL_CU(b->raw, cuEventCreate, (&events->untimed[i], CU_EVENT_DISABLE_TIMING),
               "making event %d", i);
    }
out:
    return status;
}

static void streams_bench_end_events(const struct bench *b, CUevent *events, int count) {
    for (int i = 0; i < count; i++) {
        if (events[i] != NULL) (void)b->raw->cuEventDestroy_v2(events[i]);
    }
}

tol_status measure_events(struct bench *b) {
    tol_status status = TOL_OK;
    static struct events events;
    struct tol_stream *stream = NULL;
    double ns[EVENTS][TURNS], found = 0;
    TOL_TRY(tol_stream_create(b->context, NULL, &stream));
    TOL_TRY(streams_bench_make_events(b, &events));
    for (int turn = -2; turn < TURNS; turn++) {
        for (int way = 0; way < EVENTS; way++) {
            TOL_TRY(record_after(b, stream, &ways[way], &events, &found));
            if (turn >= 0) ns[way][turn] = found;
        }
    }
    printf("\n%-34s %12s %12s\n", "ns of the host, by driver calls", "all", "more");
    for (int way = 0; way < EVENTS; way++) {
        b->event_ns[way] = median(ns[way], TURNS);
        printf("%-34s %12.0f %12.0f\n", event_names[way], b->event_ns[way],
               way > 0 && ways[way].launches > 0 ? b->event_ns[way] - b->event_ns[0] : 0.0);
    }
out:
    streams_bench_end_events(b, events.timed, EVENTS_MAX);
    streams_bench_end_events(b, events.untimed, 64);
    tol_stream_destroy(stream);
    return status;
}

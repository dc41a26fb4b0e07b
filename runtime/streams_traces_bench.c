/*
 * bench-streams: what a launch under a trace costs the host, and the device.
 */
#include "streams_bench.h"

#include "any_driver.h"
#include "check.h"
#include "trace.h"

#include <stdio.h>

const char *const traced_names[TRACED] = {"each", "both_events", "every_16th"};

/* A context with what is launched in it. */
struct side {
    struct tol_context *context;
    struct tol_stream *stream;
    struct tol_module *module;
    struct tol_kernel *none, *grind;
    struct tol_event *events[2];
};

/* Launches of tiny kernels behind one that is slow. While that runs, the device holds nobody up, so
 * the time of the calls is what the host pays; the time between the events around them, all queued
 * by then, is what the device takes. */
static tol_status launch_behind(struct bench *b, const struct side *side, double *ns) {
    enum { PER_TURN = 200, STEPS = 400000 }; /* some milliseconds */
    tol_status status = TOL_OK;
    TOL_TRY(tol_launch(side->stream, side->grind, tol_launch_linear(1, 1),
                       TOL_ARGUMENTS(tol_buffer_address(b->buffer), (unsigned)STEPS)));
    TOL_TRY(tol_event_record(side->events[0], side->stream));
    double begin = now_ns(), span_ns = 0;
    for (unsigned i = 0; i < PER_TURN; i++) {
        TOL_TRY(tol_launch(side->stream, side->none, tol_launch_linear(32, 32),
                           TOL_ARGUMENTS(tol_buffer_address(b->buffer), i)));
    }
    ns[0] = (now_ns() - begin) / PER_TURN;
    TOL_TRY(tol_event_record(side->events[1], side->stream));
    TOL_TRY(tol_stream_synchronize(side->stream));
    TOL_TRY(tol_event_elapsed_ns(side->events[0], side->events[1], &span_ns));
    ns[1] = span_ns / PER_TURN;
out:
    return status;
}

static tol_status open_side(struct side *side) {
    tol_status status = TOL_OK;
    TOL_TRY(tol_stream_create(side->context, NULL, &side->stream));
    TOL_TRY(tol_module_load(side->context, streams_ptx, streams_ptx_bytes, NULL, &side->module));
    TOL_TRY(tol_module_kernel(side->module, "none", &side->none));
    TOL_TRY(tol_module_kernel(side->module, "grind", &side->grind));
    for (int i = 0; i < 2; i++) TOL_TRY(tol_event_create(side->context, true, &side->events[i]));
out:
    return status;
}

static void close_side(struct side *side) {
    for (int i = 0; i < 2; i++) tol_event_destroy(side->events[i]);
    tol_module_destroy(side->module);
    tol_stream_destroy(side->stream);
}

/* Beside it a second context of the same device, whose calls go through a trace. */
static tol_status measure_trace(struct bench *b, enum traced way) {
    tol_status status = TOL_OK;
    static const struct tol_trace_options options[] = {
        [EACH] = {.operations_max = 16384},
        [BOTH] = {.operations_max = 16384, .both_events = true},
        [SOME] = {.operations_max = 16384, .every = 16}};
    struct tol_driver *driver = NULL;
    struct side sides[2] = {{.context = b->context}, {.context = NULL}};
    double ns[2][2][TURNS];
    TOL_TRY(tol_any_driver_open(b->library, &driver, NULL));
    TOL_TRY(tol_trace_install(driver, &options[way], NULL));
    TOL_TRY(tol_context_create(driver, 0, &sides[1].context));
    for (int side = 0; side < 2; side++) TOL_TRY(open_side(&sides[side]));
    for (int turn = -1; turn < TURNS; turn++) {
        for (int side = 0; side < 2; side++) {
            double found[2];
            TOL_TRY(launch_behind(b, &sides[side], found));
            for (int i = 0; i < 2 && turn >= 0; i++) ns[side][i][turn] = found[i];
        }
    }
    for (int i = 0; i < 4; i++) b->traced_ns[way][i / 2][i % 2] = median(ns[i / 2][i % 2], TURNS);
    double(*t)[2] = b->traced_ns[way];
    printf("%-34s %7.0f %7.0f %7.0f %7.0f %7.0f %7.0f\n", traced_names[way], t[0][0], t[1][0],
           t[1][0] - t[0][0], t[0][1], t[1][1], t[1][1] - t[0][1]);
out:
    for (int side = 0; side < 2; side++) close_side(&sides[side]);
    tol_context_destroy(sides[1].context);
    if (driver != NULL) tol_trace_remove(driver);
    tol_driver_close(driver);
    return status;
}

tol_status measure_traces(struct bench *b) {
    tol_status status = TOL_OK;
    printf("\n%-34s %23s %23s\n%-34s %7s %7s %7s %7s %7s %7s\n", "ns of a launch", "of the host",
           "of the device", "", "plain", "traced", "more", "plain", "traced", "more");
    for (int way = 0; way < TRACED; way++) TOL_TRY(measure_trace(b, (enum traced)way));
out:
    return status;
}

/*
 * bench-streams: what a launch under a trace costs the host, and the device.
 */
#include "streams_bench.h"

#include "core/any_driver.h"
#include "core/check.h"
#include "tollens/trace.h"

#include <stdio.h>

/* The calls alone; each operation with its own end, and ways to know when it began; ends that are
 * shared in bursts; some operations only. */
#define WAYS(WAY)                                                                                  \
    WAY("host_only", .host_only = true)                                                            \
    WAY("each", .share = 1)                                                                        \
    WAY("each_idle_begins", .share = 1, .begins = TOL_TRACE_BEGINS_IDLE)                           \
    WAY("both_events", .begins = TOL_TRACE_BEGINS_EACH)                                            \
    WAY("share_2", .share = 2)                                                                     \
    WAY("share_4", .share = 4)                                                                     \
    WAY("share_8", .share = 8)                                                                     \
    WAY("share_16", .share = 16)                                                                   \
    WAY("every_16th", .every = 16)
#define NAME(name, ...) name,
#define OPTIONS(name, ...) {__VA_ARGS__},

const char *const traced_names[TRACED] = {WAYS(NAME)};
static const struct tol_trace_options options[TRACED] = {WAYS(OPTIONS)};

/* A context with what is launched in it. */
struct side {
    struct tol_context *context;
    struct tol_stream *stream;
    struct tol_module *module;
    struct tol_kernel *none, *grind;
    struct tol_event *events[2];
};

/* Launches of tiny kernels after one that is slow. While that runs, no launch waits for the device,
 * so the time of the calls is what the host pays; the time between the events around them, all
 * queued by then, is what the device takes. */
static tol_status launch_after(struct bench *b, const struct side *side, double *ns) {
    enum { PER_TURN = 200, STEPS = 400000 }; /* some milliseconds */
    tol_status status = TOL_OK;
    TOL_TRY(tol_launch(side->stream, side->grind, tol_launch_linear(1, 1),
                       TOL_ARGUMENTS(tol_buffer_address(b->buffer), (unsigned)STEPS)));
    TOL_TRY(tol_event_record(side->events[0], side->stream));
    double begin = (double)tol_now_ns(), span_ns = 0;
    for (unsigned i = 0; i < PER_TURN; i++) {
        TOL_TRY(tol_launch(side->stream, side->none, tol_launch_linear(32, 32),
                           TOL_ARGUMENTS(tol_buffer_address(b->buffer), i)));
    }
    ns[0] = ((double)tol_now_ns() - begin) / PER_TURN;
    TOL_TRY(tol_event_record(side->events[1], side->stream));
    TOL_TRY(tol_stream_synchronize(side->stream));
    TOL_TRY(tol_event_elapsed_ns(side->events[0], side->events[1], &span_ns));
    ns[1] = span_ns / PER_TURN;
out:
    return status;
}

/* Launches on a stream that has nothing to do: the time of the calls alone, without the waits. */
static tol_status launch_after_waits(struct bench *b, const struct side *side, double *ns) {
    enum { PER_TURN = 40 };
    tol_status status = TOL_OK;
    *ns = 0;
    for (unsigned i = 0; i < PER_TURN; i++) {
        double begin = (double)tol_now_ns();
        TOL_TRY(tol_launch(side->stream, side->none, tol_launch_linear(32, 32),
                           TOL_ARGUMENTS(tol_buffer_address(b->buffer), i)));
        *ns += ((double)tol_now_ns() - begin) / PER_TURN;
        TOL_TRY(tol_stream_synchronize(side->stream));
    }
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

/* One turn with one context. */
static tol_status measure_side(struct bench *b, const struct side *side, double *ns) {
    tol_status status = launch_after(b, side, ns);
    return status == TOL_OK ? launch_after_waits(b, side, &ns[AFTER_WAIT]) : status;
}

/* Beside it a second context of the same device, whose calls go through a trace. */
static tol_status measure_trace(struct bench *b, int way) {
    tol_status status = TOL_OK;
    struct tol_driver *driver = NULL;
    struct side sides[2] = {{.context = b->context}, {.context = NULL}};
    double ns[2][COSTS][TURNS], found[COSTS];
    TOL_TRY(tol_any_driver_open(b->library, &driver, NULL));
    TOL_TRY(tol_trace_install(driver, &options[way], NULL));
    TOL_TRY(tol_context_create(driver, 0, &sides[1].context));
    for (int side = 0; side < 2; side++) TOL_TRY(open_side(&sides[side]));
    for (int turn = -2; turn < TURNS; turn++) {
        for (int k = 0; k < 2; k++) {
            int side = (turn + k) & 1;
            TOL_TRY(measure_side(b, &sides[side], found));
            for (int i = 0; i < COSTS && turn >= 0; i++) ns[side][i][turn] = found[i];
        }
    }
    printf("%-20s", traced_names[way]);
    for (int i = 0; i < COSTS; i++) {
        for (int side = 0; side < 2; side++)
            b->traced_ns[way][side][i] = median(ns[side][i], TURNS);
        double plain = b->traced_ns[way][0][i], traced = b->traced_ns[way][1][i];
        printf("   %7.0f %7.0f %7.0f", plain, traced, traced - plain);
    }
    printf("\n");
out:
    for (int side = 0; side < 2; side++) close_side(&sides[side]);
    tol_context_destroy(sides[1].context);
    if (driver != NULL) tol_trace_remove(driver);
    tol_driver_close(driver);
    return status;
}

tol_status measure_traces(struct bench *b) {
    static const char *const what[COSTS] = {"the host", "the device", "the host, after a wait"};
    tol_status status = TOL_OK;
    printf("\n%-20s", "ns of a launch, of");
    for (int i = 0; i < COSTS; i++) printf("   %23s", what[i]);
    printf("\n%-20s", "");
    for (int i = 0; i < COSTS; i++) printf("   %7s %7s %7s", "plain", "traced", "more");
    printf("\n");
    for (int way = 0; way < TRACED; way++) TOL_TRY(measure_trace(b, way));
out:
    return status;
}

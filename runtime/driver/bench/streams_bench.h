/*
 * What the parts of bench-streams share.
 */
#ifndef TOLLENS_STREAMS_BENCH_H
#define TOLLENS_STREAMS_BENCH_H

#include "core/monotonic.h"
#include "tollens/event.h"
#include "tollens/launch.h"
#include "tollens/memory.h"

#include <stdlib.h>

enum { TURNS = 21, COUNTS = 5 };

/* What of streams_traces_bench.c and streams_events_bench.c, by names of theirs. */
enum { TRACED = 9, EVENTS = 8 };

/* Of the host for a launch after work, of the device, and of the host for one after a wait. */
enum { BY_HOST, BY_DEVICE, AFTER_WAIT, COSTS };

struct bench {
    struct tol_driver *driver;
    struct tol_context *context;
    const struct tol_driver_table *raw;
    struct tol_module *module;
    struct tol_kernel *none, *grind;
    struct tol_buffer *buffer;
    const char *library, *json, *trace;
    bool is_soft;
    unsigned launches;                           /* of a thread and a turn */
    double per_second[COUNTS][2], ratio[COUNTS]; /* raw, runtime */
    double kernel_ns[3];                         /* by itself, in a batch, in a changed batch */
    double traced_ns[TRACED][2][COSTS];          /* plain, traced */
    double event_ns[EVENTS];                     /* a launch, and the events after it */
    double pipeline_ms[2], gain;                 /* serial, overlapped */
    unsigned steps;                              /* that take as long as a copy */
    /* Streams that waited: nothing queued after the host function, and kernels; raw, runtime. */
    unsigned held_streams, waiting[2][2];
};

/* "none", which does nothing, and "grind", of whose threads each takes a number of steps. */
extern const char streams_ptx[];
extern const size_t streams_ptx_bytes;

extern const char *const traced_names[TRACED], *const event_names[EVENTS];

/* What launches under each kind of trace cost, beside launches without. */
tol_status measure_traces(struct bench *b);

/* How many streams wait while a host function holds another up. */
tol_status measure_queues(struct bench *b);

/* What the driver's own events after launches cost the host. */
tol_status measure_events(struct bench *b);

static inline int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static inline double median(double *values, size_t count) {
    qsort(values, count, sizeof values[0], compare);
    return values[count / 2];
}

#endif

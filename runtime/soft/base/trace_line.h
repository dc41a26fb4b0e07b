/*
 * Trace: one line in the file of TOLLENS_SOFT_TRACE per activity of a process, as an event of the
 * Trace Event Format, which Perfetto and chrome://tracing open.
 *
 * Each line is an event and a comma, so that processes can share the file: the process that creates
 * it writes the opening bracket, and `tollens soft --trace` the closing one. A line is written at
 * once, and remains if the process is killed. Times are microseconds of the host's monotonic clock;
 * a row (tid) is a host thread, counted from 1, or a stream, from SOFT_TRACE_STREAMS on.
 *
 * Source: Trace Event Format, Google, 2016.
 */
#ifndef SOFT_TRACE_LINE_H
#define SOFT_TRACE_LINE_H

#include <stdbool.h>
#include <stdint.h>

enum { SOFT_TRACE_STREAMS = 1000 };

/* Something that took from begin to end. */
struct soft_trace_event {
    const char *name, *category;
    unsigned row;
    uint64_t begin_ns, end_ns; /* of soft_now_ns */
};

bool soft_trace_is_on(void);

/* The calling thread's row; the first call names it. */
unsigned soft_trace_thread_row(void);

/* Names a row: name, then number. */
void soft_trace_name_row(unsigned row, const char *name, uint64_t number);

/* Adds an event. The format makes members of a JSON object, such as "\"bytes\":%llu", of at most
 * 300 bytes. Thread-safe, as all of these. */
void soft_trace_add(const struct soft_trace_event *event, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

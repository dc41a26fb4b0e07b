/*
 * Capture: streams whose work becomes nodes of a graph instead of being executed.
 *
 * A capture begins in one stream. Another stream joins by waiting for an event that was recorded in
 * the capture, and must be joined back before the capture ends. Each stream keeps the nodes that
 * its next node will depend on; an event recorded in it is such a set of nodes. A call that needs
 * the result of captured work invalidates the capture, and the end of the capture returns that
 * error.
 *
 * The caller holds soft_lock, unless stated otherwise.
 */
#ifndef SOFT_CAPTURE_H
#define SOFT_CAPTURE_H

#include "queue/queue.h"
#include "task_graph.h"

struct soft_thread;

struct soft_capture {
    uint64_t id;
    struct soft_graph *graph;
    bool owns_graph; /* it was made by the capture, not by the program */
    bool broken;
    CUstreamCaptureMode mode;
    const struct soft_thread *thread; /* that began it */
    struct soft_stream *origin;       /* NULL once that is destroyed */
    struct soft_front left;           /* the fronts of its streams that were destroyed */
    unsigned references;              /* of streams, events, and the list */
    bool ended;
    struct soft_capture *next, **link; /* in the list of active captures */
};

/* Begins a capture in a stream, into a graph of the program's or a new one (NULL). */
CUresult soft_capture_begin(struct soft_stream *stream, struct soft_graph *graph,
                            const struct soft_front *front, CUstreamCaptureMode mode);

/* Ends the capture that began in a stream; *graph becomes NULL if it was invalidated. */
CUresult soft_capture_end(struct soft_stream *stream, struct soft_graph **graph);

/* Breaks a stream's capture. */
void soft_capture_break(struct soft_stream *stream);

/* Whether a stream accepts work: CUDA_SUCCESS, where *capturing says whether the work becomes a
 * node; CUDA_ERROR_STREAM_CAPTURE_INVALIDATED; or CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, for work in
 * the legacy stream while a stream that waits for it is being captured. */
CUresult soft_capture_check(struct soft_stream *stream, bool *capturing);

/* Adds a node to a stream's capture, after all nodes of that stream; takes over the content on
 * success. */
CUresult soft_capture_add(struct soft_stream *stream, struct soft_node_content *content);

/* Records an event in a captured stream (early: as the programmatic event of the last captured
 * kernel); and makes a stream wait for an event that was recorded in one. */
CUresult soft_capture_record(struct soft_stream *stream, struct soft_event *event, bool early);
CUresult soft_capture_wait(struct soft_stream *stream, struct soft_event *event);

/* Removes an event's capture; removes a stream from its capture, which breaks if it began there.
 * The work of another stream must still be joined with the origin. */
void soft_capture_forget_event(struct soft_event *event);
void soft_capture_forget_stream(struct soft_stream *stream);

/* For calls that a capture would miss: whether the calling thread may make them now. If not, the
 * captures that forbid them are invalidated. The caller does not hold soft_lock. */
CUresult soft_capture_allows(void);

/* The same for calls that wait for a stream or a context: never allowed while it is being captured.
 * The caller does not hold soft_lock. */
CUresult soft_capture_allows_stream(struct soft_stream *stream);
CUresult soft_capture_allows_context(const struct soft_context *context);

/* Copies and frees the edges of a front. */
bool soft_front_set(struct soft_front *front, const struct soft_edge *edges, unsigned count);
bool soft_front_add(struct soft_front *front, const struct soft_edge *edge);
void soft_front_clear(struct soft_front *front);

#endif

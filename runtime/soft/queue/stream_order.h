/*
 * Stream order: finds operations that touch the same memory from different streams though nothing
 * makes one of them come after the other; most often an event is not waited for.
 *
 * Each stream has a clock, which says what of every stream has happened before it. Operations move
 * it on, events carry it from one stream to another, and waits of the program carry it into the
 * program's own clock, from which every operation that is queued later takes it. Whether an
 * operation comes before another is then independent of when they really ran, so what is found does
 * not depend on luck. All threads of the program count as one, since nothing is known of how they
 * synchronize; so do the nodes of a graph, which are taken in the order that they run in.
 *
 * Only where TOLLENS_SOFT_CHECK has stream: else nothing is recorded. The caller holds soft_lock
 * for all of this.
 */
#ifndef SOFT_STREAM_ORDER_H
#define SOFT_STREAM_ORDER_H

#include "stream_state.h"

bool soft_order_on(void);

/* An operation is queued. */
void soft_order_queue(struct soft_operation *operation);

/* The operation at the head of a stream has been carried out. */
void soft_order_done(struct soft_stream *stream, const struct soft_operation *operation);

/* The program knows that all of a stream, or what comes before an event point, has happened. */
void soft_order_know_stream(const struct soft_stream *stream);
void soft_order_know_point(const struct soft_event_point *point);

/* The same for all streams of a context, and those that it has had. */
void soft_order_know_context(const struct soft_context *context);

/* A stream that has drained ends: what it knows is kept. */
void soft_order_end_stream(struct soft_stream *stream);

/* A clock goes with its stream, event point or operation. */
void soft_stream_clock_free(struct soft_stream_clock *clock);

#endif

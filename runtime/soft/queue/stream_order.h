/*
 * Stream order: finds operations in different streams that access the same memory and are not
 * ordered. The usual cause is a missing wait for an event.
 *
 * Each stream has a clock: for every stream, the work that is ordered before it. Operations advance
 * it, events carry it from one stream to another, and host waits carry it into the program's clock,
 * which every later queued operation takes over. So neither the order of two operations nor the
 * findings depend on when they really ran. All threads of the program count as one, because their
 * synchronization is unknown; the nodes of a graph count as ordered in the order that they run in.
 *
 * Active only with stream in TOLLENS_SOFT_CHECK; otherwise nothing is recorded. The caller holds
 * soft_lock for all of this.
 */
#ifndef SOFT_STREAM_ORDER_H
#define SOFT_STREAM_ORDER_H

#include "queue_state.h"

bool soft_order_on(void);

/* An operation is queued. */
void soft_order_queue(struct soft_operation *operation);

/* The operation at the head of a stream has been executed. */
void soft_order_done(struct soft_stream *stream, const struct soft_operation *operation);

/* The program has waited for a whole stream, or for an event point. */
void soft_order_know_stream(const struct soft_stream *stream);
void soft_order_know_point(const struct soft_event_point *point);

/* The same for all streams of a context, including destroyed ones. */
void soft_order_know_context(const struct soft_context *context);

/* A drained stream ends: its clock is kept. */
void soft_order_end_stream(struct soft_stream *stream);

/* A clock is freed with its stream, event point or operation. */
void soft_stream_clock_free(struct soft_stream_clock *clock);

#endif

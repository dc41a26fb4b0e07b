/*
 * Tickets: when the work that was queued before a free is done.
 *
 * A free takes the next number and calls no driver function. Only when memory is wanted by another
 * stream is an event recorded on the stream that freed it, behind all that is queued there by then,
 * and one event answers for every free before it. Up to TOL_TICKET_STREAMS streams have places, so
 * a set of them is one word. Internal: not installed. The caller locks.
 */
#ifndef TOLLENS_TICKETS_H
#define TOLLENS_TICKETS_H

#include "core/event_state.h"
#include "core/stream_state.h"

enum { TOL_TICKET_STREAMS = 64 };

struct tol_ticket_stream {
    struct tol_stream *stream; /* held by a reference; NULL: the place is free */
    CUevent event;
    uint64_t last;     /* the last free on it */
    uint64_t recorded; /* the event stands behind all frees up to this */
    uint64_t done;     /* and up to this all work is done */
};

struct tol_tickets {
    struct tol_context *context;
    uint64_t now;
    uint64_t driver_calls; /* made so far */
    struct tol_ticket_stream streams[TOL_TICKET_STREAMS];
};

/* Whether what is queued on the stream goes into a graph. It is not asked and not waited for then,
 * and no event stands behind its frees: each would end the capture. */
static inline bool tol_tickets_is_captured(const struct tol_ticket_stream *place) {
    return atomic_load_explicit(&place->stream->capture, memory_order_relaxed) != NULL;
}

/* Gives back the streams and events. Does not wait. */
void tol_tickets_clear(struct tol_tickets *tickets);

/* The place of a stream; makes one, waiting for the oldest work where all places are taken. */
tol_status tol_tickets_place(struct tol_tickets *tickets, struct tol_stream *stream,
                             unsigned *place);

/* The number of a free on the stream of that place. */
uint64_t tol_tickets_take(struct tol_tickets *tickets, unsigned place);

/* Those of the streams whose work up to ticket is not known to be done. Calls no driver function
 * unless ask is set: then the stream is asked, and if it has work, an event behind the frees. */
uint64_t tol_tickets_open(struct tol_tickets *tickets, uint64_t streams, uint64_t ticket, bool ask);

/* Whether stream, or the host where it is NULL, can wait for what is open: no other is captured. */
bool tol_tickets_can_wait(const struct tol_tickets *tickets, uint64_t open,
                          const struct tol_stream *stream);

/* Makes what is queued on stream from now on wait for the streams' work up to ticket, where it is
 * not done; counts the events that are waited for. TOL_OUT_OF_DEVICE_MEMORY: one is captured. */
tol_status tol_tickets_order(struct tol_tickets *tickets, uint64_t streams, uint64_t ticket,
                             struct tol_stream *stream, uint64_t *waits);

/* Waits on the host for the same, TOL_DEADLINE_MS at most. TOL_OUT_OF_DEVICE_MEMORY as above. */
tol_status tol_tickets_wait(struct tol_tickets *tickets, uint64_t streams, uint64_t ticket);

#endif

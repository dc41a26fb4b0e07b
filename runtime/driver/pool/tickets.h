/*
 * Tickets: tells when the work that was queued before a free is done.
 *
 * A free takes the next number and calls no driver function. When another stream needs the memory,
 * an event is recorded on the stream that freed it, after all work queued there so far; one event
 * covers every earlier free. At most TOL_TICKET_STREAMS streams have a place, so a set of them fits
 * one word. The caller locks.
 */
#ifndef TOLLENS_TICKETS_H
#define TOLLENS_TICKETS_H

#include "core/event_state.h"
#include "core/stream_state.h"

enum { TOL_TICKET_STREAMS = 64 };

struct tol_ticket_stream {
    struct tol_stream *stream; /* holds a reference; NULL: the place is free */
    CUevent event;
    uint64_t last;     /* the last free on it */
    uint64_t recorded; /* the event is after all frees up to this number */
    uint64_t done;     /* the work of all frees up to this number is done */
    uint64_t asked;    /* the pass in which the driver was last asked */
};

struct tol_tickets {
    struct tol_context *context;
    uint64_t now;
    uint64_t driver_calls; /* made so far */
    uint64_t pass, passes; /* the pass that is under way, 0: none; and how many there were */
    struct tol_ticket_stream streams[TOL_TICKET_STREAMS];
    /* [after][before]: later work on the stream of the first place comes after all frees up to
     * this number on the stream of the second. */
    uint64_t ordered[TOL_TICKET_STREAMS][TOL_TICKET_STREAMS];
};

/* Whether the stream is being captured into a graph. Then it is not queried or waited for, and no
 * event is recorded after its frees, because each of these would end the capture. */
static inline bool tol_tickets_is_captured(const struct tol_ticket_stream *place) {
    return tol_stream_is_captured(place->stream);
}

/* Releases the streams and events. Does not wait. */
void tol_tickets_clear(struct tol_tickets *tickets);

/* Gets the place of a stream, and assigns one if it has none. Waits for the oldest work if all
 * places are taken. */
tol_status tol_tickets_place(struct tol_tickets *tickets, struct tol_stream *stream,
                             unsigned *place);

/* Takes the next number for a free on the stream of a place. */
uint64_t tol_tickets_take(struct tol_tickets *tickets, unsigned place);

/* Returns those of the streams whose work up to ticket is not known to be done. Calls the driver
 * only if ask is set: it queries the stream and, if that has work, an event after the frees. */
uint64_t tol_tickets_open(struct tol_tickets *tickets, uint64_t streams, uint64_t ticket, bool ask);

/* Bracket a look at many frees: in between, each stream is queried once, however many
 * frees on it are looked at. */
void tol_tickets_begin_pass(struct tol_tickets *tickets);
void tol_tickets_end_pass(struct tol_tickets *tickets);

/* Whether stream, or the host if it is NULL, can wait for the open streams: none of the others is
 * being captured. */
bool tol_tickets_can_wait(const struct tol_tickets *tickets, uint64_t open,
                          const struct tol_stream *stream);

/* Whether later work on stream is ordered after the frees up to ticket of the stream of a place:
 * it is the same stream, or has been made to wait for them. */
bool tol_tickets_is_ordered(const struct tol_tickets *tickets, unsigned place, uint64_t ticket,
                            const struct tol_stream *stream);

/* Makes later work on stream wait for the streams' work up to ticket, and adds the number of events
 * to *waits. TOL_OUT_OF_DEVICE_MEMORY: one of the streams is being captured. */
tol_status tol_tickets_order(struct tol_tickets *tickets, uint64_t streams, uint64_t ticket,
                             struct tol_stream *stream, uint64_t *waits);

/* Waits on the host for the same, up to TOL_DEADLINE_MS. TOL_OUT_OF_DEVICE_MEMORY as above. */
tol_status tol_tickets_wait(struct tol_tickets *tickets, uint64_t streams, uint64_t ticket);

#endif

/*
 * One event per stream, recorded late and queried rarely.
 */
#include "tickets.h"

#include "tollens/context.h"
#include "core/deadline.h"

#include <string.h>

void tol_tickets_clear(struct tol_tickets *tickets) {
    for (unsigned i = 0; i < TOL_TICKET_STREAMS; i++) {
        struct tol_ticket_stream *place = &tickets->streams[i];
        if (place->event != NULL) tickets->context->functions->cuEventDestroy_v2(place->event);
        if (place->stream != NULL) tol_context_release_stream(place->stream);
        *place = (struct tol_ticket_stream){0};
    }
}

/* Records the event of a place after all its frees, unless it is recorded there already. */
static tol_status tickets_record(struct tol_tickets *tickets, struct tol_ticket_stream *place) {
    tol_status status = TOL_OK;
    struct tol_context *context = tickets->context;
    if (place->recorded >= place->last) return TOL_OK;
    if (place->event == NULL) {
        tickets->driver_calls++;
        TOL_CONTEXT_CU(context, cuEventCreate, (&place->event, CU_EVENT_DISABLE_TIMING),
                       "creating the pool's event for stream %u", place->stream->number);
    }
    tickets->driver_calls++;
    TOL_CONTEXT_CU(context, cuEventRecord, (place->event, place->stream->handle),
                   "recording the event after the frees on stream %u", place->stream->number);
    place->recorded = place->last;
out:
    return status;
}

static bool tickets_is_done(struct tol_tickets *tickets, struct tol_ticket_stream *place) {
    if (place->event == NULL || place->recorded <= place->done) return place->done >= place->last;
    tickets->driver_calls++;
    if (tickets->context->functions->cuEventQuery(place->event) == CUDA_SUCCESS) {
        place->done = place->recorded;
    }
    return place->done >= place->last;
}

/* Whether a stream is idle. An event recorded now would be reached slightly after the next
 * query. */
static bool tickets_is_idle(struct tol_tickets *tickets, struct tol_ticket_stream *place) {
    tickets->driver_calls++;
    if (tickets->context->functions->cuStreamQuery(place->stream->handle) != CUDA_SUCCESS) {
        return false;
    }
    place->done = place->last;
    return true;
}

static tol_status tickets_wait_for(struct tol_tickets *tickets, struct tol_ticket_stream *place) {
    tol_status status = TOL_OK;
    struct tol_deadline deadline = tol_deadline_after(TOL_DEADLINE_MS);
    if (place->done >= place->last) return TOL_OK;
    TOL_CHECK(!tol_tickets_is_captured(place), TOL_OUT_OF_DEVICE_MEMORY,
              "memory freed on stream %u during its capture cannot be waited for",
              place->stream->number);
    TOL_TRY(tickets_record(tickets, place));
    if (place->event != NULL && place->recorded > place->done) {
        tickets->driver_calls++;
        struct tol_event event = {.context = tickets->context, .handle = place->event};
        TOL_TRY(tol_deadline_wait_event(&event, &deadline));
    }
    place->done = place->last;
out:
    return status;
}

/* A place that another stream may take: free, or of a destroyed stream whose work is done. */
static struct tol_ticket_stream *free_place(struct tol_tickets *tickets) {
    for (unsigned i = 0; i < TOL_TICKET_STREAMS; i++) {
        if (tickets->streams[i].stream == NULL) return &tickets->streams[i];
    }
    for (unsigned i = 0; i < TOL_TICKET_STREAMS; i++) {
        if (tickets_is_done(tickets, &tickets->streams[i])) return &tickets->streams[i];
    }
    return NULL;
}

/* The place of a stream; TOL_TICKET_STREAMS: it has none. */
static unsigned tickets_find_place(const struct tol_tickets *tickets,
                                   const struct tol_stream *stream) {
    const unsigned first = stream->number % TOL_TICKET_STREAMS;
    for (unsigned i = 0; i < TOL_TICKET_STREAMS; i++) {
        const unsigned place = (first + i) % TOL_TICKET_STREAMS;
        if (tickets->streams[place].stream == stream) return place;
    }
    return TOL_TICKET_STREAMS;
}

static void tickets_assign(struct tol_tickets *tickets, struct tol_ticket_stream *place,
                           struct tol_stream *stream) {
    if (place->stream != NULL) tol_context_release_stream(place->stream);
    tol_context_retain_stream(stream);
    place->stream = stream;
    /* Earlier frees that name this place are done, and count as such. */
    place->last = place->recorded = place->done = tickets->now;
    memset(tickets->ordered[place - tickets->streams], 0, sizeof tickets->ordered[0]);
}

/* The place of a stream, if it needs no wait. */
static unsigned place_now(struct tol_tickets *tickets, struct tol_stream *stream) {
    const unsigned place = tickets_find_place(tickets, stream);
    if (place < TOL_TICKET_STREAMS) return place;
    for (unsigned i = 0; i < TOL_TICKET_STREAMS; i++) {
        if (tickets->streams[i].stream != NULL) continue;
        tickets_assign(tickets, &tickets->streams[i], stream);
        return i;
    }
    return TOL_TICKET_STREAMS;
}

tol_status tol_tickets_place(struct tol_tickets *tickets, struct tol_stream *stream,
                             unsigned *result) {
    tol_status status = TOL_OK;
    *result = tickets_find_place(tickets, stream);
    if (*result < TOL_TICKET_STREAMS) return TOL_OK;
    struct tol_ticket_stream *place = free_place(tickets);
    if (place == NULL) {
        place = &tickets->streams[0];
        for (unsigned i = 1; i < TOL_TICKET_STREAMS; i++) {
            if (tickets->streams[i].last < place->last) place = &tickets->streams[i];
        }
        TOL_TRY(tickets_wait_for(tickets, place));
    }
    tickets_assign(tickets, place, stream);
    *result = (unsigned)(place - tickets->streams);
out:
    return status;
}

uint64_t tol_tickets_take(struct tol_tickets *tickets, unsigned place) {
    return tickets->streams[place].last = ++tickets->now;
}

void tol_tickets_begin_pass(struct tol_tickets *tickets) {
    tickets->pass = ++tickets->passes;
}

void tol_tickets_end_pass(struct tol_tickets *tickets) {
    tickets->pass = 0;
}

/* Queries what is done on the stream of a place, unless this pass has done so. */
static void tickets_ask_driver(struct tol_tickets *tickets, struct tol_ticket_stream *place) {
    if (tol_tickets_is_captured(place)) return;
    if (tickets->pass != 0 && place->asked == tickets->pass) return;
    place->asked = tickets->pass;
    if (!tickets_is_idle(tickets, place) && tickets_record(tickets, place) == TOL_OK)
        (void)tickets_is_done(tickets, place);
}

uint64_t tol_tickets_open(struct tol_tickets *tickets, uint64_t streams, uint64_t ticket,
                          bool ask) {
    uint64_t open = 0;
    for (uint64_t rest = streams; rest != 0; rest &= rest - 1) {
        struct tol_ticket_stream *place = &tickets->streams[__builtin_ctzll(rest)];
        /* A free on this stream before the ticket may have had a number far below it. */
        uint64_t needed = ticket < place->last ? ticket : place->last;
        if (place->done >= needed) continue;
        if (ask) tickets_ask_driver(tickets, place);
        if (place->done < needed) open |= rest & -rest;
    }
    return open;
}

bool tol_tickets_can_wait(const struct tol_tickets *tickets, uint64_t open,
                          const struct tol_stream *stream) {
    for (; open != 0; open &= open - 1) {
        const struct tol_ticket_stream *place = &tickets->streams[__builtin_ctzll(open)];
        if (place->stream != stream && tol_tickets_is_captured(place)) return false;
    }
    return true;
}

static bool tickets_is_captured(const struct tol_stream *stream) {
    return atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
}

/* Captured work runs whenever its graph is launched, so the order of streams does not apply to
 * it. */
bool tol_tickets_is_ordered(const struct tol_tickets *tickets, unsigned place, uint64_t ticket,
                            const struct tol_stream *stream) {
    const struct tol_ticket_stream *before = &tickets->streams[place];
    if (stream == NULL) return false;
    if (before->stream == stream) return true;
    const unsigned after = tickets_find_place(tickets, stream);
    const uint64_t needed = ticket < before->last ? ticket : before->last;
    return after < TOL_TICKET_STREAMS && tickets->ordered[after][place] >= needed &&
           !tickets_is_captured(stream);
}

tol_status tol_tickets_order(struct tol_tickets *tickets, uint64_t streams, uint64_t ticket,
                             struct tol_stream *stream, uint64_t *waits) {
    tol_status status = TOL_OK;
    uint64_t open = tol_tickets_open(tickets, streams, ticket, false);
    for (; open != 0; open &= open - 1) {
        struct tol_ticket_stream *place = &tickets->streams[__builtin_ctzll(open)];
        const unsigned before = (unsigned)(place - tickets->streams);
        if (tol_tickets_is_ordered(tickets, before, ticket, stream)) continue;
        TOL_CHECK(!tol_tickets_is_captured(place), TOL_OUT_OF_DEVICE_MEMORY,
                  "the memory was freed on stream %u during its capture", place->stream->number);
        if (tickets_is_idle(tickets, place)) continue;
        TOL_TRY(tickets_record(tickets, place));
        tickets->driver_calls++;
        TOL_CONTEXT_CU(tickets->context, cuStreamWaitEvent, (stream->handle, place->event, 0),
                       "making stream %u wait for memory freed on stream %u", stream->number,
                       place->stream->number);
        ++*waits;
        if (tickets_is_captured(stream)) continue;
        const unsigned after = place_now(tickets, stream);
        if (after < TOL_TICKET_STREAMS) tickets->ordered[after][before] = place->recorded;
    }
out:
    return status;
}

tol_status tol_tickets_wait(struct tol_tickets *tickets, uint64_t streams, uint64_t ticket) {
    tol_status status = TOL_OK;
    uint64_t open = tol_tickets_open(tickets, streams, ticket, false);
    for (; open != 0; open &= open - 1) {
        TOL_TRY(tickets_wait_for(tickets, &tickets->streams[__builtin_ctzll(open)]));
    }
out:
    return status;
}

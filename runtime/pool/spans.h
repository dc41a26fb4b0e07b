/*
 * Spans: an address space cut into runs that are used or free, the free ones found by size.
 *
 * All of it lives on the host: device memory holds no headers. A span's record also is the block's
 * that the pool hands out, named by an index and a generation, so that a handle of the past is
 * known for one. Neighbours that are free are always one span.
 *
 * Free spans are kept in bins, 32 to each power of two (TLSF; Masmano et al., ECRTS 2004), so that
 * finding one that fits takes as long with a million as with ten. Internal: not installed.
 * Not thread-safe but for tol_spans_at, which may run beside anything. What is always true is
 * stated by tol_span_is_valid and tol_spans_is_valid, which the operations assert (core/deep.h).
 */
#ifndef TOLLENS_SPANS_H
#define TOLLENS_SPANS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOL_SPAN_GRANULE = 256,
    TOL_SPAN_BIN_STEPS = 32,                 /* to a power of two */
    TOL_SPAN_BINS = 37 * TOL_SPAN_BIN_STEPS, /* up to 2^40 granules */
    TOL_SPAN_BIN_WORDS = (TOL_SPAN_BINS + 63) / 64,
    TOL_SPAN_CHUNK = 4096, /* records allocated at once */
    TOL_SPAN_CHUNKS = 4096,
};

enum tol_span_state {
    TOL_SPAN_UNUSED,
    TOL_SPAN_FREE,
    TOL_SPAN_LIVE,
    TOL_SPAN_CACHED,
    TOL_SPAN_BLOCKED, /* no block's, and not to be had: another page's block has its memory */
};

struct tol_span {
    uint64_t begin, bytes;            /* multiples of TOL_SPAN_GRANULE */
    struct tol_span *before, *behind; /* the neighbours by address; NULL at the ends of a region */
    struct tol_span *bin_before, *bin_behind; /* of a free one: others of its bin; of a blocked
                                               * one, behind: others of its page */
    /* Of a free one: the part that work may still use, and by when it will not (tickets.h). */
    uint64_t wait_begin, wait_end;
    uint64_t wait_streams, wait_ticket;
    _Atomic(uint64_t) name; /* generation << 8 | enum tol_span_state */
    uint32_t index;
    /* Of a live one: written before its name says so, and read beside anything. */
    _Atomic(uint32_t) tag;
    _Atomic(uint64_t) requested; /* bytes that were asked for */
    _Atomic(const void *) site;  /* who called */
    void *owner;                 /* of a block outside the arena: its own memory (large.h) */
    uint64_t stream;             /* of a cached one: the stream that freed it */
};

struct tol_spans {
    struct tol_span *bins[TOL_SPAN_BINS];
    uint64_t words[TOL_SPAN_BIN_WORDS]; /* a bit a bin: it is not empty */
    struct tol_span *unused;            /* records, linked by behind */
    size_t unused_count;
    struct tol_span *first; /* of the region that was added first, always its lowest */
    _Atomic(struct tol_span *) chunks[TOL_SPAN_CHUNKS];
    size_t chunk_count;
    uint64_t free_bytes;
    size_t free_count, used_count;
};

/* All is zero at first. Frees the records. */
void tol_spans_clear(struct tol_spans *spans);

/* Adds a region, free and with nothing to wait for: its lowest span, which stays that whatever is
 * taken and given. NULL: no host memory. */
struct tol_span *tol_spans_add(struct tol_spans *spans, uint64_t begin, uint64_t bytes);

/* Takes a region away that is one free span. */
void tol_spans_remove(struct tol_spans *spans, struct tol_span *region);

/* The free spans of at least bytes, one after the other, smaller bins first; NULL behind the last.
 * All is zero at first; nothing may be taken or given between. */
struct tol_span_search {
    struct tol_span *next;
    unsigned bin; /* behind the one that next is in */
    bool has_begun;
};
struct tol_span *tol_spans_next(const struct tol_spans *spans, uint64_t bytes,
                                struct tol_span_search *search);

/* Up to max of them at once; how many. */
size_t tol_spans_fitting(const struct tol_spans *spans, uint64_t bytes, struct tol_span **found,
                         size_t max);

/* Sees to it that so many records are at hand: a take or a note needs two at most. false: no host
 * memory. */
bool tol_spans_reserve(struct tol_spans *spans, size_t records);

/* Makes bytes at begin, inside a free span, a blocked span. Records must have been reserved. To be
 * given back like a used one. */
struct tol_span *tol_spans_block(struct tol_spans *spans, struct tol_span *hole, uint64_t begin,
                                 uint64_t bytes);

/* The largest free span; NULL where there is none. */
struct tol_span *tol_spans_largest(const struct tol_spans *spans);

/* Makes bytes at begin, inside a free span, a live span of its own. NULL: no host memory. */
struct tol_span *tol_spans_take(struct tol_spans *spans, struct tol_span *hole, uint64_t begin,
                                uint64_t bytes);

/* Makes a used span free: work on streams may use it until ticket. Gives the free span that it is
 * part of now. */
struct tol_span *tol_spans_give(struct tol_spans *spans, struct tol_span *span, uint64_t streams,
                                uint64_t ticket);

/* A live record that is part of no region, for a block whose memory is elsewhere; NULL: no host
 * memory. And the end of one. */
struct tol_span *tol_spans_note(struct tol_spans *spans, uint64_t begin, uint64_t bytes);
void tol_spans_forget(struct tol_spans *spans, struct tol_span *span);

/* The record of that index; NULL where there never was one. */
struct tol_span *tol_spans_at(const struct tol_spans *spans, uint32_t index);

/* Visits all records that are live. */
void tol_spans_each(const struct tol_spans *spans, void (*visit)(void *user, struct tol_span *span),
                    void *user);

static inline enum tol_span_state tol_span_state_of(uint64_t name) {
    return (enum tol_span_state)(name & 0xff);
}

/* ---- for asserts: not with NDEBUG ---- */

/* Whether a span that is in use or free agrees with both neighbours and, if free, with its bin. */
bool tol_span_is_valid(const struct tol_spans *spans, const struct tol_span *span);

/* Whether all spans are valid, and the bins and the counters agree with them. Walks all records. */
bool tol_spans_is_valid(const struct tol_spans *spans);

#endif

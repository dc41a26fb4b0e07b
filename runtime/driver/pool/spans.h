/*
 * Spans: an address space divided into used and free runs; free runs are found by size.
 *
 * All records are on the host: device memory has no headers. A span's record is also the record of
 * the block that the pool hands out. An index and a generation name it, so an old handle is
 * recognised. Adjacent free runs are always merged into one span.
 *
 * Free spans are kept in bins, 32 per power of two (TLSF; Masmano et al., ECRTS 2004), so finding
 * one that fits takes the same time with a million as with ten. Not thread-safe, except
 * tol_spans_at, which may run at the same time as anything. Asserted by the operations:
 * tol_span_is_valid, tol_spans_is_valid (core/deep.h).
 */
#ifndef TOLLENS_SPANS_H
#define TOLLENS_SPANS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOL_SPAN_GRANULE = 256,
    TOL_SPAN_BIN_STEPS = 32,                 /* per power of two */
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
    TOL_SPAN_BLOCKED, /* free addresses that cannot be used: another page's block has the memory */
};

struct tol_span {
    uint64_t begin, bytes;            /* multiples of TOL_SPAN_GRANULE */
    struct tol_span *before, *after;  /* the neighbours by address; NULL at the ends of a region */
    struct tol_span *bin_before, *bin_after; /* free: the others of its bin; blocked: bin_after
                                               * links the others of its page */
    /* Free: the part that work may still use, and the tickets after which it will not. */
    uint64_t wait_begin, wait_end;
    uint64_t wait_streams, wait_ticket;
    _Atomic(uint64_t) name; /* generation << 8 | enum tol_span_state */
    uint32_t index;
    /* Live: written before the name becomes live; read at any time by any thread. */
    _Atomic(uint32_t) tag;
    _Atomic(uint64_t) requested; /* size in bytes as requested */
    _Atomic(const void *) site;  /* the code address that allocated it */
    void *owner;                 /* of a large block: its mapping (struct tol_large) */
    uint64_t stream;             /* cached: the stream that freed it */
};

struct tol_spans {
    struct tol_span *bins[TOL_SPAN_BINS];
    uint64_t words[TOL_SPAN_BIN_WORDS]; /* one bit per bin: set if it is not empty */
    struct tol_span *unused;            /* records, linked by after */
    size_t unused_count;
    struct tol_span *first; /* the lowest span of the first region */
    _Alignas(128) _Atomic(struct tol_span *) chunks[TOL_SPAN_CHUNKS]; /* read without a lock */
    _Alignas(128) size_t chunk_count;
    uint64_t free_bytes;
    size_t free_count, used_count;
};

/* Frees the records. A struct tol_spans starts all zero. */
void tol_spans_clear(struct tol_spans *spans);

/* Adds a free region with no pending work. Returns its lowest span, which stays the lowest through
 * all later calls. NULL: no host memory. */
struct tol_span *tol_spans_add(struct tol_spans *spans, uint64_t begin, uint64_t bytes);

/* Removes a region that is one free span. */
void tol_spans_remove(struct tol_spans *spans, struct tol_span *region);

/* Iterates over the free spans of at least bytes, smaller bins first; NULL after the last. A search
 * starts all zero. Spans must not be taken or given during it. */
struct tol_span_search {
    struct tol_span *next;
    unsigned bin; /* the bin after that of next */
    bool has_begun;
};
struct tol_span *tol_spans_next(const struct tol_spans *spans, uint64_t bytes,
                                struct tol_span_search *search);

/* Gets up to max of them at once and returns how many. */
size_t tol_spans_fitting(const struct tol_spans *spans, uint64_t bytes, struct tol_span **found,
                         size_t max);

/* Makes sure that this many records are available; a take or a note needs at most two. false: no
 * host memory. */
bool tol_spans_reserve(struct tol_spans *spans, size_t records);

/* Turns bytes at begin, inside a free span, into a blocked span. Records must have been reserved.
 * Return it with tol_spans_give. */
struct tol_span *tol_spans_block(struct tol_spans *spans, struct tol_span *hole, uint64_t begin,
                                 uint64_t bytes);

/* The largest free span; NULL if there is none. */
struct tol_span *tol_spans_largest(const struct tol_spans *spans);

/* Turns bytes at begin, inside a free span, into a live span. NULL: no host memory. */
struct tol_span *tol_spans_take(struct tol_spans *spans, struct tol_span *hole, uint64_t begin,
                                uint64_t bytes);

/* Frees a used span; work on streams may use it until ticket. Returns the free span that it is now
 * part of. */
struct tol_span *tol_spans_give(struct tol_spans *spans, struct tol_span *span, uint64_t streams,
                                uint64_t ticket);

/* Create a live record outside all regions, for a block with separate memory (NULL: no host
 * memory), and end it. */
struct tol_span *tol_spans_note(struct tol_spans *spans, uint64_t begin, uint64_t bytes);
void tol_spans_forget(struct tol_spans *spans, struct tol_span *span);

/* The record with that index; NULL if there never was one. */
struct tol_span *tol_spans_at(const struct tol_spans *spans, uint32_t index);

/* Calls visit for all live records. */
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

/*
 * Pages: which parts of a reserved address range have memory behind them.
 *
 * The range is cut into pages of the driver's unit; a handle of physical memory is mapped over one
 * page or over a run of them, whole, since the driver maps no part of a handle. A handle that no
 * block touches may be unmapped and released. Page-table edits cost by the handle, not by the byte,
 * so memory is taken in steps of several pages where there is room. One of a single page may be
 * mapped at several pages, whose blocks do not meet in it (mesh.h). Internal: not installed. The
 * caller locks. What is always true is stated by tol_page_is_valid and tol_pages_is_valid, which
 * the operations assert (core/deep.h).
 *
 * Source: CUDA Driver API, "Virtual Memory Management": cuMemMap's offset must be 0, cuMemUnmap
 * takes whole mappings, and each new mapping needs cuMemSetAccess.
 */
#ifndef TOLLENS_PAGES_H
#define TOLLENS_PAGES_H

#include "core/handles.h"

struct tol_span;

struct tol_page_handle {
    CUmemGenericAllocationHandle memory;
    uint32_t first, pages;    /* what it is mapped over; pages is 0 for a record not in use */
    uint32_t blocks;          /* live or cached ones that touch it, each counted once a page */
    bool is_shared;           /* it was mapped at more pages than one: first begins their list */
    bool is_closed;           /* mapped, and no kernel may use it yet */
    uint64_t streams, ticket; /* of a shared one: work that may still use what was freed in it */
};

/* Of a page of a shared handle. */
struct tol_page_share {
    uint32_t next;            /* the next page of the same handle + 1; 0: none */
    struct tol_span *blocked; /* its free parts, that no block may have */
};

struct tol_pages {
    struct tol_context *context;
    CUmemAllocationProp prop;
    CUmemAccessDesc access;
    CUdeviceptr begin;
    uint64_t bytes;
    uint64_t page_bytes;
    uint32_t step; /* pages that are taken from the driver at once, where so many are empty */
    size_t page_count;
    uint32_t *table;               /* a page's handle + 1; 0: nothing is mapped */
    struct tol_page_share *shares; /* a page each; NULL until a handle is shared */
    size_t shared_count;           /* handles */
    struct tol_page_handle *handles;
    size_t handle_count, handle_room;
    size_t idle_count;          /* handles that no block touches */
    uint32_t unused;            /* the first handle record not in use + 1, linked by first */
    uint32_t top;               /* behind the last page that ever had memory */
    uint64_t mapped;            /* bytes */
    uint64_t creates, releases; /* handles edited so far */
    uint64_t opens;             /* runs of them made accessible, a driver call each */
    uint64_t moves;             /* unmapped to be kept, or mapped again: a driver call each */
};

/* Reserves a range of at least bytes of addresses in pages of page_bytes, a multiple of the
 * driver's granularity, of which step are taken at once. */
tol_status tol_pages_open(struct tol_pages *pages, struct tol_context *context, uint64_t bytes,
                          uint64_t page_bytes, uint32_t step);

/* Unmaps and releases all. */
void tol_pages_close(struct tol_pages *pages);

/* What a block would cost: how many of its pages have no memory that can be used, and how many have
 * no block. */
struct tol_page_cost {
    uint32_t unmapped, idle;
};
struct tol_page_cost tol_pages_cost(const struct tol_pages *pages, uint64_t begin, uint64_t bytes);

/* How memory is taken: a handle covers run pages where so many have none and lie before limit, or
 * else a step's aligned pages where none of them has memory, or else one. */
struct tol_page_growth {
    uint32_t run, step;
    uint64_t limit;
};

/* The bytes that tol_pages_map would take from the driver, but for runs. */
uint64_t tol_pages_missing(const struct tol_pages *pages, uint64_t begin, uint64_t bytes,
                           uint32_t step);

/* Puts memory behind all of begin to begin + bytes. Where it fails, no block's page has changed. */
tol_status tol_pages_map(struct tol_pages *pages, uint64_t begin, uint64_t bytes,
                         const struct tol_page_growth *growth);

/* Counts a block at begin, or counts it no more. */
void tol_pages_enter(struct tol_pages *pages, uint64_t begin, uint64_t bytes);
void tol_pages_leave(struct tol_pages *pages, uint64_t begin, uint64_t bytes);

/* Releases handles that lie inside begin to end and that no block touches, until want bytes were
 * released; how many were. The work that used them must be done. */
uint64_t tol_pages_release(struct tol_pages *pages, uint64_t begin, uint64_t end, uint64_t want);

/* ---- for pool_stitch.c: memory of one place for another ---- */

/* A run of pages that have no memory. */
struct tol_page_gap {
    uint32_t first, pages;
};

/* The gaps between begin and begin + bytes, as many as there is room for; how many there are. */
size_t tol_pages_gaps(const struct tol_pages *pages, uint64_t begin, uint64_t bytes,
                      struct tol_page_gap *gaps, size_t room);

/* The pages that lie wholly between two addresses and may have memory: the first, and the one
 * behind the last. */
struct tol_page_gap tol_pages_between(const struct tol_pages *pages, uint64_t begin, uint64_t end);

/* Unmaps a handle that no block touches and that is not shared; its memory is the caller's then.
 * false: the driver would not, and nothing has changed. */
bool tol_pages_take(struct tol_pages *pages, struct tol_page_handle *handle);

/* Maps memory at pages that have none; closed until it is opened. Where it fails, the memory is the
 * caller's still. */
tol_status tol_pages_put(struct tol_pages *pages, uint32_t first, uint32_t count,
                         CUmemGenericAllocationHandle memory);

/* Makes whole handles from page first to before end usable. Where it fails, they stay closed. */
tol_status tol_pages_allow(struct tol_pages *pages, uint32_t first, uint32_t end);

/* ---- for mesh.c ---- */

/* A record of a handle, or NULL: no host memory; and its end. */
struct tol_page_handle *tol_pages_new_handle(struct tol_pages *pages);
void tol_pages_drop_handle(struct tol_pages *pages, struct tol_page_handle *handle);

/* ---- pool_valid.c, for asserts: not with NDEBUG ---- */

/* Whether a page has no memory, or a handle in use that is mapped there. */
bool tol_page_is_valid(const struct tol_pages *pages, uint32_t page);

/* Whether all pages are valid, and the counters agree with the handles. Walks all pages below top
 * and all handles. */
bool tol_pages_is_valid(const struct tol_pages *pages);

static inline uint64_t tol_pages_address(const struct tol_pages *pages, uint32_t page) {
    return pages->begin + page * pages->page_bytes;
}

#endif

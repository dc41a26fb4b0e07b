/*
 * Pages: which parts of a reserved address range have memory behind them.
 *
 * The range is cut into pages of one size; a handle of physical memory is mapped over one page or
 * over a run of them, whole, since the driver maps no part of a handle. A handle that no block
 * touches may be unmapped and released, or mapped again elsewhere. Page-table edits cost by the
 * handle, not by the byte, so runs are edited in one call. Internal: not installed. The caller
 * locks.
 *
 * Source: CUDA Driver API, "Virtual Memory Management": cuMemMap's offset must be 0, cuMemUnmap
 * takes whole mappings, and each new mapping needs cuMemSetAccess.
 */
#ifndef TOLLENS_PAGES_H
#define TOLLENS_PAGES_H

#include "handles.h"

struct tol_page_handle {
    CUmemGenericAllocationHandle memory;
    uint32_t first, pages; /* what it is mapped over; pages is 0 for a record not in use */
    uint32_t blocks;       /* live or cached ones that touch it */
};

struct tol_pages {
    struct tol_context *context;
    CUmemAllocationProp prop;
    CUmemAccessDesc access;
    CUdeviceptr begin;
    uint64_t bytes;
    uint64_t page_bytes;
    size_t page_count;
    uint32_t *table; /* a page's handle + 1; 0: nothing is mapped */
    struct tol_page_handle *handles;
    size_t handle_count, handle_room;
    uint32_t unused;            /* the first handle record not in use + 1, linked by first */
    uint32_t top;               /* behind the last page that ever had memory */
    uint64_t mapped;            /* bytes */
    uint64_t creates, releases; /* handles edited so far */
    uint64_t opens;             /* runs of them made accessible, a driver call each */
};

/* Reserves a range of at least bytes of addresses in pages of page_bytes, a multiple of the
 * driver's granularity. */
tol_status tol_pages_open(struct tol_pages *pages, struct tol_context *context, uint64_t bytes,
                          uint64_t page_bytes);

/* Unmaps and releases all. */
void tol_pages_close(struct tol_pages *pages);

/* What a block would cost: how many of its pages have no memory, and how many have no block. */
struct tol_page_cost {
    uint32_t unmapped, idle;
};
struct tol_page_cost tol_pages_cost(const struct tol_pages *pages, uint64_t begin, uint64_t bytes);

/* The bytes that tol_pages_map would take from the driver. */
uint64_t tol_pages_missing(const struct tol_pages *pages, uint64_t begin, uint64_t bytes);

/* Puts memory behind all of begin to begin + bytes. Each handle covers run pages where so many from
 * its first on have none and lie before limit, else one. Where it fails, nothing has changed. */
tol_status tol_pages_map(struct tol_pages *pages, uint64_t begin, uint64_t bytes, uint32_t run,
                         uint64_t limit);

/* Counts a block at begin, or counts it no more. */
void tol_pages_enter(struct tol_pages *pages, uint64_t begin, uint64_t bytes);
void tol_pages_leave(struct tol_pages *pages, uint64_t begin, uint64_t bytes);

/* Releases handles that lie inside begin to end and that no block touches, until want bytes were
 * released; how many were. The work that used them must be done. */
uint64_t tol_pages_release(struct tol_pages *pages, uint64_t begin, uint64_t end, uint64_t want);

#endif

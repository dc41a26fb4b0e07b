/*
 * Pages: which parts of a reserved address range have memory.
 *
 * The range is divided into pages, multiples of the driver's granularity. A handle of physical
 * memory is mapped over one page or a run of pages, always whole, because the driver cannot map
 * part of a handle. A handle that no block uses may be unmapped and released. The driver's cost is
 * per handle, not per byte, so memory is taken in steps of several pages if there is room. A handle
 * of one page may be mapped at several pages whose live bytes do not overlap (mesh.h).
 * The caller locks. Asserted by the operations: tol_page_is_valid, tol_pages_is_valid
 * (core/deep.h).
 *
 * Source: CUDA Driver API, "Virtual Memory Management": cuMemMap's offset must be 0, cuMemUnmap
 * unmaps whole mappings, and each new mapping needs cuMemSetAccess.
 */
#ifndef TOLLENS_PAGES_H
#define TOLLENS_PAGES_H

#include "core/context_state.h"

struct tol_span;

struct tol_page_handle {
    CUmemGenericAllocationHandle memory;
    uint32_t first, pages;    /* the pages it is mapped over; pages is 0 if the record is unused */
    uint32_t blocks;          /* live or cached blocks on it, each counted once per page */
    bool is_shared;           /* mapped at several separate pages; first begins their list */
    bool is_closed;           /* mapped, but without access: kernels cannot use it yet */
    uint64_t streams, ticket; /* shared: work that may still use what was freed in it */
};

/* State of a page of a shared handle. */
struct tol_page_share {
    uint32_t next;            /* the next page of the same handle + 1; 0: none */
    struct tol_span *blocked; /* its free parts, which no block may use */
};

struct tol_pages {
    struct tol_context *context;
    CUmemAllocationProp prop;
    CUmemAccessDesc access;
    CUdeviceptr begin;
    uint64_t bytes;
    uint64_t page_bytes;
    uint32_t step; /* pages taken from the driver at once, if that many are empty */
    size_t page_count;
    uint32_t *table;               /* the handle of each page + 1; 0: not mapped */
    struct tol_page_share *shares; /* one per page; NULL until a handle is shared */
    size_t shared_count;           /* handles */
    struct tol_page_handle *handles;
    size_t handle_count, handle_room;
    size_t idle_count;          /* handles without a block */
    uint32_t unused;            /* first unused handle record + 1, linked by first */
    uint32_t top;               /* one past the last page that ever had memory */
    uint64_t mapped;            /* bytes */
    uint64_t creates, releases; /* counts of handles created and released */
    uint64_t opens;             /* count of cuMemSetAccess calls */
    uint64_t moves; /* count of calls that unmapped a handle to keep it, or remapped it */
};

/* Reserves a range of at least bytes of addresses. page_bytes must be a multiple of the driver's
 * granularity; step pages are taken at once. */
tol_status tol_pages_open(struct tol_pages *pages, struct tol_context *context, uint64_t bytes,
                          uint64_t page_bytes, uint32_t step);

/* Unmaps and releases everything. */
void tol_pages_close(struct tol_pages *pages);

/* The cost of placing a block: the number of its pages without usable memory, and the number
 * without a block. */
struct tol_page_cost {
    uint32_t unmapped, idle;
};
struct tol_page_cost tol_pages_cost(const struct tol_pages *pages, uint64_t begin, uint64_t bytes);

/* How memory is created: a handle covers run pages, if that many before limit have no memory, or as
 * many more as the block lacks side by side, up to joined pages; otherwise, or if run is 0, step
 * aligned pages if none of them has memory; otherwise one page, or up to joined pages that the
 * block alone uses. */
struct tol_page_growth {
    uint32_t run, step, joined;
    uint64_t limit;
};

/* The bytes that tol_pages_map would take from the driver, not counting runs. */
uint64_t tol_pages_missing(const struct tol_pages *pages, uint64_t begin, uint64_t bytes,
                           uint32_t step);

/* Maps memory at all pages from begin to begin + bytes. On failure no page with a block has
 * changed. */
tol_status tol_pages_map(struct tol_pages *pages, uint64_t begin, uint64_t bytes,
                         const struct tol_page_growth *growth);

/* Add and remove a block at begin in the counts of its pages. */
void tol_pages_enter(struct tol_pages *pages, uint64_t begin, uint64_t bytes);
void tol_pages_leave(struct tol_pages *pages, uint64_t begin, uint64_t bytes);

/* Releases handles without a block between begin and end until want bytes are released, and returns
 * the bytes released. The work that used them must be done. */
uint64_t tol_pages_release(struct tol_pages *pages, uint64_t begin, uint64_t end, uint64_t want);

/* ---- for pool_stitch.c: remapping memory ---- */

/* A run of pages without memory. */
struct tol_page_gap {
    uint32_t first, pages;
};

/* Writes up to room gaps between begin and begin + bytes and returns how many there are. */
size_t tol_pages_gaps(const struct tol_pages *pages, uint64_t begin, uint64_t bytes,
                      struct tol_page_gap *gaps, size_t room);

/* The pages that are entirely between two addresses and may have memory: the first, and one past
 * the last. */
struct tol_page_gap tol_pages_between(const struct tol_pages *pages, uint64_t begin, uint64_t end);

/* Unmaps a handle that has no block and is not shared; the caller then owns the memory. false: the
 * driver call failed, and nothing has changed. */
bool tol_pages_take(struct tol_pages *pages, struct tol_page_handle *handle);

/* Maps memory at pages without memory; it is closed until tol_pages_allow. On failure the caller
 * still owns the memory. */
tol_status tol_pages_put(struct tol_pages *pages, uint32_t first, uint32_t count,
                         CUmemGenericAllocationHandle memory);

/* Sets access for whole handles from page first up to but not including end. On failure they stay
 * closed. */
tol_status tol_pages_allow(struct tol_pages *pages, uint32_t first, uint32_t end);

/* ---- for mesh.c ---- */

/* Create a handle record (NULL: no host memory), and free it. */
struct tol_page_handle *tol_pages_new_handle(struct tol_pages *pages);
void tol_pages_drop_handle(struct tol_pages *pages, struct tol_page_handle *handle);

/* ---- pool_valid.c, for asserts: not with NDEBUG ---- */

/* Whether a page has no memory, or a handle in use that is mapped there. */
bool tol_page_is_valid(const struct tol_pages *pages, uint32_t page);

/* Whether all pages are valid, and the counters agree with the handles. Walks all pages below top
 * and all handles. */
bool tol_pages_is_valid(const struct tol_pages *pages);

/* The bytes from begin to end, both addresses, that have memory. */
uint64_t tol_pages_mapped(const struct tol_pages *pages, uint64_t begin, uint64_t end);

static inline uint64_t tol_pages_address(const struct tol_pages *pages, uint32_t page) {
    return pages->begin + page * pages->page_bytes;
}

#endif

/*
 * The fields of struct tol_once: windows of addresses over frames of memory. See once.h.
 */
#ifndef TOLLENS_ONCE_STATE_H
#define TOLLENS_ONCE_STATE_H

#include "core/context_state.h"

struct tol_once_stats {
    uint64_t live_blocks, live_bytes; /* as requested */
    uint64_t held_bytes;              /* from the driver */
    uint64_t windows;                 /* mapped now */
};

enum { TOL_FRAME_GRANULE = 256 };

/* A page of addresses: what it is, or whose. */
enum tol_once_page { TOL_PAGE_NEW, TOL_PAGE_DEAD_SMALL, TOL_PAGE_DEAD_FIRST, TOL_PAGE_DEAD_REST };

struct tol_once_block {
    uint32_t granule; /* its first, of the window */
    bool is_freed;
    uint32_t holds;
    uint64_t bytes; /* as requested */
};

/* Addresses with memory. Its blocks were handed out from low to high, and so they are
 * sorted. A large block is the only one of its window, which has a frame to itself. */
struct tol_window {
    struct tol_frame *frame;
    CUdeviceptr begin;
    uint64_t bytes;
    struct tol_once_block *blocks;
    uint32_t count, room;
    uint32_t live;           /* not freed, or held */
    struct tol_window *next; /* of the frame's */
};

struct tol_frame {
    CUmemGenericAllocationHandle memory;
    uint64_t bytes;
    struct tol_window *windows; /* the first is the one being swept */
    uint32_t cursor;            /* the first granule that it has not handed out */
    uint32_t free;              /* granules */
    bool is_large;
    struct tol_frame *next, **link; /* in the list that it is in */
    uint64_t used[];                /* a bit a granule */
};

struct tol_once {
    struct tol_context *context;
    pthread_mutex_t lock;
    CUdeviceptr begin;
    uint64_t bytes, page_bytes;
    size_t page_count, page_cursor;
    uintptr_t *pages; /* an enum tol_once_page, or a struct tol_window */
    CUmemAllocationProp prop;
    CUmemAccessDesc access;
    struct tol_frame *open;  /* that may have room */
    struct tol_frame *full;  /* whose sweep has ended, and too little of them is free for another */
    struct tol_frame *large; /* those of one large block each */
    struct tol_frame *spare; /* without blocks, kept for the next; an open one */
    struct tol_once_stats stats;
};

#endif

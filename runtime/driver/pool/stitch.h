/*
 * Stitch: remaps memory that the pool holds and no block uses to where a block needs it.
 *
 * Handles without a block, and those of kept large blocks, are unmapped and mapped next to each
 * other where a block needs memory. In between, nothing is returned to the driver, so no other
 * process can take it, and nothing new is requested. A handle that was unmapped and then found no
 * place is a spare, which the next request for memory uses.
 * The caller holds the pool's lock.
 */
#ifndef TOLLENS_STITCH_H
#define TOLLENS_STITCH_H

#include "pool_state.h"

enum tol_stitch_from {
    TOL_STITCH_SPARE,
    TOL_STITCH_PAGES,   /* idle pages */
    TOL_STITCH_KEPT,    /* a large block that is kept */
    TOL_STITCH_IN_HAND, /* unmapped for what is being stitched */
    TOL_STITCH_GONE     /* mapped again, or released */
};

/* An available handle, and where it is now. */
struct tol_stitch_piece {
    struct tol_memory memory;
    enum tol_stitch_from from;
    uint32_t order;          /* in which it was found */
    uint32_t handle;         /* for TOL_STITCH_PAGES: its index among the handles of the pages */
    struct tol_large *large; /* for TOL_STITCH_KEPT: the block */
    size_t gap;              /* the gap it is chosen for, counted from 1; 0: none */
};

/* One stitching operation. Starts all zero; end it with tol_stitch_end. */
struct tol_stitch {
    struct tol_pool *pool;
    struct tol_page_gap skip;        /* pages whose memory stays */
    struct tol_stitch_piece *pieces; /* the largest first */
    size_t count, room;
    size_t chosen;  /* of them, for gaps */
    uint64_t bytes; /* chosen */
    size_t placed;
    uint64_t placed_bytes;
};

/* If the ladder asks for it, or if there are spares: chooses the handles that fill most of the
 * gaps, except those on the pages of skip, and unmaps them. On the ladder it returns
 * TOL_OUT_OF_DEVICE_MEMORY and changes nothing if the remainder could not be taken from the driver
 * even after returning the handles that fit no gap; otherwise it returns the number needed. */
tol_status tol_stitch_begin(struct tol_stitch *stitch, struct tol_pool *pool,
                            const struct tol_page_gap *gaps, size_t gap_count,
                            struct tol_page_gap skip);

/* Marks the piece as mapped at its gap. */
void tol_stitch_placed(struct tol_stitch *stitch, struct tol_stitch_piece *piece);

/* Counts the placed pieces. Pieces that were unmapped and not placed become spares. */
void tol_stitch_end(struct tol_stitch *stitch);

/* Stitches memory at the pages of a block that have none. What it could not fill stays without
 * memory. */
tol_status tol_stitch_pages(struct tol_pool *pool, uint64_t begin, uint64_t bytes);

/* Releases spares until want bytes are released, and returns the bytes released. */
uint64_t tol_stitch_release(struct tol_pool *pool, uint64_t want);

#endif

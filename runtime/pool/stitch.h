/*
 * Stitch: memory that a pool holds and no block uses, for a block elsewhere.
 *
 * Handles whose blocks are gone, and those of large blocks that are kept, are unmapped and mapped
 * again side by side where a block wants memory. Nothing is given to the driver between, so none of
 * it can go to another process, and none is asked for. What was unmapped and then had no place is
 * a spare, which the next to want memory gets. Internal: not installed. The caller holds the lock.
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

/* A handle that may be had, and where it is now. */
struct tol_stitch_piece {
    struct tol_memory memory;
    enum tol_stitch_from from;
    uint32_t order;          /* in which it was found */
    uint32_t handle;         /* of pages: its place among their handles */
    struct tol_large *large; /* of a kept block: that */
    size_t gap;              /* which of the gaps it is for, counted from 1; 0: none */
};

/* What is stitched: all zero at first, and to be ended. */
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

/* Where the ladder asks for it, or there are spares, chooses the handles that fill most of the gaps
 * and unmaps them; none of those that touch the pages of skip. On the ladder it fails, with
 * TOL_OUT_OF_DEVICE_MEMORY and nothing touched, where the rest could not be taken from the driver,
 * not even if what does not fit into the gaps were given back for it; and so much of that is. */
tol_status tol_stitch_begin(struct tol_stitch *stitch, struct tol_pool *pool,
                            const struct tol_page_gap *gaps, size_t gap_count,
                            struct tol_page_gap skip);

/* The piece has been mapped where it was wanted. */
void tol_stitch_placed(struct tol_stitch *stitch, struct tol_stitch_piece *piece);

/* Counts what was placed; what was unmapped and not placed is spare from now on. */
void tol_stitch_end(struct tol_stitch *stitch);

/* Stitches what the pages of a block lack; what it could not is left without memory. */
tol_status tol_stitch_pages(struct tol_pool *pool, uint64_t begin, uint64_t bytes);

/* Releases spares until want bytes were; how many were. */
uint64_t tol_stitch_release(struct tol_pool *pool, uint64_t want);

#endif

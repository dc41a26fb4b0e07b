/*
 * Hoard: all the device memory that can be had, in one of three ways, until a request is refused.
 *
 * What a refusal must say is looked at there and then, in whichever thread it comes; what was found
 * is checked by the attack's own.
 */
#ifndef HYP_HOARD_H
#define HYP_HOARD_H

#include "harness/attack.h"

enum hyp_hoard_way { HYP_HOARD_BUFFERS, HYP_HOARD_POOL, HYP_HOARD_DRIVERS_POOL, HYP_HOARD_WAYS };

/* "the pool" */
const char *hyp_hoard_name(enum hyp_hoard_way way);

enum { HYP_HOARD_MAX = 4096 };

struct hyp_hoard {
    enum hyp_hoard_way way;
    struct tol_context *context;
    struct tol_pool *pool;     /* NULL: buffers */
    struct tol_stream *stream; /* of the driver's pool, whose order is a stream's; else NULL */
    struct tol_buffer *buffers[HYP_HOARD_MAX];
    struct tol_block blocks[HYP_HOARD_MAX];
    size_t count, refusals;
    size_t first_bytes; /* a 64th of the device, so that some hundred blocks take it all */
    char trouble[600];  /* the first refusal that is none, or lacks its numbers */
};

/* A pool of that way. NULL: buffers, or the driver lacks what it takes, or a violation. */
struct tol_pool *hyp_hoard_pool(struct hyp_attack *attack, enum hyp_hoard_way way);

/* Begins an empty one. false: there is no such pool. */
bool hyp_hoard_open(struct hyp_attack *attack, enum hyp_hoard_way way, struct tol_stream *stream,
                    struct hyp_hoard *hoard);

/* Takes all there is: blocks of the first size, and where one is refused, of half of that, until
 * even one of a MiB is. May run in any thread. */
void hyp_hoard_take(struct hyp_hoard *hoard);

/* That something was taken, something refused, and each refusal an error with its numbers. */
void hyp_hoard_check(struct hyp_attack *attack, const struct hyp_hoard *hoard);

/* Frees all blocks and waits for the streams. */
void hyp_hoard_give(struct hyp_attack *attack, struct hyp_hoard *hoard);

/* Ends a pool, which must hold nothing when all is given back. NULL is a no-op. */
void hyp_hoard_end(struct hyp_attack *attack, struct tol_pool *pool);

#endif

/*
 * Pool walk: random allocations and frees on a pool, and how much of the held memory is in use.
 *
 * The ratio is the bytes that the driver has allocated, from the ledger, to the bytes requested for
 * live blocks. The worst ratio is taken above a floor of live bytes, because it means little below.
 * The pool's own statistics are compared with the ledger, which the attack must request (attack.h).
 */
#ifndef HYP_POOL_WALK_H
#define HYP_POOL_WALK_H

#include "harness/attack.h"

/* Sizes between least and most: uniform, or three in five up to 1 MiB, three in ten up to 32 MiB
 * and one in ten from 64 MiB on, all divided by scale. */
enum hyp_walk_sizes { HYP_WALK_UNIFORM, HYP_WALK_MIXED };

struct hyp_walk {
    struct hyp_attack *attack;
    struct tol_pool *pool;
    unsigned threads; /* each with its own stream and blocks; 0: one, without a stream */
    enum hyp_walk_sizes sizes;
    uint64_t scale;          /* divides the sizes; 0 is 1 */
    uint64_t least, most;    /* of uniform sizes in bytes, before scaling; most is exclusive */
    uint64_t floor_bytes;    /* the worst moment needs at least this many live bytes */
    const char *csv;         /* the name of the file (walk_csv.h); NULL: none */
    unsigned samples;        /* lines in the file; 0 is 1000 */
    double final, worst;     /* ratios; worst is 0 if the floor was never reached */
    uint64_t requested;      /* live, bytes */
    uint64_t requested_peak; /* ever */
    uint64_t step;           /* since the walk began */
    bool broken;             /* a call failed and a violation was recorded */
    struct hyp_walk_state *state;
};

/* Takes steps. allocate_percent of them allocate while at most most_live bytes are live (0: no
 * limit); the others free a random block. May be called again. */
void hyp_walk_steps(struct hyp_walk *walk, uint64_t steps, unsigned allocate_percent,
                    uint64_t most_live);

/* Frees all blocks, destroys the pool and checks that all memory was returned. Ends the walk. */
void hyp_walk_end(struct hyp_walk *walk);

/* Creates a pool from a profile, with its sizes divided by scale and the run's saboteur applied. A
 * pool with a limit may compact its pages, so only one thread may use it. NULL: a violation was
 * recorded. */
struct tol_pool *hyp_walk_pool(struct hyp_attack *attack,
                               void (*profile)(const struct tol_device *device,
                                               struct tol_pool_options *options),
                               uint64_t scale, uint64_t limit_bytes);

#endif

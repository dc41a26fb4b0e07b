/*
 * Pool walk: random allocations and frees over a pool, and how much of what it holds is in use.
 *
 * The ratio is what the driver has given, by the ledger, to what live blocks were asked for, of
 * which the worst is kept from a floor on, since a ratio to nearly nothing says nothing. What the
 * pool says of itself is compared with the ledger. Needs an attack that wants one (attack.h).
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
    unsigned threads; /* each with a stream and blocks of its own; 0 is 1, without a stream */
    enum hyp_walk_sizes sizes;
    uint64_t scale;          /* by which the sizes are divided; 0 is 1 */
    uint64_t least, most;    /* bytes, of uniform sizes, before that; most is not reached */
    uint64_t floor_bytes;    /* the worst moment is looked for where so much is live */
    const char *csv;         /* the evidence's file (walk_csv.h); NULL: none */
    unsigned samples;        /* in it; 0 is 1000 */
    double final, worst;     /* ratios; worst is 0 where the floor was never reached */
    uint64_t requested;      /* live, bytes */
    uint64_t requested_peak; /* ever */
    uint64_t step;           /* since the walk began */
    bool broken;             /* a call failed, a violation was noted */
    struct hyp_walk_state *state;
};

/* Takes steps: of a hundred, so many allocate, as long as no more than most_live bytes are live (0:
 * as many as there are), and the others free one at random. May be called again. */
void hyp_walk_steps(struct hyp_walk *walk, uint64_t steps, unsigned allocate_percent,
                    uint64_t most_live);

/* Frees all blocks, gives all memory back, and checks that nothing is held. Ends the walk. */
void hyp_walk_end(struct hyp_walk *walk);

/* Makes a pool of a profile with the sizes divided by scale, and the run's saboteur in it. One with
 * a limit may compact its pages: only one thread may use it. NULL: a violation was noted. */
struct tol_pool *hyp_walk_pool(struct hyp_attack *attack,
                               void (*profile)(const struct tol_device *device,
                                               struct tol_pool_options *options),
                               uint64_t scale, uint64_t limit_bytes);

#endif

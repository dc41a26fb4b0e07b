/*
 * Thread clock: for every CTA, the time up to which the work of each of its threads is ordered
 * before the next step of the clock's thread.
 *
 * A CTA has one time. It advances whenever one of its threads executes a barrier, a fence or
 * similar. Clocks are immutable and share their common parts: they are trees over CTA numbers. So
 * in a chain of thousands of blocks, each ordered after all before it, a link costs one path in a
 * tree. The caller synchronizes; only soft_clock_covers and
 * soft_clock_covers_any may be called at any time.
 */
#ifndef SOFT_THREAD_CLOCK_H
#define SOFT_THREAD_CLOCK_H

#include "chunks.h"

#include <stdbool.h>

struct soft_clock;

enum { SOFT_CLOCK_WARPS = 32, SOFT_CLOCK_LANES = 32 };

/* The clocks of one launch. */
struct soft_clocks {
    struct soft_chunks chunks;
    unsigned levels; /* of the trees */
    bool failed;     /* out of memory for one: clocks are incomplete */
};

void soft_clocks_begin(struct soft_clocks *clocks, uint64_t ctas);
void soft_clocks_end(struct soft_clocks *clocks);

/* NULL is the empty clock. The caller must drop clocks that functions return. */
struct soft_clock *soft_clock_hold(struct soft_clock *clock);
void soft_clock_drop(struct soft_clocks *clocks, struct soft_clock *clock);

/* A clock of one CTA: a number of warps, one time per thread. */
struct soft_clock *soft_clock_of(struct soft_clocks *clocks, uint32_t cta, uint32_t warps,
                                 uint32_t times[][SOFT_CLOCK_LANES]);

/* What either of two knows. */
struct soft_clock *soft_clock_join(struct soft_clocks *clocks, struct soft_clock *one,
                                   struct soft_clock *other);

/* Whether all of these lanes of a warp are known up to a time. */
bool soft_clock_covers(const struct soft_clocks *clocks, const struct soft_clock *clock,
                       uint32_t cta, uint32_t warp, uint32_t lanes, uint32_t time);

/* The same, but for any thread of the warps from warp on. */
bool soft_clock_covers_any(const struct soft_clocks *clocks, const struct soft_clock *clock,
                           uint32_t cta, uint32_t warp, uint32_t warps, uint32_t time);

#endif

/*
 * Race events: functions that the machine calls and the race check, on a higher floor, defines. See
 * check/race.h. If races are not checked, CTAs have no race state, and these return at once.
 */
#ifndef SOFT_RACE_EVENTS_H
#define SOFT_RACE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct soft_async_op;
struct soft_clock;
struct soft_cta;
struct soft_launch;
struct soft_warp;
struct soft_wgmma_op;

/* A CTA is laid out for a launch, begins as a block, is freed; the launch ends. */
void soft_race_prepare(struct soft_launch *launch, struct soft_cta *cta);
void soft_race_begin(struct soft_cta *cta);
void soft_race_give_back(struct soft_cta *cta);
void soft_race_end(struct soft_launch *launch);

/* All of a warp's threads have arrived at a barrier; it opens for its waiters, of all the CTA's
 * threads or of a number. Nothing without race state. */
void soft_race_arrive(struct soft_warp *warp, uint32_t barrier);
void soft_race_open(struct soft_cta *cta, uint32_t barrier);

/* An asynchronous copy starts, for some of its lanes, and is pending; or it has been waited for. */
void soft_race_copy(struct soft_warp *warp, const struct soft_async_op *copy, uint32_t lanes,
                    bool pending);

/* A warp issues its part of a product, which reads its factors until the wait. Nothing without race
 * state. */
void soft_race_product(struct soft_warp *warp, const struct soft_wgmma_op *op, bool pending);

/* A lane arrives at an mbarrier, named as in soft_mbarrier_find, and passes on its clock or (alone)
 * only its own accesses. After the lanes of an instruction, the CTA's time advances. Nothing
 * without race state. */
void soft_race_release(struct soft_warp *warp, uint32_t lane, uint32_t name, bool alone);
void soft_race_go_on(struct soft_cta *cta);

/* A lane's clock, and passing it on at an mbarrier later, which consumes the clock. A clock that is
 * never passed on is freed with the launch's. NULL, and nothing, without race state. */
struct soft_clock *soft_race_known(struct soft_warp *warp, uint32_t lane);
void soft_race_hand_on(struct soft_warp *warp, uint32_t name, struct soft_clock *known);

/* A kernel has freed memory, whose addresses may be reused. Nothing without race state. */
void soft_race_freed(struct soft_warp *warp, uint64_t address, uint64_t bytes);

/* A phase of an mbarrier is over; lanes have observed that; the mbarrier is initialised again. */
void soft_race_phase(struct soft_cta *cta, uint32_t offset);
void soft_race_acquire(struct soft_warp *warp, uint32_t lanes, uint32_t offset);
void soft_race_forget(struct soft_cta *cta, uint32_t offset);

/* The barrier of the cluster counts as an mbarrier of each of its CTAs at this offset; it opens. */
#define SOFT_RACE_CLUSTER UINT32_MAX
void soft_race_cluster(struct soft_cta *cta);

/* The last thread of a CTA of a cluster has exited: accesses of others to its shared memory must be
 * ordered before that. Nothing without race state. */
void soft_race_exit(struct soft_cta *cta);

#endif

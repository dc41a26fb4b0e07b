/*
 * Race: whether accesses of threads to the same byte of shared or global memory are ordered by the
 * PTX memory model, independent of the order in which they happened to run.
 *
 * Two accesses of different threads to one byte, at least one a write, race unless one is ordered
 * before the other, or both are strong (volatile, relaxed and so on, atomics) with scopes that
 * include each other. Barriers, mbarriers, __syncwarp and similar order accesses, and so does a
 * fence before a strong write that another thread's strong read observes. Each word has a cell with
 * its last write and the reads since; each thread has a clock of what is ordered before it. Source:
 * PTX ISA 9.0, chapter 8 (Memory Consistency Model).
 *
 * Without race in TOLLENS_SOFT_CHECK there is no cost: CTAs have no race state, and instructions
 * get their usual handlers when a module is loaded.
 */
#ifndef SOFT_RACE_H
#define SOFT_RACE_H

#include "machine/access.h"

/* A CTA is laid out for a launch, begins as a block, is given back; the launch ends. */
void soft_race_prepare(struct soft_launch *launch, struct soft_cta *cta);
void soft_race_begin(struct soft_cta *cta);
void soft_race_give_back(struct soft_cta *cta);
void soft_race_end(struct soft_launch *launch);

/* All of a warp's threads have come to a barrier; it opens for those who wait, of all the CTA's
 * threads or of a number. Nothing without race state. */
void soft_race_arrive(struct soft_warp *warp, uint32_t barrier);
void soft_race_open(struct soft_cta *cta, uint32_t barrier);

/* The lanes that run have come together in a .sync operation; or execute a fence. */
void soft_race_together(struct soft_warp *warp);
void soft_race_fence(struct soft_warp *warp, enum soft_scope scope);

/* The lanes that run are about to execute a load, a store or an atomic. */
void soft_race_access(struct soft_warp *warp, const struct soft_instruction *instruction);

/* The same of ldmatrix, stmatrix, wmma.load, wmma.store, for which all lanes have come. */
void soft_race_matrix(struct soft_warp *warp, const struct soft_instruction *instruction);

/* An asynchronous copy begins, for some of its lanes, and is pending; or it has been waited for. */
struct soft_copy;
void soft_race_copy(struct soft_warp *warp, const struct soft_copy *copy, uint32_t lanes,
                    bool pending);

/* A lane arrives at an mbarrier, and hands on all it knows or (alone) what it did itself. When the
 * lanes of an instruction have, the CTA goes on to its next time. Nothing without race state. */
void soft_race_release(struct soft_warp *warp, uint32_t lane, uint32_t offset, bool alone);
void soft_race_go_on(struct soft_cta *cta);

/* A kernel has freed memory, whose addresses may be others' next. Nothing without race state. */
void soft_race_freed(struct soft_warp *warp, uint64_t address, uint64_t bytes);

/* A phase of an mbarrier is over; lanes have seen that; it is made anew. */
void soft_race_phase(struct soft_cta *cta, uint32_t offset);
void soft_race_acquire(struct soft_warp *warp, uint32_t lanes, uint32_t offset);
void soft_race_forget(struct soft_cta *cta, uint32_t offset);

/* The barrier of the cluster counts as an mbarrier at this offset; it opens. */
#define SOFT_RACE_CLUSTER UINT32_MAX
void soft_race_cluster(struct soft_cta *cta);

#endif

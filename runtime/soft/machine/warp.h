/*
 * Warp: 32 threads that execute together, and the splits of a diverged warp.
 *
 * A split is a set of lanes at one instruction. A branch that diverges divides a split in two, with
 * a join between them: the lanes should reconverge at the branch's immediate post-dominator. A
 * split that arrives there waits in the join for the rest, and they continue as one. This is the
 * classic reconvergence stack, and as fast. In addition, splits take turns: after a quantum of
 * backward branches the next one runs, and after a few quanta the lanes that wait in a join
 * continue alone. So every thread eventually makes progress, as on Volta and later, even if it
 * waits for a thread of its own warp. Source: CUDA Programming Guide, independent thread
 * scheduling; PTX ISA 9.0, section 3.1.
 * Asserted by the operations: soft_split_is_valid, soft_warp_is_valid.
 */
#ifndef SOFT_WARP_H
#define SOFT_WARP_H

#include "machine_state.h"

/* Sets which lanes run. */
void soft_warp_set_mask(struct soft_warp *warp, uint32_t mask);

/* Puts all threads of the warp at an instruction. */
void soft_warp_begin(struct soft_warp *warp, const struct soft_instruction *entry);

/* Runs until the warp is blocked, done or has failed, or has used up its quantum and another split
 * or warp can run. */
enum soft_stop soft_warp_run(struct soft_warp *warp);

/* The lanes of the current split diverge: those of taken go to target, the others to the next
 * instruction. Returns the next instruction to execute. */
const struct soft_instruction *soft_warp_part(struct soft_warp *warp,
                                              const struct soft_instruction *branch,
                                              const struct soft_instruction *target,
                                              uint32_t taken);

/* The same for a branch by table: each lane's target is the instruction of that number in code; at
 * least two differ. Returns the next instruction. */
const struct soft_instruction *soft_warp_scatter(struct soft_warp *warp,
                                                 const struct soft_instruction *branch,
                                                 const struct soft_instruction *const targets[]);

/* Opens the join where lanes that are about to diverge will reconverge; NULL: they will not. */
void soft_warp_open_join(struct soft_warp *warp, const struct soft_instruction *meet);

/* The current split is at a join. Returns the next instruction, NULL to wait. */
const struct soft_instruction *soft_warp_meet(struct soft_warp *warp,
                                              const struct soft_instruction *join);

/* The active lanes exit. Returns the next instruction of the rest of the split, NULL if there is
 * none. */
const struct soft_instruction *soft_warp_exit(struct soft_warp *warp,
                                              const struct soft_instruction *next);

/* A free split, for lanes that diverge. */
struct soft_split *soft_warp_split(struct soft_warp *warp);

/* warp_sync.c: the current split is at a .sync operation with these member masks, one word per
 * lane, which differ or whose other members are missing. Runs it for the lanes whose members are
 * complete. Returns the next instruction, NULL if some lanes must wait or the masks are invalid. */
const struct soft_instruction *soft_warp_gather(struct soft_warp *warp,
                                                const struct soft_instruction *in,
                                                const uint32_t *members);

/* The same for an operation of all lanes of the warp, if some are elsewhere. Returns NULL: the
 * others wait for them, or they have exited and the launch has failed. */
const struct soft_instruction *soft_warp_whole(struct soft_warp *warp,
                                               const struct soft_instruction *in);

/* Runs the waiting .sync operations whose members are complete. true: there were some. */
bool soft_warp_exchange(struct soft_warp *warp);

/* Resumes the splits that are set aside in POLL. */
void soft_warp_time_out(struct soft_warp *warp);

/* ---- warp_valid.c, for asserts (base/deep_assert.h): not with NDEBUG ---- */

/* Whether the split that is about to run has lanes that have not exited, and the warp runs
 * those. */
bool soft_split_is_valid(const struct soft_warp *warp, const struct soft_split *split);

/* Whether each lane that has not exited is in one split or waits in one join, and the counters
 * agree. Walks all splits and their joins. Not after a fault. */
bool soft_warp_is_valid(const struct soft_warp *warp);

#endif

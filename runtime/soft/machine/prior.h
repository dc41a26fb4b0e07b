/*
 * Prior: the accesses of a grid, for grids that may begin before it has ended.
 *
 * With programmatic dependent launch, a grid may begin while the preceding grid still runs. Its
 * threads see what that grid writes only after griddepcontrol.wait, and until then must not write
 * what it uses. Here grids still run one after the other: an access by a thread that has not
 * waited, to bytes that the earlier grid uses, is reported however the grids would have overlapped.
 *
 * If a grid triggers its dependents before it has waited itself, they are not ordered after the
 * grids that it has not waited for. Source: PTX ISA 9.0, section 9.7.13.13 (griddepcontrol); CUDA
 * Programming Guide, "Programmatic Dependent Launch".
 *
 * Functions with a launch argument require soft_lock, unless stated otherwise.
 */
#ifndef SOFT_PRIOR_H
#define SOFT_PRIOR_H

#include "machine_state.h"
#include "memory/touch.h"

/* A launch starts to record its accesses: called before it begins. Without memory it does not. */
void soft_prior_keep(struct soft_launch *launch);

/* Add and release references; NULL is allowed. Thread-safe. */
struct soft_prior *soft_prior_hold(struct soft_prior *prior);
void soft_prior_drop(struct soft_prior *prior);

/* A launch that is queued may begin before a grid has ended. More than SOFT_PRIORS_MAX such grids
 * are forgotten. So is a grid if neither its module nor the launch's may contain griddepcontrol: it
 * cannot trigger the launch early, and the launch's kernel cannot be written to wait. */
void soft_prior_add(struct soft_launch *launch, struct soft_prior *prior);

/* A launch begins, and has ended. */
void soft_prior_begin(struct soft_launch *launch);
void soft_prior_end(struct soft_launch *launch);

/* Frees what a launch keeps. */
void soft_prior_clear(struct soft_launch *launch);

/* ---- while a launch runs; called by the thread that runs the CTA ---- */

/* griddepcontrol.wait, which counts for all lanes of the warp, and .launch_dependents. */
void soft_prior_wait(struct soft_warp *warp);
void soft_prior_trigger(struct soft_warp *warp);

/* A warp has synchronised with others of the CTA, at a barrier or otherwise: their waits count for
 * it too. */
static inline void soft_prior_meet(struct soft_warp *warp) {
    warp->waited |= warp->cta->waited;
}

/* A CTA has ended. */
void soft_prior_exit(struct soft_cta *cta);

/* A lane accesses global memory. base: the begin of its range. */
void soft_prior_access(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                       uint64_t base, uint64_t address, unsigned bytes, enum soft_touch touch);

/* Whether accesses of a launch are recorded or compared. */
static inline bool soft_prior_watches(const struct soft_launch *launch) {
    return launch->prior != NULL || launch->hidden_count > 0;
}

#endif

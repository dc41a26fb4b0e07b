/*
 * Mbarrier init: whether the initialisation of an mbarrier is visible to other blocks of a cluster.
 *
 * Another block may use an mbarrier only after its initialisation: the initialising thread executes
 * fence.mbarrier_init.release.cluster (or another fence of cluster scope) and arrives at the
 * cluster barrier, or arrives there without .relaxed; then a thread of the other block waits at
 * that barrier. Source: PTX ISA 9.0, sections 9.7.13.4 (fence) and 9.7.13.3 (barrier.cluster).
 *
 * Active only in clusters and with the check sync.
 */
#ifndef SOFT_MBARRIER_INIT_H
#define SOFT_MBARRIER_INIT_H

#include "machine_state.h"

/* A lane has initialised the object at an offset of its own block's shared memory. */
void soft_init_note(struct soft_warp *warp, uint32_t lane, uint32_t offset);

/* The active lanes execute a fence of at least cluster scope; for_inits: only for
 * initialisations. */
void soft_init_fence(struct soft_warp *warp, bool for_inits);

/* The active lanes arrive at the cluster barrier, and pass on their initialisations or (relaxed)
 * nothing; the barrier opens for a CTA; some of its threads have waited for it. */
void soft_init_arrive(struct soft_warp *warp, bool relaxed);
void soft_init_open(struct soft_cta *cta);
static inline void soft_init_wait(struct soft_cta *cta) {
    cta->cluster_known = cta->cluster_phase;
}

/* A lane uses the object at an offset of another block, home: reports it if the initialisation may
 * not be visible. */
void soft_init_use(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                   const struct soft_cta *home, uint32_t offset);

/* A CTA begins; it is gone. */
void soft_init_begin(struct soft_cta *cta);
void soft_init_drop(struct soft_cta *cta);

#endif

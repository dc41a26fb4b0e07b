/*
 * Mbarrier: a barrier object of eight bytes in shared memory.
 *
 * The manual calls the object opaque. Here its eight bytes hold the pending and expected arrivals,
 * the pending transaction bytes, and the parity of the phase. A phase completes when no arrivals
 * and no bytes are pending; then the next one starts. A thread that tests an incomplete phase is
 * set aside until the phase completes, until no other thread of the CTA can run, or until the CTA's
 * turn ends. In the latter two cases the test returns false, and the thread may test again.
 */
#ifndef SOFT_MBARRIER_H
#define SOFT_MBARRIER_H

#include "machine/access.h"
#include "lower/modes.h"

/* What happens to an object, at once. */
struct soft_mbarrier_change {
    uint32_t more;     /* arrivals pending in this phase besides the expected ones */
    uint32_t arrivals; /* that come */
    uint32_t dropped;  /* that later phases need not expect */
    int64_t bytes;     /* of transactions: pending, or, below zero, arrived in advance */
    bool must_not_complete;
};

/* Finds the object at an address of a lane of the current split. false: there is none, and the
 * launch has failed. *name is its offset in shared memory or, in another block of the cluster, its
 * soft_cluster_address. */
bool soft_mbarrier_find(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                        uint64_t address, enum soft_access_space space, uint32_t *name);

/* Changes an object; its waiters resume if the phase completes. *before is its previous state.
 * false: the change is invalid, and the launch has failed. */
bool soft_mbarrier_apply(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                         uint32_t name, const struct soft_mbarrier_change *change,
                         uint64_t *before);

/* mbarrier.init, .inval, .arrive, .arrive_drop, .expect_tx, .complete_tx */
const struct soft_instruction *soft_mbarrier_run(struct soft_warp *warp,
                                                 const struct soft_instruction *in);

/* The state of the object at an offset; the arrivals pending in a state, and its phase's parity. */
uint64_t soft_mbarrier_state(const struct soft_cta *cta, uint32_t offset);
uint32_t soft_mbarrier_pending(uint64_t state);
uint32_t soft_mbarrier_parity(uint64_t state);

/* Prints what the object at an offset waits for; always terminated. */
void soft_mbarrier_describe(const struct soft_cta *cta, uint32_t offset, char *text, size_t bytes);

#endif

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

#include "access.h"

/* What an instruction does, in the bits of its mode that SOFT_ACCESS_ leaves. */
enum {
    SOFT_MBARRIER_INIT = 0,
    SOFT_MBARRIER_INVAL = 1,
    SOFT_MBARRIER_ARRIVE = 2, /* b: how often */
    SOFT_MBARRIER_EXPECT_TX = 3,
    SOFT_MBARRIER_COMPLETE_TX = 4,
    SOFT_MBARRIER_ACT = 7,
    SOFT_MBARRIER_SHIFT = 18,
    SOFT_MBARRIER_DROP = 1 << 21,        /* an arrival that later phases need not wait for */
    SOFT_MBARRIER_NO_COMPLETE = 1 << 22, /* it does not end the phase */
    SOFT_MBARRIER_EXPECTS = 1 << 23,     /* b: bytes to come; it arrives once */
    SOFT_MBARRIER_STATE = 1 << 24,       /* d: the state before */
    SOFT_MBARRIER_PARITY = 1 << 25,      /* of a test: b is a parity, not a state */
    SOFT_MBARRIER_RELAXED = 1 << 26      /* an arrival hands nothing on, a test takes nothing */
};

/* What happens to an object, at once. */
struct soft_mbarrier_change {
    uint32_t more;     /* arrivals pending in this phase besides the expected ones */
    uint32_t arrivals; /* that come */
    uint32_t dropped;  /* that later phases need not expect */
    int64_t bytes;     /* of transactions: to come, or, below zero, that have come */
    bool must_not_complete;
};

/* Finds the object at an address of a lane of the current split. false: there is none, and the
 * launch has failed. *offset is its place in shared memory. */
bool soft_mbarrier_find(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                        uint64_t address, enum soft_access_space space, uint32_t *offset);

/* Changes an object; what waits for its phase goes on when that is over. *before is its state
 * before. false: it cannot be changed so, and the launch has failed. */
bool soft_mbarrier_apply(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                         uint32_t offset, const struct soft_mbarrier_change *change,
                         uint64_t *before);

/* mbarrier.init, .inval, .arrive, .arrive_drop, .expect_tx, .complete_tx */
const struct soft_instruction *soft_mbarrier_run(struct soft_warp *warp,
                                                 const struct soft_instruction *in);

/* mbarrier.test_wait, .try_wait: NULL while the current split is set aside. */
const struct soft_instruction *soft_mbarrier_test(struct soft_warp *warp,
                                                  const struct soft_instruction *in);

/* The arrivals pending in a state. */
uint32_t soft_mbarrier_pending(uint64_t state);

/* Lets those that are set aside go on: of all objects. false: there are none. */
bool soft_mbarrier_time_out(struct soft_cta *cta);

/* Says what the object at an offset waits for; always terminated. */
void soft_mbarrier_describe(const struct soft_cta *cta, uint32_t offset, char *text, size_t bytes);

#endif

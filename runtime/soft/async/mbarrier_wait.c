/*
 * Tests of mbarriers, and the splits that they set aside. Source: PTX ISA 9.0, section 9.7.13.15
 * (mbarrier).
 */
#include "mbarrier_wait.h"

#include "tollens/cuda_abi.h"
#include "async.h"
#include "machine/finding.h"
#include "mbarrier.h"
#include "machine/prior.h"
#include "machine/race_events.h"
#include "machine/warp.h"

#define EACH_LANE(lane, mask)                                                                      \
    for (uint32_t lane##_left = (mask), lane = 0;                                                  \
         lane##_left != 0 && (lane = (uint32_t)__builtin_ctz(lane##_left), true);                  \
         lane##_left &= lane##_left - 1)

/* Sets the current split aside until a phase of the object is over; UINT32_MAX: of any. */
static const struct soft_instruction *
set_aside(struct soft_warp *warp, const struct soft_instruction *in, uint32_t offset) {
    warp->split->state = SOFT_SPLIT_POLL;
    warp->split->barrier = offset;
    warp->polling++;
    return soft_warp_stop(warp, SOFT_STOP_SWITCH, in);
}

/* Some lanes have observed a completed phase, usually all of the same object. */
static void mbarrier_wait_acquire(struct soft_warp *warp, uint32_t lanes, const uint32_t *offsets) {
    if (warp->cta->race == NULL) return;
    while (lanes != 0) {
        uint32_t offset = offsets[__builtin_ctz(lanes)], same = 0;
        EACH_LANE(lane, lanes) same |= (uint32_t)(offsets[lane] == offset) << lane;
        soft_race_acquire(warp, same, offset);
        lanes &= ~same;
    }
}

const struct soft_instruction *soft_mbarrier_test(struct soft_warp *warp,
                                                  const struct soft_instruction *in) {
    struct soft_split *split = warp->split;
    uint32_t offsets[SOFT_LANES], over = 0, common = 0;
    bool first = true;
    EACH_LANE(lane, warp->mask) {
        uint64_t address = soft_access_address(warp, in, lane);
        if (!soft_mbarrier_find(warp, in, lane, address, soft_access_space(in->mode),
                                &offsets[lane]) ||
            !soft_async_arrive(warp, offsets[lane])) {
            return NULL;
        }
        if (offsets[lane] >> SOFT_RANK_SHIFT != 0) {
            return soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_ADDRESS, 1u << lane, address,
                                    "a test of an mbarrier of another block: a thread can wait "
                                    "only at one of its own block");
        }
        uint32_t parity = in->mode & SOFT_MBARRIER_PARITY
                              ? SLOT(uint32_t, in->b)[lane] & 1
                              : soft_mbarrier_parity(SLOT(uint64_t, in->b)[lane]);
        uint32_t now = soft_mbarrier_parity(soft_mbarrier_state(warp->cta, offsets[lane]));
        over |= (uint32_t)(now != parity) << lane;
        common = first || common == offsets[lane] ? offsets[lane] : UINT32_MAX;
        first = false;
    }
    if (over == 0 && !split->timed_out) return set_aside(warp, in, common);
    split->timed_out = false;
    EACH_LANE(lane, warp->mask & ~over) soft_async_look_for(warp->cta, offsets[lane]);
    if ((in->mode & SOFT_MBARRIER_RELAXED) == 0) mbarrier_wait_acquire(warp, over, offsets);
    if (over != 0) soft_prior_meet(warp);
    uint32_t *d = SLOT(uint32_t, in->d);
    *d = (*d & ~warp->mask) | over;
    return in + 1;
}

bool soft_mbarrier_time_out(struct soft_cta *cta) {
    bool any = false;
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        struct soft_warp *warp = &cta->warps[w];
        if (warp->polling == 0) continue;
        soft_warp_time_out(warp);
        cta->blocked &= ~(1u << w);
        any = true;
    }
    return any;
}

/*
 * Runs the warps of a CTA in turn.
 */
#include "cta.h"

#include "tollens/cuda_abi.h"
#include "async/async.h"
#include "machine/barrier.h"
#include "base/dice.h"
#include "machine/finding.h"
#include "async/mbarrier.h"
#include "async/mbarrier_wait.h"
#include "machine/prior.h"
#include "registers.h"
#include "machine/warp.h"
#include "async/wgmma.h"

#include <stdio.h>

static bool cta_waits(const struct soft_split *split) {
    return split->state == SOFT_SPLIT_BARRIER || split->state == SOFT_SPLIT_SYNC ||
           split->state == SOFT_SPLIT_POLL || split->state == SOFT_SPLIT_CLUSTER;
}

static const char *where_of(const struct soft_split *split) {
    switch (split->state) {
    case SOFT_SPLIT_BARRIER:
        return "a barrier";
    case SOFT_SPLIT_CLUSTER:
        return "the barrier of the cluster";
    case SOFT_SPLIT_POLL:
        return "a product that not all of its warpgroup have begun";
    default:
        return "a .sync operation";
    }
}

enum soft_stop soft_cta_deadlock(struct soft_cta *cta) {
    char where[120];
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        struct soft_warp *warp = &cta->warps[w];
        for (int s = 0; s < warp->split_end && warp->alive != 0; s++) {
            struct soft_split *split = &warp->splits[s];
            if (!cta_waits(split)) continue;
            warp->split = split;
            snprintf(where, sizeof where, "%s", where_of(split));
            if (split->state == SOFT_SPLIT_POLL && split->barrier != SOFT_POLL_WARPGROUP) {
                soft_mbarrier_describe(cta, split->barrier, where, sizeof where);
            }
            bool passed = split->state == SOFT_SPLIT_BARRIER || split->state == SOFT_SPLIT_CLUSTER;
            soft_launch_fail(warp, split->pc - passed, CUDA_ERROR_LAUNCH_TIMEOUT, split->mask, 0,
                             "deadlock: lanes 0x%08x of warp %u wait at %s for threads that never "
                             "arrive; %u of %u warps have exited",
                             split->mask, w, where, cta->warp_count - cta->warps_alive,
                             cta->warp_count);
            return SOFT_STOP_FAULT;
        }
    }
    return SOFT_STOP_FAULT;
}

enum soft_stop soft_cta_run(struct soft_cta *cta, struct soft_view *views) {
    for (;;) {
        bool ran = false, yielded = false;
        if (cta->dice != 0) (void)soft_dice_roll(&cta->dice, 1); /* another order each round */
        for (uint32_t i = 0; i < cta->warp_count; i++) {
            uint32_t w = i;
            if (cta->dice != 0) w = (uint32_t)soft_dice_place(cta->dice, i, cta->warp_count);
            struct soft_warp *warp = &cta->warps[w];
            if (warp->alive == 0 || (cta->blocked >> w & 1) != 0) continue;
            warp->views = views;
            ran = true;
            switch (soft_warp_run(warp)) {
            case SOFT_STOP_DONE:
                if (warp->async != NULL) soft_async_end(warp);
                if (cta->multiplies) soft_wgmma_end(warp);
                soft_cta_warp_ended(cta);
                break;
            case SOFT_STOP_YIELD:
                yielded = true;
                break;
            case SOFT_STOP_FAULT:
                return SOFT_STOP_FAULT;
            default:
                cta->blocked |= 1u << w;
                break;
            }
        }
        if (cta->warps_alive == 0) {
            soft_registers_end(cta);
            soft_prior_exit(cta);
            return SOFT_STOP_DONE;
        }
        if (yielded) {
            soft_mbarrier_time_out(cta);
            return SOFT_STOP_YIELD;
        }
        if (!ran && cta->cluster != NULL) return SOFT_STOP_BLOCKED;
        if (!ran && (++cta->idle > SOFT_IDLE_MAX || !soft_mbarrier_time_out(cta))) {
            return soft_cta_deadlock(cta);
        }
    }
}

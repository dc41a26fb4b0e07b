/*
 * The barrier of a cluster. Source: PTX ISA 9.0, section 9.7.13.4 (barrier.cluster).
 *
 * All threads of the cluster that have not exited take part; each arrives, and waits later. Unlike
 * the barriers of a CTA, it counts threads, not warps.
 */
#include "cluster_barrier.h"

#include "tollens/cuda_abi.h"
#include "cluster_member.h"
#include "finding.h"
#include "mbarrier_init.h"
#include "prior.h"
#include "race_events.h"

static const struct soft_instruction *
fail(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lanes, const char *what) {
    return soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, lanes, 0, "lanes 0x%08x %s",
                            lanes, what);
}

static bool all_there(const struct soft_cta *cta) {
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        const struct soft_warp *warp = &cta->warps[w];
        if ((warp->alive & ~warp->cluster_arrived) != 0) return false;
    }
    return true;
}

static void cluster_barrier_let_go(struct soft_cta *cta) {
    soft_init_open(cta);
    cta->cluster_begun = false;
    cta->idle = 0;
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        struct soft_warp *warp = &cta->warps[w];
        warp->cluster_arrived = 0;
        for (int s = 0; s < SOFT_SPLITS_MAX; s++) {
            if (warp->splits[s].state != SOFT_SPLIT_CLUSTER) continue;
            warp->splits[s].state = SOFT_SPLIT_READY;
            cta->cluster_met = true;
            soft_init_wait(cta);
            soft_prior_meet(warp);
            cta->blocked &= ~(1u << w);
        }
    }
}

void soft_cluster_check(struct soft_cta *cta) {
    uint32_t count = soft_cluster_count(cta);
    if (!all_there(cta)) return;
    for (uint32_t r = 0; r < count; r++) {
        if (!all_there(soft_cluster_member(cta, r))) return;
    }
    soft_race_cluster(cta);
    bool waited = false;
    for (uint32_t r = 0; r < count; r++) waited |= soft_cluster_member(cta, r)->waited;
    for (uint32_t r = 0; r < count; r++) {
        soft_cluster_member(cta, r)->waited = waited;
        cluster_barrier_let_go(soft_cluster_member(cta, r));
    }
}

const struct soft_instruction *soft_cluster_arrive(struct soft_warp *warp,
                                                   const struct soft_instruction *in) {
    struct soft_cta *cta = warp->cta;
    uint32_t twice = warp->cluster_owed & warp->mask, count = soft_cluster_count(cta);
    if (twice != 0) return fail(warp, in, twice, "arrive a second time without a wait in between");
    warp->cluster_arrived |= warp->mask;
    warp->cluster_owed |= warp->mask;
    for (uint32_t r = 0; r < count && !cta->cluster_begun; r++) {
        if (r != cta->rank) soft_cluster_member(cta, r)->cluster_begun = true;
    }
    cta->cluster_begun = true;
    for (uint32_t left = warp->mask; left != 0 && in->mode == 0; left &= left - 1) {
        soft_race_release(warp, (uint32_t)__builtin_ctz(left), SOFT_RACE_CLUSTER, false);
    }
    soft_init_arrive(warp, in->mode != 0);
    soft_race_go_on(cta);
    soft_cluster_check(cta);
    return in + 1;
}

const struct soft_instruction *soft_cluster_wait(struct soft_warp *warp,
                                                 const struct soft_instruction *in) {
    uint32_t absent = warp->mask & ~warp->cluster_owed;
    if (absent != 0) return fail(warp, in, absent, "wait without having arrived");
    warp->cluster_owed &= ~warp->mask;
    if ((warp->cluster_arrived & warp->mask) == 0) {
        warp->cta->cluster_met = true;
        soft_init_wait(warp->cta);
        soft_prior_meet(warp);
        soft_race_acquire(warp, warp->mask, SOFT_RACE_CLUSTER);
        return in + 1;
    }
    warp->split->state = SOFT_SPLIT_CLUSTER;
    return soft_warp_stop(warp, SOFT_STOP_SWITCH, in + 1);
}

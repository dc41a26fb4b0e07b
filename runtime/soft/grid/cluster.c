/*
 * How the CTAs of a cluster take turns.
 *
 * One host thread runs a cluster, one CTA at a time, so accesses of its CTAs to each other's memory
 * need no lock. A CTA runs until it must wait for another one.
 */
#include "cluster.h"

#include "async/async.h"
#include "base/dice.h"
#include "cta.h"
#include "async/mbarrier_wait.h"
#include "machine/race_events.h"

static bool can_run(const struct soft_cta *cta) {
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        if (cta->warps[w].alive != 0 && (cta->blocked >> w & 1) == 0) return true;
    }
    return false;
}

/* Resumes CTAs that have tested mbarriers. false: there are none, or they do nothing else. */
static bool time_out(struct soft_cluster *cluster) {
    bool any = false, hopeful = false;
    for (uint32_t r = 0; r < cluster->count; r++) {
        struct soft_cta *cta = cluster->members[r];
        if (cta->warps_alive == 0) continue;
        hopeful |= ++cta->idle <= SOFT_IDLE_MAX;
        any |= soft_mbarrier_time_out(cta);
    }
    return any && hopeful;
}

static enum soft_stop cluster_deadlock(struct soft_cluster *cluster) {
    uint32_t r = 0;
    while (r + 1 < cluster->count && cluster->members[r]->warps_alive == 0) r++;
    return soft_cta_deadlock(cluster->members[r]);
}

enum soft_stop soft_cluster_run(struct soft_cluster *cluster, struct soft_view *views) {
    struct soft_cta *first = cluster->members[0];
    for (;;) {
        bool ran = false, yielded = false;
        uint32_t alive = 0;
        for (uint32_t i = 0; i < cluster->count; i++) {
            uint32_t r = i;
            if (first->dice != 0) r = (uint32_t)soft_dice_place(first->dice, i, cluster->count);
            struct soft_cta *cta = cluster->members[r];
            alive += cta->warps_alive > 0;
            if (cta->warps_alive == 0 || !can_run(cta)) continue;
            ran = true;
            switch (soft_cta_run(cta, views)) {
            case SOFT_STOP_DONE:
                soft_async_lost(cta);
                soft_race_exit(cta);
                break;
            case SOFT_STOP_YIELD:
                yielded = true;
                break;
            case SOFT_STOP_FAULT:
                return SOFT_STOP_FAULT;
            default:
                break;
            }
        }
        if (alive == 0) return SOFT_STOP_DONE;
        if (yielded) {
            for (uint32_t r = 0; r < cluster->count; r++) {
                (void)soft_mbarrier_time_out(cluster->members[r]);
            }
            return SOFT_STOP_YIELD;
        }
        if (!ran && !time_out(cluster)) return cluster_deadlock(cluster);
    }
}

/*
 * A CTA's warps take turns; barriers hold them together.
 */
#include "cta.h"

#include "../cuda_abi.h"
#include "grid.h"

/* Wakes what waits at a barrier, and makes it ready for its next use. */
static void open_barrier(struct soft_cta *cta, uint32_t number) {
    struct soft_barrier *barrier = &cta->barriers[number];
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        if ((barrier->waiting >> w & 1) == 0) continue;
        struct soft_warp *warp = &cta->warps[w];
        for (int s = 0; s < SOFT_SPLITS_MAX; s++) {
            struct soft_split *split = &warp->splits[s];
            if (split->state == SOFT_SPLIT_BARRIER && split->barrier == number) {
                split->state = SOFT_SPLIT_READY;
            }
        }
        cta->blocked &= ~(1u << w);
    }
    *barrier = (struct soft_barrier){
        .red_and = barrier->red_and, .red_or = barrier->red_or, .red_count = barrier->red_count};
}

static bool is_full(const struct soft_cta *cta, const struct soft_barrier *barrier) {
    uint32_t expected = barrier->expected > 0 ? barrier->expected : cta->warps_alive * SOFT_LANES;
    return barrier->arrived > 0 && barrier->arrived >= expected;
}

bool soft_cta_arrive(struct soft_warp *warp, uint32_t number, uint32_t expected, bool wait) {
    struct soft_cta *cta = warp->cta;
    struct soft_barrier *barrier = &cta->barriers[number];
    barrier->expected = expected;
    barrier->arrived += SOFT_LANES;
    if (wait) barrier->waiting |= 1u << warp->index;
    if (!is_full(cta, barrier)) return false;
    open_barrier(cta, number);
    return true;
}

/* Whether two splits wait at the same .sync operation of the same call. */
static bool wait_together(const struct soft_split *one, const struct soft_split *other) {
    return other->state == SOFT_SPLIT_SYNC && other->pc == one->pc && other->frame == one->frame &&
           other->sync_members == one->sync_members;
}

/* Where splits that wait at one .sync operation are together all its members, runs it for all of
 * them at once; each then goes on for itself. */
static bool run_together(struct soft_warp *warp) {
    for (int s = 0; s < SOFT_SPLITS_MAX; s++) {
        struct soft_split *one = &warp->splits[s];
        uint32_t there = 0;
        if (one->state != SOFT_SPLIT_SYNC) continue;
        for (int t = 0; t < SOFT_SPLITS_MAX; t++) {
            if (wait_together(one, &warp->splits[t])) there |= warp->splits[t].mask;
        }
        if ((one->sync_members & warp->alive & ~there) != 0) continue;
        const struct soft_instruction *place = one->pc;
        struct soft_split like = *one;
        warp->split = one;
        warp->slots = one->frame->slots;
        soft_warp_set_mask(warp, there);
        if (place->run[warp->partial](warp, place) == NULL) return false;
        for (int t = 0; t < SOFT_SPLITS_MAX; t++) {
            if (!wait_together(&like, &warp->splits[t])) continue;
            warp->splits[t].state = SOFT_SPLIT_READY;
            warp->splits[t].pc = place + 1;
        }
        return true;
    }
    return false;
}

bool soft_cta_unblock(struct soft_warp *warp) {
    if (run_together(warp)) return true;
    uint32_t waiting = 0, barrier = 0;
    for (int s = 0; s < SOFT_SPLITS_MAX; s++) {
        const struct soft_split *split = &warp->splits[s];
        if (split->state != SOFT_SPLIT_BARRIER) continue;
        waiting |= split->mask;
        barrier = split->barrier;
    }
    struct soft_cta *cta = warp->cta;
    /* A warp arrives once: when the last of its threads that have not exited is there. */
    if (waiting == 0 || waiting != warp->alive ||
        (cta->barriers[barrier].waiting >> warp->index & 1) != 0) {
        return false;
    }
    return soft_cta_arrive(warp, barrier, cta->barriers[barrier].expected, true);
}

/* No warp can go on and none will: says who waits where. */
static enum soft_stop report_deadlock(struct soft_cta *cta) {
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        struct soft_warp *warp = &cta->warps[w];
        for (int s = 0; s < SOFT_SPLITS_MAX && warp->alive != 0; s++) {
            struct soft_split *split = &warp->splits[s];
            if (split->state != SOFT_SPLIT_BARRIER && split->state != SOFT_SPLIT_SYNC) continue;
            warp->split = split;
            soft_launch_fail(warp, split->pc - (split->state == SOFT_SPLIT_BARRIER),
                             CUDA_ERROR_LAUNCH_TIMEOUT, split->mask, 0,
                             "deadlock: lanes 0x%08x of warp %u wait at %s for threads that will "
                             "never come; %u of %u warps have exited",
                             split->mask, w,
                             split->state == SOFT_SPLIT_BARRIER ? "a barrier" : "a .sync operation",
                             cta->warp_count - cta->warps_alive, cta->warp_count);
            return SOFT_STOP_FAULT;
        }
    }
    return SOFT_STOP_FAULT;
}

static void warp_is_done(struct soft_cta *cta) {
    cta->warps_alive--;
    for (uint32_t b = 0; b < SOFT_BARRIERS; b++) {
        if (is_full(cta, &cta->barriers[b])) open_barrier(cta, b);
    }
}

enum soft_stop soft_cta_run(struct soft_cta *cta, struct soft_view *views) {
    for (;;) {
        bool ran = false, yielded = false;
        for (uint32_t w = 0; w < cta->warp_count; w++) {
            struct soft_warp *warp = &cta->warps[w];
            if (warp->alive == 0 || (cta->blocked >> w & 1) != 0) continue;
            warp->views = views;
            ran = true;
            switch (soft_warp_run(warp)) {
            case SOFT_STOP_DONE:
                warp_is_done(cta);
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
        if (cta->warps_alive == 0) return SOFT_STOP_DONE;
        if (!ran) return report_deadlock(cta);
        if (yielded) return SOFT_STOP_YIELD;
    }
}

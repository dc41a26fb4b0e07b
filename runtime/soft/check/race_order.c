/*
 * How barriers, .sync operations, fences and flags order accesses.
 *
 * One host thread runs a CTA, so the CTA's time is one number, and everything that its threads did
 * before a barrier has a smaller time than the barrier. A fence records the lane's clock; a strong
 * write after the fence passes that clock on. What the lane learns later through a barrier is
 * passed on only as far as the originating threads executed fences themselves: __threadfence() in
 * all threads, __syncthreads(), then a flag set by one thread is a pattern that works.
 */
#include "race.h"
#include "machine/race_events.h"
#include "race_state.h"

#include <string.h>

static uint32_t race_order_least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static uint32_t race_order_most(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* The time up to which a lane of a warp is ordered after another of that warp. */
static uint32_t knows_lane(const struct soft_warp_order *warp, uint32_t lane, uint32_t other) {
    return warp->parted ? race_order_most(warp->synced, warp->lanes[lane][other]) : warp->synced;
}

/* The lanes of a mark that the block's own order does not cover. */
static uint32_t unknown_in_block(const struct soft_checked_access *touch,
                                 const struct soft_mark *mark, uint32_t lanes) {
    const struct soft_warp_order *warp = &touch->cta->warps[touch->mark.warp];
    if (mark->warp != touch->mark.warp) return warp->warps[mark->warp] >= mark->time ? 0 : lanes;
    lanes &= ~(1u << touch->lane);
    if (warp->synced >= mark->time) return 0;
    for (uint32_t left = warp->parted ? lanes : 0; left != 0; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        if (knows_lane(warp, touch->lane, lane) >= mark->time) lanes &= ~(1u << lane);
    }
    return lanes;
}

/* Whether all of these lanes are known up to the time of the mark. */
static bool race_order_knows(const struct soft_checked_access *touch, const struct soft_mark *mark,
                             uint32_t lanes) {
    const struct soft_race_cta *own = touch->cta;
    if (lanes == 0) return true;
    if (mark->pending) return false;
    if (mark->cta == own->number) lanes = unknown_in_block(touch, mark, lanes);
    if (lanes == 0) return true;
    const struct soft_clock *clock = own->warps[touch->mark.warp].known[touch->lane];
    return clock != NULL &&
           soft_clock_covers(&touch->race->clocks, clock, mark->cta, mark->warp, lanes, mark->time);
}

/* Whether any thread of the mark's warpgroup is known. A thread knows itself. */
static bool knows_any(const struct soft_checked_access *touch, const struct soft_mark *mark) {
    const struct soft_race_cta *own = touch->cta;
    const struct soft_warp_order *warp = &own->warps[touch->mark.warp];
    const uint32_t first = mark->warp / SOFT_WARPGROUP * (uint32_t)SOFT_WARPGROUP;
    if (mark->pending) return false;
    for (uint32_t w = first; w < first + SOFT_WARPGROUP && mark->cta == own->number; w++) {
        if (w == touch->mark.warp || warp->warps[w] >= mark->time) return true;
    }
    const struct soft_clock *clock = warp->known[touch->lane];
    return clock != NULL && soft_clock_covers_any(&touch->race->clocks, clock, mark->cta, first,
                                                  SOFT_WARPGROUP, mark->time);
}

bool soft_race_ordered(const struct soft_checked_access *touch, const struct soft_mark *mark) {
    return mark->product ? knows_any(touch, mark) : race_order_knows(touch, mark, mark->lanes);
}

bool soft_race_all_ordered(const struct soft_checked_access *touch, const struct soft_mark *mark) {
    const struct soft_warp_order *warp = &touch->cta->warps[touch->mark.warp];
    if (mark->cta != touch->cta->number || mark->pending || mark->product) return false;
    if (mark->warp == touch->mark.warp) return warp->synced >= mark->time;
    return warp->warps[mark->warp] >= mark->time;
}

static void race_order_add(struct soft_race_cta *own, struct soft_clock **to,
                           struct soft_clock *clock) {
    struct soft_clocks *clocks = &own->race->clocks;
    if (clock == NULL || clock == *to) return;
    struct soft_clock *both = soft_clock_join(clocks, *to, clock);
    soft_clock_drop(clocks, *to);
    *to = both;
    own->acquired = true;
}

void soft_race_learn(const struct soft_checked_access *touch, struct soft_clock *clock) {
    struct soft_warp_order *warp = &touch->cta->warps[touch->mark.warp];
    race_order_add(touch->cta,
                   touch->observes ? &warp->observed[touch->lane] : &warp->known[touch->lane],
                   clock);
}

void soft_race_fence_reads(struct soft_warp *warp) {
    struct soft_race_cta *own = warp->cta->race;
    if (own == NULL || !own->race->is_strict || !own->acquired) return;
    struct soft_warp_order *order = &own->warps[warp->index];
    pthread_mutex_lock(&own->race->lock);
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        race_order_add(own, &order->known[lane], order->observed[lane]);
        soft_clock_drop(&own->race->clocks, order->observed[lane]);
        order->observed[lane] = NULL;
    }
    pthread_mutex_unlock(&own->race->lock);
}

/* The join of the additional clocks of a mask's lanes; with a reference. */
static struct soft_clock *race_order_gather(struct soft_clocks *clocks,
                                            const struct soft_warp_order *warp, uint32_t lanes,
                                            struct soft_clock *all) {
    for (uint32_t left = lanes; left != 0; left &= left - 1) {
        struct soft_clock *one = warp->known[__builtin_ctz(left)];
        if (one == NULL || one == all) continue;
        struct soft_clock *both = soft_clock_join(clocks, all, one);
        soft_clock_drop(clocks, all);
        all = both;
    }
    return all;
}

static void race_order_spread(struct soft_clocks *clocks, struct soft_warp_order *warp,
                              uint32_t lanes, struct soft_clock *all) {
    for (uint32_t left = lanes; left != 0; left &= left - 1) {
        struct soft_clock **one = &warp->known[__builtin_ctz(left)];
        if (*one == all) continue;
        soft_clock_drop(clocks, *one);
        *one = soft_clock_hold(all);
    }
}

void soft_race_arrive(struct soft_warp *warp, uint32_t number) {
    struct soft_race_cta *own = warp->cta->race;
    if (own == NULL) return;
    struct soft_warp_order *order = &own->warps[warp->index];
    struct soft_barrier_order *barrier = &own->barriers[number];
    for (uint32_t w = 0; w < own->warp_count; w++) {
        barrier->warps[w] = race_order_most(barrier->warps[w], order->warps[w]);
    }
    barrier->warps[warp->index] = own->time++;
    if (!own->acquired) return;
    pthread_mutex_lock(&own->race->lock);
    barrier->known = race_order_gather(&own->race->clocks, order, UINT32_MAX, barrier->known);
    pthread_mutex_unlock(&own->race->lock);
}

void soft_race_open(struct soft_cta *cta, uint32_t number) {
    struct soft_race_cta *own = cta->race;
    if (own == NULL) return;
    struct soft_barrier_order *barrier = &own->barriers[number];
    bool of_all = cta->barriers[number].expected == 0;
    for (uint32_t w = 0; w < own->warp_count; w++) {
        /* Threads that have exited count as there. */
        if (of_all && cta->warps[w].alive == 0) barrier->warps[w] = UINT32_MAX;
    }
    if (own->acquired) pthread_mutex_lock(&own->race->lock);
    for (uint32_t w = 0; w < own->warp_count; w++) {
        struct soft_warp_order *warp = &own->warps[w];
        if ((cta->barriers[number].waiting >> w & 1) == 0) continue;
        for (uint32_t x = 0; x < own->warp_count; x++) {
            warp->warps[x] = race_order_most(warp->warps[x], barrier->warps[x]);
        }
        warp->synced = race_order_most(warp->synced, barrier->warps[w]);
        if (own->acquired) race_order_spread(&own->race->clocks, warp, UINT32_MAX, barrier->known);
    }
    if (own->acquired) {
        soft_clock_drop(&own->race->clocks, barrier->known);
        pthread_mutex_unlock(&own->race->lock);
    }
    memset(barrier, 0, sizeof *barrier);
}

void soft_race_warp_sync(struct soft_warp *warp) {
    struct soft_race_cta *own = warp->cta->race;
    if (own == NULL) return;
    struct soft_warp_order *order = &own->warps[warp->index];
    uint32_t lanes = warp->mask, time = own->time++;
    if ((warp->alive & ~lanes) == 0) {
        order->synced = time;
    } else {
        uint32_t known[SOFT_LANES];
        for (uint32_t i = 0; i < SOFT_LANES; i++) {
            known[i] = lanes >> i & 1 ? time : 0;
            for (uint32_t left = lanes; left != 0 && order->parted; left &= left - 1) {
                known[i] = race_order_most(known[i], order->lanes[__builtin_ctz(left)][i]);
            }
        }
        for (uint32_t left = lanes; left != 0; left &= left - 1) {
            memcpy(order->lanes[__builtin_ctz(left)], known, sizeof known);
        }
        order->parted = true;
    }
    if (!own->acquired) return;
    pthread_mutex_lock(&own->race->lock);
    struct soft_clock *all = race_order_gather(&own->race->clocks, order, lanes, NULL);
    race_order_spread(&own->race->clocks, order, lanes, all);
    soft_clock_drop(&own->race->clocks, all);
    pthread_mutex_unlock(&own->race->lock);
}

void soft_race_fence(struct soft_warp *warp, enum soft_scope scope) {
    struct soft_race_cta *own = warp->cta->race;
    if (own == NULL) return;
    struct soft_warp_order *order = &own->warps[warp->index];
    int scopes = scope > SOFT_SCOPE_CTA ? 2 : 1;
    for (int far = 0; far < scopes; far++) {
        own->fenced[far] = true;
        for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(left);
            struct soft_fenced *fenced = &order->fenced[far][lane];
            fenced->time = own->time;
            fenced->synced = order->synced;
            if (order->parted) {
                memcpy(fenced->lanes, order->lanes[lane], sizeof fenced->lanes);
            } else {
                memset(fenced->lanes, 0, sizeof fenced->lanes);
            }
            memcpy(fenced->warps, order->warps, sizeof fenced->warps);
        }
    }
    own->time++;
}

/* What a strong write passes on about the threads of its CTA: one time each; 0 for nothing. */
static bool released_times(const struct soft_checked_access *touch, bool far,
                           uint32_t times[SOFT_WARPS_MAX][SOFT_LANES]) {
    const struct soft_race_cta *own = touch->cta;
    const struct soft_warp_order *mine = &own->warps[touch->mark.warp];
    const struct soft_fenced *fenced = &mine->fenced[far][touch->lane];
    bool any = fenced->time > 0;
    for (uint32_t w = 0; w < own->warp_count; w++) {
        const struct soft_warp_order *warp = &own->warps[w];
        uint32_t exist = touch->warp->cta->warps[w].threads;
        bool same = w == touch->mark.warp;
        for (uint32_t lane = 0; lane < SOFT_LANES; lane++) {
            uint32_t then = 0, now = same ? knows_lane(mine, touch->lane, lane) : mine->warps[w];
            if (fenced->time > 0) {
                then = !same                 ? fenced->warps[w]
                       : lane == touch->lane ? fenced->time
                                             : race_order_most(fenced->synced, fenced->lanes[lane]);
            }
            uint32_t by_own_fence = race_order_least(now, warp->fenced[far][lane].time);
            any |= by_own_fence > 0;
            times[w][lane] = lane == 0 || (exist >> lane & 1) != 0
                                 ? race_order_most(then, by_own_fence)
                                 : times[w][0];
        }
    }
    return any;
}

struct soft_clock *soft_race_released(const struct soft_checked_access *touch, bool near) {
    struct soft_race_cta *own = touch->cta;
    struct soft_clocks *clocks = &touch->race->clocks;
    struct soft_warp_order *mine = &own->warps[touch->mark.warp];
    uint32_t times[SOFT_WARPS_MAX][SOFT_LANES];
    if (!own->fenced[!near]) return NULL;
    struct soft_released *made = &mine->released[!near][touch->lane];
    if (made->time == own->time) return made->clock;
    struct soft_clock *clock = NULL;
    if (released_times(touch, !near, times)) {
        struct soft_clock *alone = soft_clock_of(clocks, own->number, own->warp_count, times);
        clock = soft_clock_join(clocks, mine->known[touch->lane], alone);
        soft_clock_drop(clocks, alone);
    }
    soft_clock_drop(clocks, made->clock);
    *made = (struct soft_released){.time = own->time, .clock = clock};
    return clock;
}

/*
 * Proxy fences. Source: PTX ISA 9.0, sections 8.2.2 (proxies) and 9.7.13.4 (fence.proxy.async).
 *
 * An ordinary write (generic proxy) is visible to the async proxy (bulk copies and other
 * asynchronous operations) only if, besides being ordered, a fence.proxy.async lies between the
 * two: in the writing thread after the write, in the thread that starts the asynchronous access, or
 * in another thread ordered after the write. Only the last fences of a lane are kept; a forgotten
 * one counts as executed. Writes of other blocks to global memory count as fenced.
 *
 * Copies read tensor maps through a separate proxy. Its fence is
 * fence.proxy.tensormap::generic.acquire; the releasing fence is not checked.
 */
#include "machine/cluster_member.h"
#include "machine/race_events.h"
#include "race.h"
#include "race_state.h"

#include <string.h>

static void note_fence(struct soft_race_cta *own, struct soft_warp_order *order, uint32_t lane,
                       struct soft_proxy_fences *fences) {
    fences->times[fences->count++ % SOFT_PROXY_FENCES] = own->time;
    fences->last.time = own->time;
    fences->last.synced = order->synced;
    if (order->parted) {
        memcpy(fences->last.lanes, order->lanes[lane], sizeof fences->last.lanes);
    } else {
        memset(fences->last.lanes, 0, sizeof fences->last.lanes);
    }
    memcpy(fences->last.warps, order->warps, sizeof fences->last.warps);
    soft_clock_drop(&own->race->clocks, fences->known);
    fences->known = soft_clock_hold(order->known[lane]);
}

void soft_race_proxy_fence(struct soft_warp *warp, uint32_t spaces) {
    struct soft_race_cta *own = warp->cta->race;
    if (own == NULL) return;
    struct soft_warp_order *order = &own->warps[warp->index];
    pthread_mutex_lock(&own->race->lock);
    for (int s = 0; s < SOFT_PROXY_SPACES; s++) {
        if ((spaces >> s & 1) == 0) continue;
        if (order->proxies[s] == NULL) {
            order->proxies[s] =
                soft_chunk_take(&own->chunks, SOFT_LANES * sizeof *order->proxies[s]);
        }
        if (order->proxies[s] == NULL) {
            atomic_store(&own->race->given_up, true);
            break;
        }
        for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(left);
            note_fence(own, order, lane, &order->proxies[s][lane]);
        }
    }
    own->time++;
    pthread_mutex_unlock(&own->race->lock);
}

void soft_race_proxies_begin(struct soft_race_cta *own) {
    for (uint32_t w = 0; w < own->warp_count; w++) {
        for (int s = 0; s < SOFT_PROXY_SPACES; s++) {
            struct soft_proxy_fences **place = &own->warps[w].proxies[s];
            for (uint32_t lane = 0; *place != NULL && lane < SOFT_LANES; lane++) {
                soft_clock_drop(&own->race->clocks, (*place)[lane].known);
            }
            soft_chunk_give(&own->chunks, *place, SOFT_LANES * sizeof **place);
            *place = NULL;
        }
    }
}

/* Whether a lane that has written has executed a fence since. */
static bool fenced_itself(const struct soft_checked_access *touch, const struct soft_race_cta *home,
                          const struct soft_mark *mark, uint32_t lane, int space) {
    const struct soft_proxy_fences *all = home->warps[mark->warp].proxies[space];
    if (all == NULL || all[lane].count == 0) return false;
    const struct soft_proxy_fences *fences = &all[lane];
    uint32_t kept = fences->count < SOFT_PROXY_FENCES ? fences->count : SOFT_PROXY_FENCES;
    uint32_t first = UINT32_MAX, oldest = UINT32_MAX;
    for (uint32_t i = 0; i < kept; i++) {
        uint32_t time = fences->times[i];
        if (time < oldest) oldest = time;
        if (time >= mark->time && time < first) first = time;
    }
    if (first == UINT32_MAX) return false;
    if (kept < fences->count && oldest >= mark->time) return true;
    /* The write is known; so must be the fence. */
    struct soft_mark fence = *mark;
    fence.lanes = 1u << lane;
    fence.time = first;
    return soft_race_ordered(touch, &fence);
}

/* Whether a lane knew of a write at its last fence. */
static bool fenced_for(const struct soft_race_cta *own, uint32_t warp, uint32_t lane,
                       const struct soft_mark *mark, uint32_t writer, int space) {
    const struct soft_proxy_fences *all = own->warps[warp].proxies[space];
    if (all == NULL || all[lane].count == 0) return false;
    const struct soft_fenced *last = &all[lane].last;
    if (mark->cta == own->number) {
        uint32_t in_warp = last->synced > last->lanes[writer] ? last->synced : last->lanes[writer];
        uint32_t known = mark->warp == warp ? in_warp : last->warps[mark->warp];
        if (known >= mark->time) return true;
    }
    return all[lane].known != NULL &&
           soft_clock_covers(&own->race->clocks, all[lane].known, mark->cta, mark->warp,
                             1u << writer, mark->time);
}

/* Whether any lane of a CTA did. */
static bool fenced_by_any(const struct soft_race_cta *own, const struct soft_mark *mark,
                          uint32_t writer, int space) {
    for (uint32_t w = 0; w < own->warp_count; w++) {
        for (uint32_t lane = 0; own->warps[w].proxies[space] != NULL && lane < SOFT_LANES; lane++) {
            if (fenced_for(own, w, lane, mark, writer, space)) return true;
        }
    }
    return false;
}

bool soft_race_is_proxied(const struct soft_checked_access *touch, const struct soft_mark *mark) {
    struct soft_cta *cta = touch->warp->cta;
    const struct soft_race_cta *home = NULL;
    int space = touch->maps ? 2 : touch->shared ? 0 : 1;
    for (uint32_t r = 0; r < soft_cluster_count(cta); r++) {
        const struct soft_cta *member = soft_cluster_member(cta, r);
        if (member->number == mark->cta) home = member->race;
    }
    if (home == NULL) return true;
    for (uint32_t left = mark->lanes; left != 0; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        if (!fenced_itself(touch, home, mark, lane, space) &&
            !fenced_by_any(touch->cta, mark, lane, space) &&
            (home == touch->cta || !fenced_by_any(home, mark, lane, space))) {
            return false;
        }
    }
    return true;
}

/*
 * The invariants of a warp and its splits, for asserts. Empty with NDEBUG.
 */
#include "warp.h"

#ifndef NDEBUG

bool soft_split_is_valid(const struct soft_warp *warp, const struct soft_split *split) {
    const struct soft_join *join = split->join;
    return split->state == SOFT_SPLIT_READY && split->mask != 0 &&
           (split->mask & ~warp->alive) == 0 && split->mask == warp->mask &&
           (warp->partial != 0) == (warp->mask != UINT32_MAX) && split->frame != NULL &&
           split->frame->users > 0 && warp->slots == split->frame->slots &&
           (join == NULL ||
            ((split->mask & ~join->expected) == 0 && (split->mask & join->arrived) == 0));
}

/* The lanes that wait in the joins of a split; false: a join has an unexpected lane, or two joins
 * have the same lane. */
static bool add_waiting(const struct soft_split *split, uint32_t *waiting) {
    uint32_t lanes = 0;
    for (const struct soft_join *join = split->join; join != NULL; join = join->outer) {
        if ((join->arrived & ~join->expected) != 0 || (join->arrived & lanes) != 0) return false;
        if ((split->mask & ~join->expected) != 0 || join->frame == NULL) return false;
        lanes |= join->arrived;
    }
    *waiting |= lanes;
    return true;
}

bool soft_warp_is_valid(const struct soft_warp *warp) {
    uint32_t in_splits = 0, waiting = 0, syncing = 0, polling = 0;
    if ((warp->alive & ~warp->threads) != 0) return false;
    if (warp->split < warp->splits || warp->split >= warp->splits + SOFT_SPLITS_MAX) return false;
    for (int s = 0; s < SOFT_SPLITS_MAX; s++) {
        const struct soft_split *split = &warp->splits[s];
        if (split->state == SOFT_SPLIT_FREE) continue;
        if (s >= warp->split_end || split->mask == 0 || (split->mask & in_splits) != 0)
            return false;
        if (split->frame == NULL || split->frame->users == 0) return false;
        if (!add_waiting(split, &waiting)) return false;
        in_splits |= split->mask;
        syncing += split->state == SOFT_SPLIT_SYNC;
        polling += split->state == SOFT_SPLIT_POLL;
    }
    return (in_splits & waiting) == 0 && (in_splits | waiting) == warp->alive &&
           syncing == warp->syncing && polling == warp->polling;
}

#endif

/*
 * Objects at which threads arrive and wait: mbarriers, and the cluster barrier. Source: PTX ISA
 * 9.0, section 9.7.13.15 (mbarrier).
 *
 * An arrival passes on its thread's accesses and clock; a test that observes a completed phase gets
 * what was passed on in that phase and earlier ones. What is passed on in the current phase is kept
 * separately, because a thread that has observed the previous phase is not ordered after it.
 */
#include "machine/cluster_member.h"
#include "machine/race_events.h"
#include "race_state.h"

#include <string.h>

static uint32_t race_object_most(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

static struct soft_object_order *race_object_find(struct soft_race_cta *own, uint32_t offset) {
    struct soft_object_order *object = own->objects;
    while (object != NULL && object->offset != offset) object = object->next;
    return object;
}

/* NULL: out of memory; nothing is checked any more. */
static struct soft_object_order *race_object_find_or_make(struct soft_race_cta *own,
                                                          uint32_t offset) {
    struct soft_object_order *object = race_object_find(own, offset);
    if (object != NULL) return object;
    object = soft_chunk_take(&own->chunks, sizeof *object);
    if (object == NULL) {
        atomic_store(&own->race->given_up, true);
        return NULL;
    }
    object->offset = offset;
    object->next = own->objects;
    own->objects = object;
    return object;
}

static void race_object_drop(struct soft_race_cta *own, struct soft_object_order **link) {
    struct soft_object_order *object = *link;
    *link = object->next;
    soft_clock_drop(&own->race->clocks, object->known);
    soft_clock_drop(&own->race->clocks, object->done);
    soft_chunk_give(&own->chunks, object, sizeof *object);
}

void soft_race_objects_begin(struct soft_race_cta *own) {
    while (own->objects != NULL) race_object_drop(own, &own->objects);
}

void soft_race_forget(struct soft_cta *cta, uint32_t offset) {
    struct soft_race_cta *own = cta->race;
    if (own == NULL) return;
    pthread_mutex_lock(&own->race->lock);
    struct soft_object_order **link = &own->objects;
    while (*link != NULL && (*link)->offset != offset) link = &(*link)->next;
    if (*link != NULL) race_object_drop(own, link);
    pthread_mutex_unlock(&own->race->lock);
}

static void race_object_join(struct soft_clocks *clocks, struct soft_clock **place,
                             struct soft_clock *clock) {
    struct soft_clock *both = soft_clock_join(clocks, *place, clock);
    soft_clock_drop(clocks, *place);
    *place = both;
}

/* What a lane knows of another of its CTA. */
static uint32_t known_of(const struct soft_warp_order *order, uint32_t lane, uint32_t other) {
    return order->parted ? race_object_most(order->synced, order->lanes[lane][other])
                         : order->synced;
}

/* A lane's own accesses and, unless alone, its clock. The caller has the lock, and drops the
 * clock. */
static struct soft_clock *race_object_clock_of(const struct soft_warp *warp, uint32_t lane,
                                               bool alone) {
    struct soft_race_cta *own = warp->cta->race;
    const struct soft_warp_order *order = &own->warps[warp->index];
    struct soft_clocks *clocks = &own->race->clocks;
    uint32_t times[SOFT_WARPS_MAX][SOFT_LANES];
    for (uint32_t w = 0; w < own->warp_count; w++) {
        for (uint32_t i = 0; i < SOFT_LANES; i++) {
            bool exists = (warp->cta->warps[w].threads >> i & 1) != 0;
            bool same = w == warp->index;
            uint32_t like = exists ? i : 0;
            times[w][i] = same && like == lane ? own->time
                          : alone              ? 0
                          : same               ? known_of(order, lane, like)
                                               : order->warps[w];
        }
    }
    struct soft_clock *clock = soft_clock_of(clocks, own->number, own->warp_count, times);
    if (!alone) race_object_join(clocks, &clock, order->known[lane]);
    return clock;
}

/* To an object of another CTA of the cluster, a lane passes on a clock. */
static void release_far(struct soft_warp *warp, uint32_t lane, struct soft_object_order *object,
                        bool alone) {
    struct soft_clocks *clocks = &warp->cta->race->race->clocks;
    struct soft_clock *clock = race_object_clock_of(warp, lane, alone);
    race_object_join(clocks, &object->known, clock);
    soft_clock_drop(clocks, clock);
}

static void release_near(struct soft_warp *warp, uint32_t lane, struct soft_object_order *object,
                         bool alone) {
    struct soft_race_cta *own = warp->cta->race;
    const struct soft_warp_order *order = &own->warps[warp->index];
    uint32_t *lanes = object->lanes[warp->index];
    for (uint32_t w = 0; w < own->warp_count && !alone; w++) {
        object->warps[w] = race_object_most(object->warps[w], order->warps[w]);
    }
    for (uint32_t i = 0; i < SOFT_LANES && !alone; i++) {
        lanes[i] = race_object_most(lanes[i], known_of(order, lane, i));
    }
    lanes[lane] = own->time;
    if (!alone) race_object_join(&own->race->clocks, &object->known, order->known[lane]);
}

/* The CTA of the object of a name, and where it is there. */
static struct soft_cta *race_object_home_of(struct soft_warp *warp, uint32_t name,
                                            uint32_t *offset) {
    *offset = name;
    return name == SOFT_RACE_CLUSTER ? warp->cta : soft_cluster_find(warp->cta, name, offset);
}

struct soft_clock *soft_race_known(struct soft_warp *warp, uint32_t lane) {
    struct soft_race_cta *own = warp->cta->race;
    if (own == NULL) return NULL;
    pthread_mutex_lock(&own->race->lock);
    struct soft_clock *known = race_object_clock_of(warp, lane, false);
    pthread_mutex_unlock(&own->race->lock);
    return known;
}

void soft_race_hand_on(struct soft_warp *warp, uint32_t name, struct soft_clock *known) {
    struct soft_race_cta *own = warp->cta->race;
    if (own == NULL) return;
    uint32_t offset = 0;
    struct soft_cta *home = race_object_home_of(warp, name, &offset);
    struct soft_clocks *clocks = &own->race->clocks;
    pthread_mutex_lock(&own->race->lock);
    struct soft_object_order *object =
        home->race != NULL ? race_object_find_or_make(home->race, offset) : NULL;
    if (object != NULL) race_object_join(clocks, &object->known, known);
    soft_clock_drop(clocks, known);
    pthread_mutex_unlock(&own->race->lock);
}

void soft_race_release(struct soft_warp *warp, uint32_t lane, uint32_t name, bool alone) {
    struct soft_race_cta *own = warp->cta->race;
    if (own == NULL) return;
    uint32_t offset = 0;
    struct soft_cta *home = race_object_home_of(warp, name, &offset);
    if (home->race == NULL) return;
    pthread_mutex_lock(&own->race->lock);
    struct soft_object_order *object = race_object_find_or_make(home->race, offset);
    if (object != NULL && home != warp->cta) release_far(warp, lane, object, alone);
    if (object != NULL && home == warp->cta) release_near(warp, lane, object, alone);
    pthread_mutex_unlock(&own->race->lock);
}

void soft_race_go_on(struct soft_cta *cta) {
    if (cta->race != NULL) cta->race->time++;
}

void soft_race_phase(struct soft_cta *cta, uint32_t offset) {
    struct soft_race_cta *own = cta->race;
    uint32_t times[SOFT_WARPS_MAX][SOFT_LANES];
    if (own == NULL) return;
    struct soft_clocks *clocks = &own->race->clocks;
    pthread_mutex_lock(&own->race->lock);
    struct soft_object_order *object = race_object_find(own, offset);
    for (uint32_t w = 0; w < own->warp_count && object != NULL; w++) {
        for (uint32_t i = 0; i < SOFT_LANES; i++) {
            bool exists = (cta->warps[w].threads >> i & 1) != 0;
            uint32_t like = exists ? i : 0;
            times[w][i] = race_object_most(object->warps[w], object->lanes[w][like]);
        }
    }
    if (object != NULL) {
        struct soft_clock *own_threads = soft_clock_of(clocks, own->number, own->warp_count, times);
        race_object_join(clocks, &object->done, own_threads);
        race_object_join(clocks, &object->done, object->known);
        soft_clock_drop(clocks, own_threads);
        soft_clock_drop(clocks, object->known);
        object->known = NULL;
        memset(object->warps, 0, sizeof object->warps);
        memset(object->lanes, 0, sizeof object->lanes);
    }
    pthread_mutex_unlock(&own->race->lock);
}

void soft_race_acquire(struct soft_warp *warp, uint32_t lanes, uint32_t offset) {
    struct soft_race_cta *own = warp->cta->race;
    if (own == NULL) return;
    struct soft_clocks *clocks = &own->race->clocks;
    struct soft_clock **known = own->warps[warp->index].known, *before = NULL, *behind = NULL;
    pthread_mutex_lock(&own->race->lock);
    const struct soft_object_order *object = race_object_find(own, offset);
    if (object != NULL && object->done != NULL) {
        own->acquired = true;
        behind = soft_clock_hold(object->done);
        for (uint32_t left = lanes; left != 0; left &= left - 1) {
            struct soft_clock **one = &known[__builtin_ctz(left)];
            /* Usually all lanes had the same clock before. */
            if (*one != before) {
                soft_clock_drop(clocks, before);
                soft_clock_drop(clocks, behind);
                before = soft_clock_hold(*one);
                behind = soft_clock_join(clocks, before, object->done);
            }
            soft_clock_drop(clocks, *one);
            *one = soft_clock_hold(behind);
        }
        soft_clock_drop(clocks, before);
        soft_clock_drop(clocks, behind);
    }
    pthread_mutex_unlock(&own->race->lock);
}

/* At the cluster barrier, the threads of a CTA pass on their clocks. */
static void end_phase(struct soft_cta *cta) {
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        /* Threads that have exited count as there. */
        uint32_t gone = cta->warps[w].threads & ~cta->warps[w].alive;
        for (uint32_t left = gone; left != 0; left &= left - 1) {
            soft_race_release(&cta->warps[w], (uint32_t)__builtin_ctz(left), SOFT_RACE_CLUSTER,
                              true);
        }
    }
    soft_race_go_on(cta);
    soft_race_phase(cta, SOFT_RACE_CLUSTER);
}

/* What all CTAs have passed on at the barrier becomes known to each. */
static void race_object_share(struct soft_cta *first) {
    struct soft_race *race = first->race->race;
    struct soft_clock *all = NULL;
    pthread_mutex_lock(&race->lock);
    for (uint32_t r = 0; r < soft_cluster_count(first); r++) {
        struct soft_race_cta *own = soft_cluster_member(first, r)->race;
        const struct soft_object_order *object =
            own != NULL ? race_object_find(own, SOFT_RACE_CLUSTER) : NULL;
        if (object != NULL) race_object_join(&race->clocks, &all, object->done);
    }
    for (uint32_t r = 0; r < soft_cluster_count(first); r++) {
        struct soft_race_cta *own = soft_cluster_member(first, r)->race;
        struct soft_object_order *object =
            own != NULL ? race_object_find_or_make(own, SOFT_RACE_CLUSTER) : NULL;
        if (object != NULL) race_object_join(&race->clocks, &object->done, all);
    }
    soft_clock_drop(&race->clocks, all);
    pthread_mutex_unlock(&race->lock);
}

void soft_race_cluster(struct soft_cta *first) {
    if (first->race == NULL) return;
    uint32_t count = soft_cluster_count(first);
    for (uint32_t r = 0; r < count; r++) end_phase(soft_cluster_member(first, r));
    if (count > 1) race_object_share(first);
    for (uint32_t r = 0; r < count; r++) {
        struct soft_cta *cta = soft_cluster_member(first, r);
        for (uint32_t w = 0; w < cta->warp_count; w++) {
            struct soft_warp *warp = &cta->warps[w];
            /* Those that wait; the others take it when they do. */
            uint32_t lanes = warp->alive & ~warp->cluster_owed;
            soft_race_acquire(warp, lanes, SOFT_RACE_CLUSTER);
        }
    }
}

/*
 * Splits and joins. The common case is one split with all lanes; everything here
 * is for the others. */
#include "warp.h"

#include "cta.h"

#include <string.h>

/* Backward branches a split may take before others get their turn, and how many such turns lanes
 * wait in a join before they are let go alone. */
enum { QUANTUM = 1 << 12, PATIENCE = 4 };

void soft_warp_set_mask(struct soft_warp *warp, uint32_t mask) {
    warp->mask = mask;
    warp->partial = mask != UINT32_MAX;
    for (int i = 0; i < SOFT_LANES; i++) warp->lane[i] = 0 - (mask >> i & 1);
}

static struct soft_split *new_split(struct soft_warp *warp) {
    /* Every split has a lane of its own, so there is always a free one. */
    struct soft_split *split = warp->splits;
    while (split->state != SOFT_SPLIT_FREE) split++;
    return split;
}

/* NULL when none is free: the lanes then go on without meeting again, slower and as right. */
static struct soft_join *new_join(struct soft_warp *warp) {
    for (struct soft_join *join = warp->joins; join < warp->joins + SOFT_JOINS_MAX; join++) {
        if (join->at == NULL) return join;
    }
    return NULL;
}

static void end_join(struct soft_join *join) {
    join->at = NULL;
    join->frame->users--;
}

static void end_split(struct soft_split *split) {
    split->state = SOFT_SPLIT_FREE;
    split->frame->users--;
}

static bool is_at(const struct soft_join *join, const struct soft_instruction *place,
                  const struct soft_frame *frame) {
    return join != NULL && join->at == place && join->frame == frame;
}

void soft_warp_begin(struct soft_warp *warp, const struct soft_instruction *entry) {
    memset(warp->splits, 0, sizeof warp->splits);
    memset(warp->joins, 0, sizeof warp->joins);
    warp->alive = warp->threads;
    warp->stop = SOFT_STOP_NONE;
    warp->rounds = 0;
    warp->quantum = QUANTUM;
    warp->split = warp->splits;
    warp->bottom.users = 1;
    *warp->split = (struct soft_split){
        .state = SOFT_SPLIT_READY,
        .mask = warp->threads,
        .pc = entry,
        .frame = &warp->bottom,
    };
}

const struct soft_instruction *soft_warp_stop(struct soft_warp *warp, enum soft_stop why,
                                              const struct soft_instruction *pc) {
    warp->stop = why;
    warp->split->pc = pc;
    return NULL;
}

static void enter_split(struct soft_warp *warp, struct soft_split *split) {
    warp->split = split;
    warp->slots = split->frame->slots;
    warp->quantum = QUANTUM;
    soft_warp_set_mask(warp, split->mask);
}

const struct soft_instruction *soft_warp_part(struct soft_warp *warp,
                                              const struct soft_instruction *branch,
                                              const struct soft_instruction *target,
                                              uint32_t taken) {
    struct soft_split *split = warp->split;
    const struct soft_instruction *meet = branch->u.join;
    if (meet != NULL && !is_at(split->join, meet, split->frame)) {
        struct soft_join *join = new_join(warp);
        if (join != NULL) {
            *join = (struct soft_join){
                .at = meet, .expected = split->mask, .outer = split->join, .frame = split->frame};
            split->join = join;
            split->frame->users++;
        }
    }
    split->mask &= ~taken;
    soft_warp_set_mask(warp, split->mask);
    if (target == meet && is_at(split->join, meet, split->frame)) {
        /* Straight to the meeting place: no need to run there. */
        split->join->arrived |= taken;
        return branch + 1;
    }
    struct soft_split *other = new_split(warp);
    *other = *split;
    other->mask = taken;
    other->pc = target;
    split->frame->users++;
    return branch + 1;
}

/* The lanes that wait in a join become a split that goes on there. It is executed once more by the
 * join instruction, which looks for an outer join at the same place. */
static void resume(struct soft_join *join, struct soft_split *split) {
    *split = (struct soft_split){
        .state = SOFT_SPLIT_READY,
        .mask = join->arrived,
        .pc = join->at,
        .join = join->outer,
        .frame = join->frame,
    };
    join->frame->users++;
}

const struct soft_instruction *soft_warp_meet(struct soft_warp *warp,
                                              const struct soft_instruction *place) {
    struct soft_split *split = warp->split;
    while (is_at(split->join, place, split->frame)) {
        struct soft_join *join = split->join;
        join->arrived |= split->mask;
        end_split(split);
        if (join->arrived != join->expected) {
            warp->stop = SOFT_STOP_SWITCH;
            return NULL;
        }
        resume(join, split);
        end_join(join);
        warp->rounds = 0;
    }
    soft_warp_set_mask(warp, split->mask);
    return place + 1;
}

const struct soft_instruction *soft_warp_exit(struct soft_warp *warp,
                                              const struct soft_instruction *next) {
    struct soft_split *split = warp->split;
    uint32_t gone = warp->mask;
    warp->alive &= ~gone;
    split->mask &= ~gone;
    for (struct soft_join *join = split->join; join != NULL; join = join->outer) {
        join->expected &= ~gone;
    }
    if (split->mask != 0) {
        soft_warp_set_mask(warp, split->mask);
        return next;
    }
    end_split(split);
    warp->stop = SOFT_STOP_SWITCH;
    /* Lanes that waited for the ones gone need wait no longer. */
    for (struct soft_join *join = split->join, *outer = NULL; join != NULL; join = outer) {
        outer = join->outer;
        if (join->expected != 0 && join->arrived != join->expected) break;
        if (join->expected != 0) resume(join, new_split(warp));
        end_join(join);
        if (join->expected != 0) break;
    }
    return NULL;
}

/* Lets the lanes that wait in the current split's joins go on alone. */
static void let_go(struct soft_warp *warp) {
    for (struct soft_join *join = warp->split->join; join != NULL; join = join->outer) {
        if (join->arrived == 0) continue;
        resume(join, new_split(warp));
        join->expected &= ~join->arrived;
        join->arrived = 0;
    }
    warp->rounds = 0;
}

/* The next split that can run, after the current one; NULL when none can. */
static struct soft_split *next_ready(struct soft_warp *warp) {
    size_t begin = (size_t)(warp->split - warp->splits);
    for (size_t i = 1; i <= SOFT_SPLITS_MAX; i++) {
        struct soft_split *split = &warp->splits[(begin + i) % SOFT_SPLITS_MAX];
        if (split->state == SOFT_SPLIT_READY) return split;
    }
    return NULL;
}

enum soft_stop soft_warp_run(struct soft_warp *warp) {
    struct soft_split *split =
        warp->split->state == SOFT_SPLIT_READY ? warp->split : next_ready(warp);
    while (split != NULL) {
        enter_split(warp, split);
        warp->stop = SOFT_STOP_NONE;
        const struct soft_instruction *next = split->pc;
        do {
            next = next->run[warp->partial](warp, next);
        } while (next != NULL);

        if (warp->stop == SOFT_STOP_FAULT) return SOFT_STOP_FAULT;
        if (warp->alive == 0) return SOFT_STOP_DONE;
        if (warp->stop == SOFT_STOP_YIELD) {
            if (++warp->rounds >= PATIENCE) let_go(warp);
            split = next_ready(warp);
            if (split == warp->split) return SOFT_STOP_YIELD;
            /* Another split of this warp is next, but other warps get their turn first. */
            warp->split = split;
            return SOFT_STOP_YIELD;
        }
        split = next_ready(warp);
        if (split == NULL && soft_cta_unblock(warp)) split = next_ready(warp);
    }
    return SOFT_STOP_BLOCKED;
}

/*
 * Splits and joins. Usually one split has all lanes; everything here handles the other cases.
 */
#include "warp.h"

#include "barrier.h"
#include "base/deep_assert.h"
#include "cluster_barrier.h"
#include "base/dice.h"
#include "frame.h"
#include "taint.h"

#include <stdlib.h>
#include <string.h>

/* The backward branches that a split may take before others get their turn, and the turns that
 * lanes wait in a join before they continue alone. A split that uses up its turns may be spinning
 * for the lanes that wait for it in a join, so its turns get shorter. */
enum { QUANTUM = 1 << 12, QUANTUM_ALONE = 1 << 9, QUANTUM_AWAITED = 1 << 5, PATIENCE = 4 };

void soft_warp_set_mask(struct soft_warp *warp, uint32_t mask) {
    if (mask == warp->mask) return;
    warp->mask = mask;
    warp->partial = mask != UINT32_MAX;
    for (int i = 0; i < SOFT_LANES; i++) warp->lane[i] = 0 - (mask >> i & 1);
}

struct soft_split *soft_warp_split(struct soft_warp *warp) {
    /* Every split has a lane of its own, so there is always a free one. */
    struct soft_split *split = warp->splits;
    while (split->state != SOFT_SPLIT_FREE) split++;
    int end = (int)(split - warp->splits) + 1;
    if (end > warp->split_end) warp->split_end = end;
    return split;
}

static void add_joins(struct soft_warp *warp, struct soft_joins *joins) {
    for (int i = 0; i < SOFT_JOINS_AT_ONCE; i++) {
        joins->items[i].outer = warp->free_join;
        warp->free_join = &joins->items[i];
    }
}

/* NULL when the host is out of memory: the lanes then continue without reconverging, slower but
 * correct. */
static struct soft_join *new_join(struct soft_warp *warp) {
    warp->parted = true;
    if (warp->free_join == NULL) {
        struct soft_joins *more = malloc(sizeof *more);
        if (more == NULL) return NULL;
        more->next = warp->more_joins;
        warp->more_joins = more;
        add_joins(warp, more);
    }
    struct soft_join *join = warp->free_join;
    warp->free_join = join->outer;
    return join;
}

static void end_join(struct soft_warp *warp, struct soft_join *join) {
    soft_frame_release(warp, join->frame);
    join->outer = warp->free_join;
    warp->free_join = join;
}

static void count_from(struct soft_warp *warp, const struct soft_frame *frame,
                       const struct soft_instruction *place) {
    warp->executed -= soft_code_number(frame->code, place);
}

static void count_to(struct soft_warp *warp, const struct soft_frame *frame,
                     const struct soft_instruction *place) {
    warp->executed += soft_code_number(frame->code, place);
}

static void end_split(struct soft_warp *warp, struct soft_split *split) {
    split->state = SOFT_SPLIT_FREE;
    soft_frame_release(warp, split->frame);
}

static bool warp_is_at(const struct soft_join *join, const struct soft_instruction *place,
                       const struct soft_frame *frame) {
    return join != NULL && join->at == place && join->frame == frame;
}

void soft_warp_begin(struct soft_warp *warp, const struct soft_instruction *entry) {
    memset(warp->splits, 0, (size_t)warp->split_end * sizeof warp->splits[0]);
    warp->split_end = 1;
    if (warp->parted || warp->free_join == NULL) {
        warp->free_join = NULL;
        for (struct soft_joins *j = warp->more_joins; j != NULL; j = j->next) add_joins(warp, j);
        add_joins(warp, &warp->joins);
        warp->parted = false;
    }
    warp->alive = warp->threads;
    soft_taint_clear(warp);
    warp->stop = SOFT_STOP_NONE;
    warp->rounds = 0;
    warp->waited = false;
    warp->syncing = warp->polling = 0;
    warp->cluster_arrived = warp->cluster_owed = 0;
    warp->quantum = warp->turn = QUANTUM;
    warp->split = warp->splits;
    warp->bottom.users = 1;
    *warp->split = (struct soft_split){
        .state = SOFT_SPLIT_READY,
        .mask = warp->threads,
        .pc = entry,
        .frame = &warp->bottom,
    };
    SOFT_DEEP_ASSERT(soft_warp_is_valid(warp));
}

static void enter_split(struct soft_warp *warp, struct soft_split *split) {
    warp->split = split;
    warp->slots = split->frame->slots;
    warp->quantum = warp->turn;
    if (warp->dice != 0) {
        warp->quantum = (int32_t)soft_dice_roll(&warp->dice, (uint32_t)warp->turn) + 1;
    }
    soft_warp_set_mask(warp, split->mask);
}

void soft_warp_open_join(struct soft_warp *warp, const struct soft_instruction *meet) {
    struct soft_split *split = warp->split;
    if (meet == NULL || warp_is_at(split->join, meet, split->frame)) return;
    struct soft_join *join = new_join(warp);
    if (join == NULL) return;
    *join = (struct soft_join){
        .at = meet, .expected = split->mask, .outer = split->join, .frame = split->frame};
    split->join = join;
    split->frame->users++;
}

/* Some lanes, already removed from the current split, go to a place. */
static void warp_send(struct soft_warp *warp, const struct soft_instruction *target,
                      uint32_t lanes) {
    struct soft_split *split = warp->split;
    if (warp_is_at(split->join, target, split->frame)) {
        /* Directly to the join: no need to run there. */
        split->join->arrived |= lanes;
        return;
    }
    struct soft_split *other = soft_warp_split(warp);
    *other = *split;
    other->mask = lanes;
    other->pc = target;
    count_from(warp, split->frame, target);
    split->frame->users++;
}

const struct soft_instruction *soft_warp_part(struct soft_warp *warp,
                                              const struct soft_instruction *branch,
                                              const struct soft_instruction *target,
                                              uint32_t taken) {
    soft_warp_open_join(warp, branch->u.join);
    warp->split->mask &= ~taken;
    soft_warp_set_mask(warp, warp->split->mask);
    warp_send(warp, target, taken);
    assert(soft_split_is_valid(warp, warp->split));
    SOFT_DEEP_ASSERT(soft_warp_is_valid(warp));
    /* Either side may be the first. */
    if (warp->dice != 0 && soft_dice_roll(&warp->dice, 2) != 0) {
        return soft_warp_stop(warp, SOFT_STOP_SWITCH, branch + 1);
    }
    return branch + 1;
}

const struct soft_instruction *soft_warp_scatter(struct soft_warp *warp,
                                                 const struct soft_instruction *branch,
                                                 const struct soft_instruction *const targets[]) {
    struct soft_split *split = warp->split;
    soft_warp_open_join(warp, branch->u.join);
    for (;;) {
        const struct soft_instruction *target = targets[__builtin_ctz(split->mask)];
        uint32_t lanes = 0;
        for (uint32_t left = split->mask; left != 0; left &= left - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(left);
            if (targets[lane] == target) lanes |= 1u << lane;
        }
        if (lanes == split->mask) {
            soft_warp_set_mask(warp, lanes);
            warp->executed += (int32_t)branch->d;
            count_from(warp, split->frame, target);
            assert(soft_split_is_valid(warp, split));
            SOFT_DEEP_ASSERT(soft_warp_is_valid(warp));
            return target;
        }
        split->mask &= ~lanes;
        warp_send(warp, target, lanes);
    }
}

/* The lanes that wait in a join become a split that continues there. It executes the join
 * instruction again, which looks for an outer join at the same place. */
static void warp_resume(struct soft_warp *warp, struct soft_join *join, struct soft_split *split) {
    *split = (struct soft_split){
        .state = SOFT_SPLIT_READY,
        .mask = join->arrived,
        .pc = join->at,
        .join = join->outer,
        .frame = join->frame,
    };
    join->frame->users++;
    count_from(warp, join->frame, join->at);
}

const struct soft_instruction *soft_warp_meet(struct soft_warp *warp,
                                              const struct soft_instruction *place) {
    struct soft_split *split = warp->split;
    while (warp_is_at(split->join, place, split->frame)) {
        struct soft_join *join = split->join;
        join->arrived |= split->mask;
        count_to(warp, split->frame, place);
        end_split(warp, split);
        if (join->arrived != join->expected) {
            warp->stop = SOFT_STOP_SWITCH;
            return NULL;
        }
        warp_resume(warp, join, split);
        end_join(warp, join);
        warp->rounds = 0;
        if (warp->turn < QUANTUM) warp->turn *= 2;
    }
    soft_warp_set_mask(warp, split->mask);
    assert(soft_split_is_valid(warp, split));
    SOFT_DEEP_ASSERT(soft_warp_is_valid(warp));
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
    if (warp->cta->cluster_begun) soft_cluster_check(warp->cta);
    if (split->mask != 0) {
        soft_warp_set_mask(warp, split->mask);
        assert(soft_split_is_valid(warp, split));
        return next;
    }
    warp->executed += (int32_t)next[-1].d;
    end_split(warp, split);
    warp->stop = SOFT_STOP_SWITCH;
    /* Lanes that waited for the exited ones wait no longer. */
    for (struct soft_join *join = split->join, *outer = NULL; join != NULL; join = outer) {
        outer = join->outer;
        if (join->expected != 0 && join->arrived != join->expected) break;
        if (join->expected != 0) warp_resume(warp, join, soft_warp_split(warp));
        end_join(warp, join);
        if (join->expected != 0) break;
    }
    SOFT_DEEP_ASSERT(soft_warp_is_valid(warp));
    return NULL;
}

/* Releases the lanes that wait in a split's joins to continue alone. true: there were some. */
static bool warp_let_go(struct soft_warp *warp, const struct soft_split *split) {
    bool any = false;
    for (struct soft_join *join = split->join; join != NULL; join = join->outer) {
        if (join->arrived == 0) continue;
        warp_resume(warp, join, soft_warp_split(warp));
        join->expected &= ~join->arrived;
        join->arrived = 0;
        any = true;
    }
    warp->rounds = 0;
    return any;
}

/* No split can run: releases lanes in joins, which may do what the splits wait for. true: there
 * were some. */
static bool let_all_go(struct soft_warp *warp) {
    bool any = false;
    for (int s = 0; s < SOFT_SPLITS_MAX; s++) {
        const struct soft_split *split = &warp->splits[s];
        bool waits = split->state == SOFT_SPLIT_BARRIER || split->state == SOFT_SPLIT_SYNC ||
                     split->state == SOFT_SPLIT_CLUSTER;
        if (waits && warp_let_go(warp, split)) any = true;
    }
    return any;
}

/* A turn is used up. */
static void end_turn(struct soft_warp *warp) {
    bool awaited = false;
    for (const struct soft_join *join = warp->split->join; join != NULL; join = join->outer) {
        awaited |= join->arrived != 0;
    }
    int32_t least = awaited ? QUANTUM_AWAITED : QUANTUM_ALONE;
    if (warp->turn > least) warp->turn = warp->turn / 4 > least ? warp->turn / 4 : least;
    if (++warp->rounds >= PATIENCE) warp_let_go(warp, warp->split);
}

/* Like the end of a turn: lanes that wait in a join may be those that are polled for. */
void soft_warp_time_out(struct soft_warp *warp) {
    bool patient = ++warp->rounds < PATIENCE;
    for (int s = 0; s < SOFT_SPLITS_MAX && warp->polling > 0; s++) {
        struct soft_split *split = &warp->splits[s];
        if (split->state != SOFT_SPLIT_POLL) continue;
        split->state = SOFT_SPLIT_READY;
        split->timed_out = true;
        warp->polling--;
        warp->split = split;
        if (!patient) warp_let_go(warp, split);
    }
    SOFT_DEEP_ASSERT(soft_warp_is_valid(warp));
}

/* A random runnable split, with equal probabilities; NULL when none can run. */
static struct soft_split *any_ready(struct soft_warp *warp) {
    struct soft_split *any = NULL;
    uint32_t seen = 0;
    for (int i = 0; i < warp->split_end; i++) {
        bool ready = warp->splits[i].state == SOFT_SPLIT_READY;
        if (ready && soft_dice_roll(&warp->dice, ++seen) == 0) any = &warp->splits[i];
    }
    return any;
}

/* The next split that can run, after the current one; NULL when none can. */
static struct soft_split *next_ready(struct soft_warp *warp) {
    int at = (int)(warp->split - warp->splits);
    while (warp->split_end > 1 && warp->splits[warp->split_end - 1].state == SOFT_SPLIT_FREE) {
        warp->split_end--;
    }
    if (warp->dice != 0) return any_ready(warp);
    for (int i = 0; i < warp->split_end; i++) {
        at = at + 1 < warp->split_end ? at + 1 : 0;
        if (warp->splits[at].state == SOFT_SPLIT_READY) return &warp->splits[at];
    }
    return NULL;
}

enum soft_stop soft_warp_run(struct soft_warp *warp) {
    struct soft_split *split =
        warp->split->state == SOFT_SPLIT_READY ? warp->split : next_ready(warp);
    while (split != NULL) {
        enter_split(warp, split);
        assert(soft_split_is_valid(warp, split));
        warp->stop = SOFT_STOP_NONE;
        const struct soft_instruction *next = soft_taint_run(warp, split->pc);
        while (next != NULL) next = next->run[warp->partial](warp, next);

        if (warp->stop == SOFT_STOP_FAULT) return SOFT_STOP_FAULT;
        if (warp->stop == SOFT_STOP_TAINT) continue;
        SOFT_DEEP_ASSERT(soft_warp_is_valid(warp));
        if (warp->alive == 0) return SOFT_STOP_DONE;
        if (warp->syncing > 0) soft_warp_exchange(warp);
        if (warp->stop == SOFT_STOP_FAULT) return SOFT_STOP_FAULT;
        if (warp->stop == SOFT_STOP_YIELD) {
            end_turn(warp);
            split = next_ready(warp);
            if (split == warp->split) return SOFT_STOP_YIELD;
            /* Another split of this warp is next, but other warps get their turn first. */
            warp->split = split;
            return SOFT_STOP_YIELD;
        }
        split = next_ready(warp);
        if (split == NULL && soft_warp_arrive(warp)) split = next_ready(warp);
        if (split == NULL && let_all_go(warp)) split = next_ready(warp);
    }
    return SOFT_STOP_BLOCKED;
}

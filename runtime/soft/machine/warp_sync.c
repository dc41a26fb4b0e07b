/*
 * The .sync operations of a warp whose lanes do not arrive together, or have different masks.
 *
 * A lane of such an operation waits until all members of its mask have executed the operation with
 * the same qualifiers and the same mask (PTX ISA 9.0, section 9.7.9.6, shfl.sync) -- the operation,
 * not this very instruction: the two sides of a branch may exchange values. So the operands of all
 * waiting lanes are gathered in a temporary frame, the operation runs once on that frame, and each
 * lane takes its result from it.
 */
#include "warp.h"

#include "base/deep_assert.h"
#include "tollens/cuda_abi.h"
#include "finding.h"

#include <string.h>

/* The places of the gathered operands. */
enum {
    PLACE_D = 0,
    PLACE_A = SOFT_WIDE_SLOT_BYTES,
    PLACE_B = 2 * SOFT_WIDE_SLOT_BYTES,
    PLACE_C = 3 * SOFT_WIDE_SLOT_BYTES,
    PLACE_MEMBERS = 4 * SOFT_WIDE_SLOT_BYTES,
    PLACE_P = 5 * SOFT_WIDE_SLOT_BYTES,
    PLACE_END = 6 * SOFT_WIDE_SLOT_BYTES
};

/* What an operation reads and writes. */
struct shape {
    uint8_t a, b, c, d; /* bits of a lane; 0: it has no such operand */
    bool p;             /* it may write a predicate besides */
};

enum { VOTE_BALLOT = 3, VOTE_MODE = 15, VOTE_NEGATED = 16, MATCH_WIDE = 2 };

static struct shape warp_sync_shape_of(const struct soft_instruction *in) {
    switch ((enum soft_op)in->op) {
    case SOFT_OP_shfl:
        return (struct shape){.a = 32, .b = 32, .c = 32, .d = 32, .p = true};
    case SOFT_OP_vote:
        return (struct shape){.a = 1, .d = (in->mode & VOTE_MODE) == VOTE_BALLOT ? 32 : 1};
    case SOFT_OP_match:
        return (struct shape){.a = in->mode & MATCH_WIDE ? 64 : 32, .d = 32, .p = true};
    case SOFT_OP_redux:
        return (struct shape){.a = 32, .d = 32};
    case SOFT_OP_elect:
        return (struct shape){.d = 32, .p = true};
    default:
        return (struct shape){0};
    }
}

/* Qualifiers are the mode; a vote's negation belongs to its operand. */
static uint32_t warp_sync_qualifiers(const struct soft_instruction *in) {
    return in->op == SOFT_OP_vote ? in->mode & ~(uint32_t)VOTE_NEGATED : in->mode;
}

static bool wait_together(const struct soft_split *one, const struct soft_split *other) {
    if (soft_is_whole((enum soft_op)one->pc->op) &&
        (other->pc != one->pc || other->frame != one->frame)) {
        return false;
    }
    return other->state == SOFT_SPLIT_SYNC && other->sync_members == one->sync_members &&
           other->pc->op == one->pc->op &&
           warp_sync_qualifiers(other->pc) == warp_sync_qualifiers(one->pc);
}

/* Copies the lanes of a mask from one slot to another; bits 0 copies nothing. */
static void copy_lanes(uint8_t *to, const uint8_t *from, uint32_t mask, unsigned bits) {
    if (bits == 1) {
        uint32_t old, bit;
        memcpy(&old, to, sizeof old);
        memcpy(&bit, from, sizeof bit);
        old = (old & ~mask) | (bit & mask);
        memcpy(to, &old, sizeof old);
        return;
    }
    size_t bytes = bits / 8;
    for (uint32_t left = mask; left != 0 && bytes > 0; left &= left - 1) {
        size_t at = bytes * (size_t)__builtin_ctz(left);
        memcpy(to + at, from + at, bytes);
    }
}

static void warp_sync_gather(uint8_t *slots, const struct soft_split *split) {
    const struct soft_instruction *in = split->pc;
    const uint8_t *from = split->frame->slots;
    struct shape shape = warp_sync_shape_of(in);
    copy_lanes(slots + PLACE_A, from + in->a, split->mask, shape.a);
    copy_lanes(slots + PLACE_B, from + in->b, split->mask, shape.b);
    copy_lanes(slots + PLACE_C, from + in->c, split->mask, shape.c);
    if (in->op == SOFT_OP_vote && (in->mode & VOTE_NEGATED) != 0) {
        uint32_t votes;
        memcpy(&votes, slots + PLACE_A, sizeof votes);
        votes ^= split->mask;
        memcpy(slots + PLACE_A, &votes, sizeof votes);
    }
}

static void warp_sync_scatter(const uint8_t *slots, struct soft_split *split) {
    const struct soft_instruction *in = split->pc;
    uint8_t *to = split->frame->slots;
    struct shape shape = warp_sync_shape_of(in);
    copy_lanes(to + in->d, slots + PLACE_D, split->mask, shape.d);
    uint32_t p = shape.p ? split->frame->code->operands[in->more + 1] : UINT32_MAX;
    if (p != UINT32_MAX) copy_lanes(to + p, slots + PLACE_P, split->mask, 1);
}

/* The current split is at an operation of all lanes, some of which have exited. */
static const struct soft_instruction *fail_for_missing(struct soft_warp *warp,
                                                       const struct soft_instruction *in) {
    return soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, warp->split->mask, 0,
                            "lanes 0x%08x execute this without lanes 0x%08x, which have exited or "
                            "do not exist: all 32 lanes of a warp must execute it",
                            warp->split->mask, ~warp->alive);
}

/* All lanes wait at one instruction, in one call: it runs as if they had arrived together. */
static void warp_sync_run_whole(struct soft_warp *warp, const struct soft_split *one) {
    struct soft_split all = *one, like = *one;
    struct soft_split *current = warp->split;
    warp->split = &all;
    warp->slots = all.frame->slots;
    soft_warp_set_mask(warp, UINT32_MAX);
    bool ran = like.pc->run[0](warp, like.pc) != NULL;
    warp->split = current;
    for (int s = 0; s < SOFT_SPLITS_MAX && ran; s++) {
        struct soft_split *other = &warp->splits[s];
        if (!wait_together(&like, other)) continue;
        other->state = SOFT_SPLIT_READY;
        other->pc++;
        warp->syncing--;
    }
}

/* Runs the operation of a waiting split for all the lanes that wait at it. */
static void run_for(struct soft_warp *warp, const struct soft_split *one, uint32_t there) {
    _Alignas(64) uint8_t slots[PLACE_END];
    uint32_t operands[2] = {PLACE_MEMBERS, PLACE_P};
    struct soft_code code = {.operands = operands};
    struct soft_frame frame = {.slots = slots, .code = &code};
    struct soft_split split = {.mask = there, .frame = &frame}, like = *one;
    struct soft_instruction joint = *like.pc;
    joint.d = PLACE_D;
    joint.a = PLACE_A;
    joint.b = PLACE_B;
    joint.c = PLACE_C;
    joint.mode = warp_sync_qualifiers(like.pc);
    joint.more = 0;
    memset(slots, 0, sizeof slots);
    for (uint32_t lane = 0; lane < SOFT_LANES; lane++) {
        memcpy(slots + PLACE_MEMBERS + 4 * lane, &like.sync_members, 4);
    }
    for (int s = 0; s < warp->split_end; s++) {
        if (wait_together(&like, &warp->splits[s])) warp_sync_gather(slots, &warp->splits[s]);
    }
    struct soft_split *current = warp->split;
    warp->split = &split;
    warp->slots = slots;
    soft_warp_set_mask(warp, there);
    joint.run[warp->partial](warp, &joint);
    warp->split = current;
    for (int s = 0; s < warp->split_end; s++) {
        struct soft_split *other = &warp->splits[s];
        if (!wait_together(&like, other)) continue;
        warp_sync_scatter(slots, other);
        other->state = SOFT_SPLIT_READY;
        other->pc++;
        warp->syncing--;
    }
}

/* Splits that continue at one instruction, in one call, with one join, are merged. */
static void warp_sync_unite(struct soft_warp *warp) {
    for (int s = 0; s < warp->split_end; s++) {
        struct soft_split *one = &warp->splits[s];
        for (int t = s + 1; t < warp->split_end && one->state == SOFT_SPLIT_READY; t++) {
            struct soft_split *other = &warp->splits[t];
            if (other->state != SOFT_SPLIT_READY || other->pc != one->pc ||
                other->frame != one->frame || other->join != one->join) {
                continue;
            }
            one->mask |= other->mask;
            other->state = SOFT_SPLIT_FREE;
            warp->executed += soft_code_number(other->frame->code, other->pc);
            other->frame->users--;
            if (warp->split == other) warp->split = one;
        }
    }
}

bool soft_warp_exchange(struct soft_warp *warp) {
    bool any = false;
    for (int s = 0; s < warp->split_end && warp->syncing > 0; s++) {
        struct soft_split *one = &warp->splits[s];
        uint32_t there = 0;
        if (one->state != SOFT_SPLIT_SYNC) continue;
        for (int t = 0; t < warp->split_end; t++) {
            if (wait_together(one, &warp->splits[t])) there |= warp->splits[t].mask;
        }
        if ((one->sync_members & warp->alive & ~there) != 0) continue;
        if (there != UINT32_MAX && soft_is_whole((enum soft_op)one->pc->op)) {
            warp->split = one;
            fail_for_missing(warp, one->pc);
            return false;
        }
        if (soft_is_whole((enum soft_op)one->pc->op)) {
            warp_sync_run_whole(warp, one);
            if (warp->stop == SOFT_STOP_FAULT) return false;
        } else {
            run_for(warp, one, there);
        }
        any = true;
    }
    if (any) warp_sync_unite(warp);
    SOFT_DEEP_ASSERT(soft_warp_is_valid(warp));
    return any;
}

/* The lanes of the current split with one member mask; whether they include all other members.
 * false: a lane is not in its own mask, and the launch has failed. */
static bool same_members(struct soft_warp *warp, const struct soft_instruction *in,
                         const uint32_t *members, uint32_t among, uint32_t *group) {
    uint32_t mask = members[__builtin_ctz(among)];
    *group = 0;
    for (uint32_t left = among; left != 0; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        if (members[lane] == mask) *group |= 1u << lane;
    }
    if ((*group & ~mask) == 0) return true;
    soft_launch_fail(
        warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, *group & ~mask, 0,
        "lanes 0x%08x execute this with the member mask 0x%08x, which does not include them",
        *group & ~mask, mask);
    return false;
}

static void wait_for_members(struct soft_warp *warp, struct soft_split *split,
                             const struct soft_instruction *in, uint32_t members) {
    split->state = SOFT_SPLIT_SYNC;
    split->sync_members = members;
    split->pc = in;
    warp->syncing++;
}

const struct soft_instruction *soft_warp_whole(struct soft_warp *warp,
                                               const struct soft_instruction *in) {
    if (warp->alive != UINT32_MAX) return fail_for_missing(warp, in);
    wait_for_members(warp, warp->split, in, UINT32_MAX);
    warp->stop = SOFT_STOP_SWITCH;
    return NULL;
}

const struct soft_instruction *soft_warp_gather(struct soft_warp *warp,
                                                const struct soft_instruction *in,
                                                const uint32_t *members) {
    struct soft_split *split = warp->split;
    uint32_t all = warp->mask, missing = 0, group = 0;
    for (uint32_t left = all; left != 0; left &= ~group) {
        if (!same_members(warp, in, members, left, &group)) return NULL;
        uint32_t mask = members[__builtin_ctz(group)];
        if ((mask & warp->alive & ~group) != 0) missing |= group;
    }
    /* Lanes with complete members go first: nothing that they write is an operand of the others. */
    for (uint32_t left = all & ~missing; left != 0; left &= ~group) {
        same_members(warp, in, members, left, &group);
        soft_warp_set_mask(warp, group);
        in->run[warp->partial](warp, in);
    }
    soft_warp_set_mask(warp, all);
    if (missing == 0) return in + 1;

    split->pc = in + 1;
    split->mask = all & ~missing;
    for (uint32_t left = missing; left != 0; left &= ~group) {
        same_members(warp, in, members, left, &group);
        struct soft_split *other = split;
        if (split->mask != 0) {
            other = soft_warp_split(warp);
            *other = *split;
            other->frame->users++;
            warp->executed -= soft_code_number(other->frame->code, in);
        }
        other->mask = group;
        wait_for_members(warp, other, in, members[__builtin_ctz(group)]);
    }
    SOFT_DEEP_ASSERT(soft_warp_is_valid(warp));
    warp->stop = SOFT_STOP_SWITCH;
    return NULL;
}

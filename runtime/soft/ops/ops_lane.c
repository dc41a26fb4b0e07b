/*
 * Between the lanes of a warp: shfl, vote, match, redux, elect and bar.warp.sync.
 * Source: PTX ISA 9.0, sections 9.7.9.6 (shfl.sync), 9.7.13.9 (vote.sync), 9.7.13.10 (match.sync),
 * 9.7.13.12 (redux.sync), 9.7.13.13 (elect.sync), 9.7.13.2 (bar.warp.sync).
 *
 * All take a member mask and wait until every member that has not exited is there. Usually the
 * running split has all of them under one mask, and nothing waits; the bodies here are for that
 * case, and warp_sync.c reduces all others to it.
 */
#include "op_body.h"
#include "ptx/ptx.h"
#include "machine/warp.h"

/* The member mask, if all active lanes have the same one and are all its remaining members; else 0,
 * and warp_sync.c returns the next instruction. */
static inline uint32_t members_of(struct soft_warp *warp, const struct soft_instruction *in,
                                  const struct soft_instruction **next) {
    const uint32_t *members = SLOT(uint32_t, SOFT_OPERANDS(warp, in)[0]), *lane = warp->lane;
    uint32_t first = members[__builtin_ctz(warp->mask)], differ = 0;
    LANES differ |= (members[i] ^ first) & lane[i];
    if (differ == 0 && (first & warp->alive) == warp->mask) return first;
    *next = soft_warp_gather(warp, in, members);
    return 0;
}

/* An operation of all the members that are left: they are the lanes that run. */
#define OP_SYNC(op)                                                                                \
    static void op##_of_members(struct soft_warp *warp, const struct soft_instruction *in);        \
    OP_ANY(op) {                                                                                   \
        const struct soft_instruction *next = NULL;                                                \
        if (members_of(warp, in, &next) == 0) return next;                                         \
        op##_of_members(warp, in);                                                                 \
        return in + 1;                                                                             \
    }                                                                                              \
    static void op##_of_members(struct soft_warp *warp, const struct soft_instruction *in)

enum { UP, DOWN, BFLY, IDX };

/* The whole warp by one distance, as in reductions: nothing to compute per lane. The lanes whose
 * source is in range. */
static uint32_t shuffle_whole(uint32_t mode, uint32_t by, const uint32_t *a, uint32_t *result) {
    switch (mode) {
    case UP:
        for (uint32_t i = 0; i < SOFT_LANES; i++) result[i] = i < by ? a[i] : a[i - by];
        return UINT32_MAX << by;
    case DOWN:
        for (uint32_t i = 0; i < SOFT_LANES; i++) result[i] = i + by > 31 ? a[i] : a[i + by];
        return UINT32_MAX >> by;
    case BFLY:
        /* A distance that the compiler knows is a permutation, not 32 loads. */
        switch (by) {
#define BUTTERFLY(distance)                                                                        \
    case distance:                                                                                 \
        for (uint32_t i = 0; i < SOFT_LANES; i++) result[i] = a[i ^ (distance)];                   \
        break
            BUTTERFLY(1);
            BUTTERFLY(2);
            BUTTERFLY(4);
            BUTTERFLY(8);
            BUTTERFLY(16);
        default:
            for (uint32_t i = 0; i < SOFT_LANES; i++) result[i] = a[i ^ by];
        }
        return UINT32_MAX;
    default: {
        uint32_t value = a[by];
        LANES result[i] = value;
        return UINT32_MAX;
    }
    }
}

/* Each lane by its own distance, in segments of its own. */
static uint32_t ops_lane_shuffle(uint32_t mode, const uint32_t *a, const uint32_t *b,
                                 const uint32_t *c, uint32_t *result) {
    uint32_t from[SOFT_LANES], inside[SOFT_LANES];
    LANES {
        int32_t lane = i, by = (int32_t)(b[i] & 31), clamp = (int32_t)(c[i] & 31);
        int32_t segment = (int32_t)(c[i] >> 8 & 31);
        int32_t most = (lane & segment) | (clamp & ~segment), least = lane & segment;
        int32_t j = mode == UP     ? lane - by
                    : mode == DOWN ? lane + by
                    : mode == BFLY ? lane ^ by
                                   : least | (by & ~segment);
        bool in_range = mode == UP ? j >= most : j <= most;
        inside[i] = in_range ? UINT32_MAX : 0;
        from[i] = (uint32_t)(in_range ? j : lane) & 31;
    }
    for (int i = 0; i < SOFT_LANES; i++) result[i] = a[from[i]];
    return soft_pack(inside);
}

/* mode: up, down, bfly, idx. more: member mask, predicate or all ones. */
OP_SYNC(shfl) {
    const uint32_t *a = SLOT(uint32_t, in->a), *b = SLOT(uint32_t, in->b),
                   *c = SLOT(uint32_t, in->c);
    uint32_t *d = SLOT(uint32_t, in->d), result[SOFT_LANES], mode = in->mode;
    uint32_t differ = 0, whole = mode == UP ? 0 : 31;
    LANES differ |= (b[i] ^ b[0]) | ((c[i] ^ whole) & 0x1f1f);
    uint32_t inside = (differ & 0x1f1f) == 0 ? shuffle_whole(mode, b[0] & 31, a, result)
                                             : ops_lane_shuffle(mode, a, b, c, result);
    const uint32_t *lane = warp->lane;
    if (warp->partial == 0) {
        memcpy(d, result, sizeof result);
    } else {
        LANES d[i] = lane[i] ? result[i] : d[i];
    }
    uint32_t predicate = SOFT_OPERANDS(warp, in)[1];
    if (predicate != UINT32_MAX) {
        uint32_t *p = &PREDICATE(predicate);
        *p = (*p & ~warp->mask) | (inside & warp->mask);
    }
}

enum { ALL, ANY, UNI, BALLOT };

/* mode: all, any, uni, ballot; bit 4: the predicate is negated. d is a word for ballot. */
OP_SYNC(vote) {
    uint32_t voters = warp->mask;
    uint32_t votes = (PREDICATE(in->a) ^ (in->mode & 16 ? UINT32_MAX : 0)) & voters;
    uint32_t form = in->mode & 15;
    if (form == BALLOT) {
        uint32_t *d = SLOT(uint32_t, in->d);
        const uint32_t *lane = warp->lane;
        LANES d[i] = lane[i] || warp->partial == 0 ? votes : d[i];
        return;
    }
    bool result = form == ALL   ? votes == voters
                  : form == ANY ? votes != 0
                                : votes == 0 || votes == voters;
    uint32_t *d = &PREDICATE(in->d);
    *d = (*d & ~warp->mask) | (result ? warp->mask : 0);
}

/* mode: bit 0, all (else any); bit 1, 64-bit values. more: member mask, predicate or all ones. */
OP_SYNC(match) {
    uint32_t there = warp->mask, same[SOFT_LANES] = {0};
    EACH_LANE(i, there) {
        uint64_t mine = in->mode & 2 ? SLOT(uint64_t, in->a)[i] : SLOT(uint32_t, in->a)[i];
        EACH_LANE(j, there) {
            uint64_t other = in->mode & 2 ? SLOT(uint64_t, in->a)[j] : SLOT(uint32_t, in->a)[j];
            same[i] |= (uint32_t)(mine == other) << j;
        }
    }
    uint32_t *d = SLOT(uint32_t, in->d), everywhere = 0;
    EACH_LANE(i, there) {
        bool all = same[i] == there;
        everywhere |= (uint32_t)all << i;
        d[i] = in->mode & 1 ? (all ? there : 0) : same[i];
    }
    uint32_t predicate = SOFT_OPERANDS(warp, in)[1];
    if (predicate != UINT32_MAX) {
        uint32_t *p = &PREDICATE(predicate);
        *p = (*p & ~warp->mask) | everywhere;
    }
}

/* mode: enum ptx_modifier of the operation; bit 16: signed. */
OP_SYNC(redux) {
    const uint32_t *a = SLOT(uint32_t, in->a);
    uint32_t there = warp->mask;
    uint32_t flip = in->mode >> 16 != 0 ? 1u << 31 : 0;
    bool first = true;
    uint32_t sum = 0;
    EACH_LANE(i, there) {
        uint32_t x = a[i];
        switch ((enum ptx_modifier)(in->mode & 0xffff)) {
        case PTX_add:
            sum = first ? x : sum + x;
            break;
        case PTX_min:
            sum = first || (x ^ flip) < (sum ^ flip) ? x : sum;
            break;
        case PTX_max:
            sum = first || (x ^ flip) > (sum ^ flip) ? x : sum;
            break;
        case PTX_and:
            sum = first ? x : sum & x;
            break;
        case PTX_or:
            sum = first ? x : sum | x;
            break;
        default:
            sum = first ? x : sum ^ x;
            break;
        }
        first = false;
    }
    uint32_t *d = SLOT(uint32_t, in->d);
    EACH_LANE(i, there) d[i] = sum;
}

OP_SYNC(warp_sync) {
    (void)warp, (void)in; /* to have come together is all */
}

/* The lowest member gets true; all members get its number. */
OP_SYNC(elect) {
    uint32_t there = warp->mask;
    uint32_t chosen = there != 0 ? (uint32_t)__builtin_ctz(there) : 0;
    uint32_t *d = SLOT(uint32_t, in->d), *p = &PREDICATE(SOFT_OPERANDS(warp, in)[1]);
    EACH_LANE(i, warp->mask) d[i] = chosen;
    *p = (*p & ~warp->mask) | (there != 0 ? 1u << chosen : 0);
}

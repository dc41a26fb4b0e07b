/*
 * The handlers that check an instruction before it is executed. A function's instructions get
 * them when it is completed, so a check that is off costs nothing.
 */
#include "checks.h"

#include "lower/core.h"
#include "machine/finding.h"
#include "ops/op_body.h"
#include "base/options.h"
#include "race.h"
#include "race_state.h"

/* The handler for partial warps, which also works for full ones: unlike the full warp's handler, it
 * never continues with the next instruction by itself. */
static soft_handler *checks_unchecked(const struct soft_instruction *in) {
    return soft_core()->run[in->op][1];
}

/* Checks are serialized, so that a strong read gets the clock that belongs to the value it sees. */
static const struct soft_instruction *
checked_by(struct soft_warp *warp, const struct soft_instruction *in,
           void (*check)(struct soft_warp *warp, const struct soft_instruction *in)) {
    struct soft_race_cta *own = warp->cta->race;
    if (own == NULL || atomic_load_explicit(&own->race->given_up, memory_order_relaxed)) {
        return checks_unchecked(in)(warp, in);
    }
    struct soft_race *race = own->race;
    pthread_mutex_lock(&race->lock);
    check(warp, in);
    const struct soft_instruction *next = checks_unchecked(in)(warp, in);
    pthread_mutex_unlock(&race->lock);
    return next;
}

static const struct soft_instruction *checked_access(struct soft_warp *warp,
                                                     const struct soft_instruction *in) {
    return checked_by(warp, in, soft_race_access);
}

/* A partial warp waits for the other lanes, or fails. */
static const struct soft_instruction *checked_matrix(struct soft_warp *warp,
                                                     const struct soft_instruction *in) {
    if (warp->mask != UINT32_MAX) return checks_unchecked(in)(warp, in);
    return checked_by(warp, in, soft_race_matrix);
}

/* A copy of a map is also a .sync operation of all lanes. */
static const struct soft_instruction *checked_map(struct soft_warp *warp,
                                                  const struct soft_instruction *in) {
    bool syncs = in->op == SOFT_OP_map_copy && warp->cta->race != NULL;
    if (syncs) soft_race_warp_sync(warp);
    const struct soft_instruction *next = checked_by(warp, in, soft_race_map);
    if (syncs) soft_race_warp_sync(warp);
    return next;
}

static const struct soft_instruction *checked_fence(struct soft_warp *warp,
                                                    const struct soft_instruction *in) {
    bool for_inits = (in->mode & SOFT_FENCE_INITS) != 0;
    if (!for_inits) soft_race_fence_reads(warp);
    if (!for_inits) soft_race_fence(warp, (enum soft_scope)in->mode);
    return checks_unchecked(in)(warp, in);
}

static const struct soft_instruction *checked_proxy_fence(struct soft_warp *warp,
                                                          const struct soft_instruction *in) {
    soft_race_proxy_fence(warp, in->mode);
    return checks_unchecked(in)(warp, in);
}

/* Whether all remaining members of the lanes' mask run now: if not, the operation waits and is
 * executed again when they have gathered. */
static bool is_gathered(const struct soft_warp *warp, const struct soft_instruction *in) {
    const uint32_t *members = SLOT(uint32_t, SOFT_OPERANDS(warp, in)[0]);
    uint32_t first = members[__builtin_ctz(warp->mask)];
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        if (members[__builtin_ctz(left)] != first) return false;
    }
    return (first & warp->alive) == warp->mask;
}

static const struct soft_instruction *checked_warp_sync(struct soft_warp *warp,
                                                        const struct soft_instruction *in) {
    if (warp->cta->race != NULL && is_gathered(warp, in)) soft_race_warp_sync(warp);
    return checks_unchecked(in)(warp, in);
}

/* The source lane of a shuffle; the lane itself if that is out of range. As in ops_lane.c. */
static uint32_t source_of(const struct soft_warp *warp, const struct soft_instruction *in,
                          uint32_t lane) {
    enum { UP, DOWN, BFLY };
    uint32_t by = SLOT(uint32_t, in->b)[lane] & 31, c = SLOT(uint32_t, in->c)[lane];
    uint32_t segment = c >> 8 & 31, most = (lane & segment) | (c & 31 & ~segment);
    int32_t from = in->mode == UP     ? (int32_t)lane - (int32_t)by
                   : in->mode == DOWN ? (int32_t)(lane + by)
                   : in->mode == BFLY ? (int32_t)(lane ^ by)
                                      : (int32_t)((lane & segment) | (by & ~segment));
    bool inside = in->mode == UP ? from >= (int32_t)most : from <= (int32_t)most;
    return inside ? (uint32_t)from & 31 : lane;
}

/* A value from an inactive lane is undefined, but the kernel may not use it. */
static const struct soft_instruction *checked_shuffle(struct soft_warp *warp,
                                                      const struct soft_instruction *in) {
    for (uint32_t left = warp->partial ? warp->mask : 0; left != 0; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left), from = source_of(warp, in, lane);
        if ((warp->mask >> from & 1) != 0 || !is_gathered(warp, in)) continue;
        struct soft_finding finding = {
            .kind = "undefined shuffle", .lanes = 1u << lane, .minor = true};
        soft_launch_find(warp, in, &finding,
                         "lane %u reads from lane %u of warp %u, which does not take part", lane,
                         from, warp->index);
        break;
    }
    return checked_warp_sync(warp, in);
}

/* Gives an instruction the handlers that check it, if it has some and the checks are on. */
static void checks_hook(struct soft_instruction *in) {
    bool race = soft_options()->check_race, sync = soft_options()->check_sync;
    enum soft_access_space space = soft_access_space(in->mode);
    bool own = space == SOFT_SPACE_LOCAL || space == SOFT_SPACE_PARAM;
    soft_handler *handler = NULL;
    switch ((enum soft_op)in->op) {
    case SOFT_OP_ld_slow:
    case SOFT_OP_st_slow:
    case SOFT_OP_atom:
        if (race && !own) handler = checked_access;
        break;
    case SOFT_OP_ldmatrix:
    case SOFT_OP_stmatrix:
    case SOFT_OP_wmma_load:
    case SOFT_OP_wmma_store:
        if (race) handler = checked_matrix;
        break;
    case SOFT_OP_map_replace:
    case SOFT_OP_map_copy:
        if (race) handler = checked_map;
        break;
    case SOFT_OP_fence:
        if (race) handler = checked_fence;
        break;
    case SOFT_OP_proxy_fence:
        if (race) handler = checked_proxy_fence;
        break;
    case SOFT_OP_shfl:
        if (race) handler = checked_warp_sync;
        if (sync) handler = checked_shuffle;
        break;
    case SOFT_OP_vote:
    case SOFT_OP_match:
    case SOFT_OP_redux:
    case SOFT_OP_warp_sync:
    case SOFT_OP_elect:
        if (race) handler = checked_warp_sync;
        break;
    default:
        if (race && in->op >= SOFT_OP_ld_global_u8 && in->op <= SOFT_OP_st_shared_v4_32) {
            handler = checked_access;
        }
        break;
    }
    if (handler != NULL) in->run[0] = in->run[1] = handler;
}

void soft_checks_hook(const struct soft_code *code) {
    for (uint32_t i = 0; i < code->instruction_count; i++) checks_hook(&code->instructions[i]);
}

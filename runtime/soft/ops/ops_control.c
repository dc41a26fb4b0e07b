/*
 * Control: branches, guards, joins, exits, barriers. Source: PTX ISA 9.0, sections 9.3 (Predicated
 * execution), 9.7.12 (Control flow), 9.7.13.1 (bar, barrier).
 */
#include "op_body.h"
#include "ptx/ptx.h"

#include "base/dice.h"
#include "tollens/cuda_abi.h"
#include "machine/barrier.h"
#include "machine/finding.h"
#include "grid/registers.h"
#include "lower/modes.h"
#include "machine/mbarrier_init.h"
#include "machine/prior.h"
#include "machine/warp.h"

#include <stdatomic.h>
#include <time.h>

/* mode of a branch or an exit. */
enum {
    BACKWARD = SOFT_BRANCH_BACKWARD,
    NEGATED = SOFT_BRANCH_NEGATED,
    POLLS = SOFT_BRANCH_POLLS,
    GUARDED = SOFT_BRANCH_GUARDED
};

/* Runs the next instruction for the lanes whose predicate holds. */
OP_ANY(guard) {
    uint32_t chosen = (PREDICATE(in->a) ^ in->mode) & warp->mask;
    if (chosen == 0) return in + 2;
    const struct soft_instruction *guarded = in + 1;
    if (chosen == warp->mask) return guarded->run[warp->partial](warp, guarded);
    uint32_t all = warp->mask;
    soft_warp_set_mask(warp, chosen);
    const struct soft_instruction *next = guarded->run[1](warp, guarded);
    if (next != NULL) soft_warp_set_mask(warp, all);
    return next;
}

OP_ANY(join) {
    const struct soft_join *join = warp->split->join;
    if (join == NULL || join->at != in) return in + 1;
    return soft_warp_meet(warp, in);
}

static inline const struct soft_instruction *ops_control_jump(struct soft_warp *warp,
                                                              const struct soft_instruction *in) {
    warp->executed += (int32_t)in->d;
    if ((in->mode & BACKWARD) != 0) {
        warp->quantum -= in->mode & POLLS ? SOFT_POLL_COST : 1;
        if (warp->quantum <= 0) return soft_warp_stop(warp, SOFT_STOP_YIELD, in->target);
    }
    return in->target;
}

OP_ANY(bra) {
    return ops_control_jump(warp, in);
}

OP_ANY(bra_if) {
    uint32_t taken = (PREDICATE(in->a) ^ (in->mode & NEGATED ? UINT32_MAX : 0)) & warp->mask;
    if (taken == 0) return in + 1;
    if (taken == warp->mask) return ops_control_jump(warp, in);
    return soft_warp_part(warp, in, in->target, taken);
}

static inline uint32_t ops_control_leaving(const struct soft_warp *warp,
                                           const struct soft_instruction *in) {
    if ((in->mode & GUARDED) == 0) return warp->mask;
    return (PREDICATE(in->a) ^ (in->mode & NEGATED ? UINT32_MAX : 0)) & warp->mask;
}

OP_ANY(exit) {
    uint32_t gone = ops_control_leaving(warp, in);
    if (gone == 0) return in + 1;
    if (gone != warp->mask) soft_warp_set_mask(warp, gone);
    return soft_warp_exit(warp, in + 1);
}

OP_ANY(trap) {
    uint32_t caught = ops_control_leaving(warp, in);
    if (caught == 0) return in + 1;
    return soft_launch_fail(warp, in, CUDA_ERROR_LAUNCH_FAILED, caught, 0, "%s",
                            in->mode & SOFT_BRANCH_BREAKS ? "brkpt was executed without a debugger"
                                                          : "trap was executed");
}

OP_ANY(nothing) {
    (void)warp;
    return in + 1;
}

OP_ANY(proxy_fence) {
    (void)warp;
    return in + 1;
}

OP_ANY(fence) {
    bool for_inits = (in->mode & SOFT_FENCE_INITS) != 0;
    if (in->mode >= SOFT_SCOPE_CLUSTER) soft_init_fence(warp, for_inits);
    if (!for_inits) atomic_thread_fence(memory_order_seq_cst);
    return in + 1;
}

/* Lets everyone else go first. */
OP_ANY(sleep) {
    return soft_warp_stop(warp, SOFT_STOP_YIELD, in + 1);
}

/* Yields to all others with probability one half. */
OP_ANY(turn) {
    if (warp->dice == 0 || soft_dice_roll(&warp->dice, 2) == 0) return in + 1;
    return soft_warp_stop(warp, SOFT_STOP_YIELD, in + 1);
}

/* The barrier and its number of threads (0: all): the lanes must agree on both. false: they are
 * invalid, and the launch has failed. */
static inline bool barrier_of(struct soft_warp *warp, const struct soft_instruction *in,
                              uint32_t *barrier, uint32_t *threads) {
    uint32_t first = (uint32_t)__builtin_ctz(warp->mask), differ = 0;
    const uint32_t *a = SLOT(uint32_t, in->a), *b = SLOT(uint32_t, in->b), *lane = warp->lane;
    bool counted = (in->mode & SOFT_BARRIER_COUNTED) != 0;
    *barrier = a[first];
    *threads = counted ? b[first] : 0;
    LANES differ |= ((a[i] ^ a[first]) | (counted ? b[i] ^ b[first] : 0)) & lane[i];
    if (differ == 0 && *barrier < SOFT_BARRIERS && *threads % SOFT_LANES == 0) return true;
    soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, warp->mask, 0,
                     differ != 0 ? "lanes of one warp name different barriers or counts, such as "
                                   "barrier %u for %u threads"
                                 : "barrier %u for %u threads: barriers are numbered 0 to 15, and "
                                   "the number of threads must be a multiple of 32",
                     *barrier, *threads);
    return false;
}

OP_ANY(barrier) {
    uint32_t number, threads;
    if (!barrier_of(warp, in, &number, &threads)) return NULL;
    return soft_warp_barrier(warp, in, number, threads, 0);
}

OP_ANY(barrier_arrive) {
    uint32_t number, threads;
    if (!barrier_of(warp, in, &number, &threads)) return NULL;
    return soft_warp_barrier(warp, in, number, threads, 0);
}

OP_ANY(barrier_red) {
    uint32_t number, threads;
    if (!barrier_of(warp, in, &number, &threads)) return NULL;
    uint32_t votes = PREDICATE(in->c) ^ (in->mode & SOFT_BARRIER_NEGATED ? UINT32_MAX : 0);
    return soft_warp_barrier(warp, in, number, threads, votes);
}

static uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The special registers that change while a kernel runs; mode says which. The clock ticks once a
 * nanosecond: a soft device has no cycles. */
OP_ANY(special) {
    uint64_t value = 0;
    switch ((enum ptx_special)(in->mode & ~SOFT_SPECIAL_WIDE)) {
    case PTX_SPECIAL_clock:
    case PTX_SPECIAL_clock64:
        value = clock_ns(CLOCK_MONOTONIC);
        break;
    case PTX_SPECIAL_clock_hi:
        value = clock_ns(CLOCK_MONOTONIC) >> 32;
        break;
    case PTX_SPECIAL_globaltimer:
    case PTX_SPECIAL_globaltimer_lo:
        value = clock_ns(CLOCK_REALTIME);
        break;
    case PTX_SPECIAL_globaltimer_hi:
        value = clock_ns(CLOCK_REALTIME) >> 32;
        break;
    case PTX_SPECIAL_gridid:
        value = warp->cta->launch->id;
        break;
    case PTX_SPECIALS:
        value = warp->mask;
        break; /* activemask */
    default:
        break;
    }
    bool wide = (in->mode & SOFT_SPECIAL_WIDE) != 0;
    EACH_LANE(i, warp->mask) {
        if (wide) {
            SLOT(uint64_t, in->d)[i] = value;
        } else {
            SLOT(uint32_t, in->d)[i] = (uint32_t)value;
        }
    }
    return in + 1;
}

OP_ANY(setmaxnreg) {
    if (warp->mask != warp->threads) return soft_warp_whole(warp, in);
    return soft_registers_set(warp, in);
}

OP_ANY(grid_wait) {
    soft_prior_wait(warp);
    return in + 1;
}

OP_ANY(grid_trigger) {
    soft_prior_trigger(warp);
    return in + 1;
}

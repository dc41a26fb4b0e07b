/*
 * The sixteen barriers of a CTA. Source: PTX ISA 9.0, section 9.7.13.1 (bar, barrier).
 *
 * Threads are counted in whole warps: a warp arrives once, when the last of its threads that have
 * not exited is there, and a full count opens the barrier for all who wait at it. With .aligned the
 * threads of a warp must execute the same instruction; if they do not, the barrier still works, and
 * the mistake is reported.
 */
#include "barrier.h"

#include "tollens/cuda_abi.h"
#include "finding.h"
#include "base/options.h"
#include "prior.h"
#include "race_events.h"

#include <string.h>

/* Writes the result of barrier.red to a split that waited for it. */
static void give_result(const struct soft_barrier *barrier, const struct soft_split *split) {
    const struct soft_instruction *in = split->pc - 1;
    uint8_t *d = split->frame->slots + in->d;
    uint32_t word;
    switch (in->mode & SOFT_BARRIER_RED) {
    case SOFT_BARRIER_POPC:
        for (uint32_t left = split->mask; left != 0; left &= left - 1) {
            memcpy(d + 4 * (size_t)__builtin_ctz(left), &barrier->red_count, 4);
        }
        return;
    case SOFT_BARRIER_AND:
    case SOFT_BARRIER_OR: {
        bool and = (in->mode & SOFT_BARRIER_RED) == SOFT_BARRIER_AND;
        bool holds = and? barrier->red_count == barrier->red_threads : barrier->red_count > 0;
        memcpy(&word, d, sizeof word);
        word = (word & ~split->mask) | (holds ? split->mask : 0);
        memcpy(d, &word, sizeof word);
        return;
    }
    default:
        return;
    }
}

/* A split that waits at a barrier with .aligned; NULL: there is none. */
static struct soft_split *find_aligned(struct soft_warp *warp, uint32_t number) {
    for (int s = 0; s < warp->split_end; s++) {
        struct soft_split *split = &warp->splits[s];
        if (split->state == SOFT_SPLIT_BARRIER && split->barrier == number &&
            (split->pc[-1].mode & SOFT_BARRIER_ALIGNED) != 0) {
            return split;
        }
    }
    return NULL;
}

/* A barrier without a count opens. Threads that have exited never reach it, which may be a mistake
 * but is allowed since compute capability 7.0: one note per launch. */
static void note_exited(struct soft_cta *cta, uint32_t number) {
    uint32_t exited = 0;
    if (atomic_load_explicit(&cta->launch->told_of_exited, memory_order_relaxed)) return;
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        const struct soft_warp *warp = &cta->warps[w];
        exited += (uint32_t)__builtin_popcount(warp->threads & ~warp->alive);
    }
    if (exited == 0) return;
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        struct soft_warp *warp = &cta->warps[w];
        struct soft_split *aligned = find_aligned(warp, number), *running = warp->split;
        if (aligned == NULL || atomic_exchange(&cta->launch->told_of_exited, true)) continue;
        struct soft_finding finding = {
            .kind = "exited before barrier", .lanes = aligned->mask, .minor = true};
        warp->split = aligned;
        soft_launch_find(
            warp, aligned->pc - 1, &finding,
            "%u of the block's threads exited and never reach this barrier, which opens "
            "for the others",
            exited);
        warp->split = running;
        return;
    }
}

/* Wakes the waiters of a barrier, and resets it for its next use. */
static void open_barrier(struct soft_cta *cta, uint32_t number) {
    struct soft_barrier *barrier = &cta->barriers[number];
    if (barrier->expected == 0 && soft_options()->check_sync) note_exited(cta, number);
    soft_race_open(cta, number);
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        if ((barrier->waiting >> w & 1) == 0) continue;
        struct soft_warp *warp = &cta->warps[w];
        for (int s = 0; s < warp->split_end; s++) {
            struct soft_split *split = &warp->splits[s];
            if (split->state != SOFT_SPLIT_BARRIER || split->barrier != number) continue;
            give_result(barrier, split);
            soft_prior_meet(warp);
            split->state = SOFT_SPLIT_READY;
        }
        cta->blocked &= ~(1u << w);
    }
    *barrier = (struct soft_barrier){0};
    cta->idle = 0;
}

static bool is_full(const struct soft_cta *cta, const struct soft_barrier *barrier) {
    uint32_t expected = barrier->expected > 0 ? barrier->expected : cta->warps_alive * SOFT_LANES;
    return barrier->arrived > 0 && barrier->arrived >= expected;
}

/* Whether all of a warp's threads wait at one barrier at which it has not arrived yet. */
static bool is_complete(const struct soft_warp *warp, uint32_t *number) {
    const struct soft_split *first = NULL;
    uint32_t there = 0;
    for (int s = 0; s < warp->split_end; s++) {
        const struct soft_split *split = &warp->splits[s];
        if (split->state != SOFT_SPLIT_BARRIER) continue;
        if (first == NULL) first = split;
        if (split->barrier == first->barrier) there |= split->mask;
    }
    if (first == NULL || there != warp->alive) return false;
    *number = first->barrier;
    return (warp->cta->barriers[*number].waiting >> warp->index & 1) == 0;
}

/* .aligned promises one instruction for all of the warp's threads. */
static void check_aligned(struct soft_warp *warp) {
    const struct soft_split *first = NULL;
    for (int s = 0; s < warp->split_end; s++) {
        struct soft_split *split = &warp->splits[s];
        if (split->state != SOFT_SPLIT_BARRIER) continue;
        if (first == NULL) first = split;
        bool aligned = ((first->pc[-1].mode | split->pc[-1].mode) & SOFT_BARRIER_ALIGNED) != 0;
        if (split->pc == first->pc || !aligned) continue;
        warp->split = split;
        soft_launch_note(
            warp, split->pc - 1, "divergent barrier", split->mask, 0,
            "lanes 0x%08x of warp %u are at this barrier, and lanes 0x%08x at another barrier "
            "instruction; all lanes of a warp must execute the same aligned barrier",
            split->mask, warp->index, first->mask);
        return;
    }
}

bool soft_warp_arrive(struct soft_warp *warp) {
    struct soft_cta *cta = warp->cta;
    uint32_t number = 0;
    if (!is_complete(warp, &number)) return false;
    if (soft_options()->check_sync) check_aligned(warp);
    soft_race_arrive(warp, number);
    struct soft_barrier *barrier = &cta->barriers[number];
    cta->barriers_used |= 1u << number;
    barrier->arrived += SOFT_LANES;
    bool any = false;
    for (int s = 0; s < warp->split_end; s++) {
        struct soft_split *split = &warp->splits[s];
        if (split->state != SOFT_SPLIT_BARRIER) continue;
        if (split->arrives_only) {
            split->state = SOFT_SPLIT_READY;
            any = true;
        } else {
            barrier->waiting |= 1u << warp->index;
        }
    }
    if (!is_full(cta, barrier)) return any;
    open_barrier(cta, number);
    return true;
}

/* A barrier opens for the count of the last arrival; all should have the same count. */
static void check_count(struct soft_warp *warp, const struct soft_instruction *in, uint32_t number,
                        uint32_t threads) {
    const struct soft_barrier *barrier = &warp->cta->barriers[number];
    if (barrier->arrived == 0 || barrier->expected == threads) return;
    soft_launch_note(
        warp, in, "barrier count", warp->mask, 0,
        "barrier %u expects %u threads here, and %u threads where others wait at it (0: all)",
        number, threads, barrier->expected);
}

const struct soft_instruction *soft_warp_barrier(struct soft_warp *warp,
                                                 const struct soft_instruction *in, uint32_t number,
                                                 uint32_t threads, uint32_t votes) {
    struct soft_split *split = warp->split;
    struct soft_barrier *barrier = &warp->cta->barriers[number];
    warp->cta->barriers_used |= 1u << number;
    if (soft_options()->check_sync) check_count(warp, in, number, threads);
    split->state = SOFT_SPLIT_BARRIER;
    split->barrier = number;
    split->arrives_only = in->op == SOFT_OP_barrier_arrive;
    split->pc = in + 1;
    barrier->expected = threads;
    barrier->red_threads += (uint32_t)__builtin_popcount(warp->mask);
    barrier->red_count += (uint32_t)__builtin_popcount(votes & warp->mask);
    /* If all its threads are here, the warp may be the last one and continue at once. */
    if (split->mask == warp->alive && soft_warp_arrive(warp)) return in + 1;
    warp->stop = SOFT_STOP_SWITCH;
    return NULL;
}

void soft_cta_warp_ended(struct soft_cta *cta) {
    cta->warps_alive--;
    cta->idle = 0;
    for (uint32_t left = cta->barriers_used; left != 0; left &= left - 1) {
        uint32_t b = (uint32_t)__builtin_ctz(left);
        if (is_full(cta, &cta->barriers[b])) open_barrier(cta, b);
    }
}

/*
 * Counts the CTAs that only read the workspace. A turn that may have done more begins a new round.
 */
#include "stall.h"

#include "tollens/cuda_abi.h"
#include "lower/modes.h"
#include "machine/cluster_member.h"
#include "machine/finding.h"
#include "memory/space.h"

#include <assert.h>
#include <string.h>

/* A loop may give up its turn at each of its YIELDS_MAX instructions for that, so after TURNS turns
 * it has tested a value that it read in the second of them or later. */
enum { YIELDS_MAX = 6, TURNS = YIELDS_MAX + 2 };

/* Whether all lanes of a split read the workspace with this load. */
static bool reads_workspace(const struct soft_launch *launch, const struct soft_split *split,
                            const struct soft_instruction *in) {
    if ((in->mode & SOFT_ACCESS_WIDE_ADDRESS) == 0) return false;
    for (uint32_t left = split->mask; left != 0; left &= left - 1) {
        uint64_t address = 0;
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        memcpy(&address, split->frame->slots + in->a + sizeof address * lane, sizeof address);
        address += (uint64_t)in->u.immediate;
        if (address - launch->workspace >= SOFT_WORKSPACE_BYTES) return false;
    }
    return true;
}

/* Whether an instruction of a loop changes registers alone. */
static bool stall_is_harmless(const struct soft_launch *launch, const struct soft_split *split,
                              const struct soft_instruction *in, bool *reads) {
    const enum soft_op op = (enum soft_op)in->op;
    if (op >= SOFT_OP_mov_32 && op < SOFT_OP_ld_global_u8) return true;
    if (op == SOFT_OP_ld_slow || (op >= SOFT_OP_ld_global_u8 && op <= SOFT_OP_ld_global_v4_32)) {
        *reads = reads_workspace(launch, split, in);
        return *reads;
    }
    return op == SOFT_OP_join || op == SOFT_OP_nothing || op == SOFT_OP_guard ||
           op == SOFT_OP_fence || op == SOFT_OP_sleep || op == SOFT_OP_turn;
}

/* Whether a split that can run is in a loop that only reads the workspace. */
static bool stall_spins(const struct soft_launch *launch, const struct soft_split *split) {
    const struct soft_code *code = split->frame->code;
    const struct soft_instruction *last = split->pc,
                                  *end = code->instructions + code->instruction_count;
    bool reads = false;
    unsigned yields = 0;
    while (last < end && last->op != SOFT_OP_bra && last->op != SOFT_OP_bra_if) last++;
    if (last == end || last->target > split->pc) return false;
    for (const struct soft_instruction *in = last->target; in < last; in++) {
        if (!stall_is_harmless(launch, split, in, &reads)) return false;
        yields += in->op == SOFT_OP_sleep || in->op == SOFT_OP_turn;
    }
    return reads && yields <= YIELDS_MAX;
}

/* Whether each lane of a warp spins, in one split at most, because only one has a turn; or waits
 * for others of its cluster. A lane that waits in a join may be released from it and do more. */
static bool stall_holds_warp(const struct soft_launch *launch, const struct soft_warp *warp) {
    uint32_t held = 0, ready = 0;
    for (int s = 0; s < warp->split_end && warp->alive != 0; s++) {
        const struct soft_split *split = &warp->splits[s];
        if (split->state == SOFT_SPLIT_FREE) continue;
        if (split->state == SOFT_SPLIT_POLL) return false;
        if (split->state == SOFT_SPLIT_READY && !stall_spins(launch, split)) return false;
        held |= split->mask;
        ready += split->state == SOFT_SPLIT_READY;
    }
    return held == warp->alive && ready <= 1;
}

static bool stall_holds(struct soft_launch *launch, struct soft_cta *first) {
    for (uint32_t r = 0; r < soft_cluster_count(first); r++) {
        const struct soft_cta *cta = soft_cluster_member(first, r);
        for (uint32_t w = 0; w < cta->warp_count; w++) {
            if (!stall_holds_warp(launch, &cta->warps[w])) return false;
        }
    }
    return true;
}

/* Reports a split that spins. */
static void stall_fail(struct soft_launch *launch, struct soft_cta *first, uint64_t left) {
    for (uint32_t r = 0; r < soft_cluster_count(first); r++) {
        struct soft_cta *cta = soft_cluster_member(first, r);
        for (uint32_t w = 0; w < cta->warp_count; w++) {
            struct soft_warp *warp = &cta->warps[w];
            for (int s = 0; s < warp->split_end && warp->alive != 0; s++) {
                struct soft_split *split = &warp->splits[s];
                if (split->state != SOFT_SPLIT_READY) continue;
                warp->split = split;
                soft_launch_fail(warp, split->pc, CUDA_ERROR_LAUNCH_TIMEOUT, split->mask, 0,
                                 "deadlock: a block waits at the grid's barrier, as do all %llu "
                                 "that are left; %llu of %llu have ended",
                                 (unsigned long long)left,
                                 (unsigned long long)(launch->clusters - left),
                                 (unsigned long long)launch->clusters);
                return;
            }
        }
    }
}

/* Whether a block has changed the workspace since the last turn of any block ended. A turn may
 * begin and end in such loops and pass a barrier in between; the arrival at the next barrier shows
 * here. The count of arrivals never returns to an old value unseen: a barrier opens only after a
 * block has waited at it, and that block's turn ended with the count as it then was. The caller
 * holds the launch's lock. */
static bool stall_sees_change(struct soft_launch *launch) {
    uint8_t now[SOFT_WORKSPACE_BYTES];
    const bool is_read = soft_space_read(launch->workspace, now, sizeof now);
    if (is_read && memcmp(now, launch->stall_seen, sizeof now) == 0) return false;
    if (is_read) memcpy(launch->stall_seen, now, sizeof now);
    return true;
}

uint64_t soft_stall_begin(struct soft_launch *launch) {
    return atomic_load(&launch->stall_round);
}

void soft_stall_end(struct soft_launch *launch, struct soft_cta *cta, enum soft_stop stop,
                    uint64_t round) {
    assert(launch->workspace != 0);
    const bool stalls = stop == SOFT_STOP_YIELD && stall_holds(launch, cta);
    const bool only_reads = stalls && cta->stalls;
    bool never_ends = false;
    cta->stalls = stalls;
    pthread_mutex_lock(&launch->lock);
    const uint64_t left = launch->clusters - atomic_load(&launch->ended);
    if (stall_sees_change(launch) || !only_reads) {
        atomic_fetch_add(&launch->stall_round, 1);
        launch->stalled = 0;
    } else if (round == atomic_load(&launch->stall_round)) {
        if (cta->stall_round != round) cta->stall_turns = 0;
        cta->stall_round = round;
        launch->stalled += ++cta->stall_turns == TURNS;
        never_ends = launch->stalled == left;
    }
    assert(launch->stalled <= left);
    pthread_mutex_unlock(&launch->lock);
    if (never_ends) stall_fail(launch, cta, left);
}

/*
 * The state of an mbarrier object. Source: PTX ISA 9.0, section 9.7.13.15
 * (mbarrier).
 */
#include "mbarrier.h"

#include "tollens/cuda_abi.h"
#include "machine/access.h"
#include "machine/cluster_member.h"
#include "machine/finding.h"
#include "machine/mbarrier_init.h"
#include "machine/race_events.h"

#include <stdio.h>
#include <string.h>

/* The bits of an object, lowest first: arrivals pending, arrivals expected in each phase, pending
 * bytes (signed), the parity of the phase, and a mark that other data is unlikely to contain. */
enum { COUNT_BITS = 20, BYTES_BITS = 21, COUNT_MAX = (1 << COUNT_BITS) - 1, MARK = 2 };

struct mbarrier_state {
    uint32_t pending, expected;
    int64_t bytes;
    uint32_t parity;
};

static uint64_t mbarrier_pack(const struct mbarrier_state *state) {
    uint64_t bytes = (uint64_t)state->bytes & ((1u << BYTES_BITS) - 1);
    return state->pending | (uint64_t)state->expected << COUNT_BITS | bytes << (2 * COUNT_BITS) |
           (uint64_t)state->parity << 61 | (uint64_t)MARK << 62;
}

static struct mbarrier_state mbarrier_unpack(uint64_t word) {
    int64_t bytes = (int64_t)(word << (64 - 2 * COUNT_BITS - BYTES_BITS)) >> (64 - BYTES_BITS);
    return (struct mbarrier_state){.pending = word & COUNT_MAX,
                                   .expected = word >> COUNT_BITS & COUNT_MAX,
                                   .bytes = bytes,
                                   .parity = word >> 61 & 1};
}

static uint64_t mbarrier_load(const struct soft_cta *cta, uint32_t offset) {
    uint64_t word;
    memcpy(&word, cta->shared + offset, sizeof word);
    return word;
}

static void mbarrier_store(struct soft_cta *cta, uint32_t offset, uint64_t word) {
    memcpy(cta->shared + offset, &word, sizeof word);
    soft_shadow_mark(cta->shared_shadow, offset, sizeof word);
}

#define EACH_LANE(lane, mask)                                                                      \
    for (uint32_t lane##_left = (mask), lane = 0;                                                  \
         lane##_left != 0 && (lane = (uint32_t)__builtin_ctz(lane##_left), true);                  \
         lane##_left &= lane##_left - 1)

/* Prints the object of a name, with its block if that is another one. */
static void mbarrier_describe(struct soft_cta *cta, uint32_t name, char *text, size_t bytes) {
    uint32_t offset = 0;
    const struct soft_cta *home = soft_cluster_find(cta, name, &offset);
    int end = snprintf(text, bytes, "the mbarrier at offset 0x%x", offset);
    if (home == cta) return;
    snprintf(text + end, bytes - (size_t)end, " of block %u of the cluster", home->rank);
}

static bool mbarrier_fail(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                          uint32_t name, const char *why) {
    char what[96];
    mbarrier_describe(warp->cta, name, what, sizeof what);
    soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, name, "%s %s", what,
                     why);
    return false;
}

/* The CTA whose shared memory contains a place; NULL: it is elsewhere. */
static struct soft_cta *mbarrier_home_of(struct soft_cta *cta, const struct soft_place *place,
                                         uint64_t *offset) {
    for (uint32_t r = 0; r < soft_cluster_count(cta); r++) {
        struct soft_cta *home = soft_cluster_member(cta, r);
        *offset = (uint64_t)((uintptr_t)place->host - (uintptr_t)home->shared);
        if (*offset < home->shared_bytes) return home;
    }
    return NULL;
}

/* The name of a possible object. */
static bool mbarrier_find_place(struct soft_warp *warp, const struct soft_instruction *in,
                                uint32_t lane, uint64_t address, enum soft_access_space space,
                                uint32_t *name) {
    struct soft_place place;
    uint64_t offset = 0;
    if (!soft_access_range(warp, in, lane, address, 8, 8, space, SOFT_ACCESS_WRITE, &place)) {
        return false;
    }
    const struct soft_cta *home = mbarrier_home_of(warp->cta, &place, &offset);
    if (home != NULL) {
        *name = soft_cluster_name(warp->cta, home, (uint32_t)offset);
        return true;
    }
    soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_ADDRESS, 1u << lane, address,
                     "an mbarrier must be in shared memory, and 0x%llx is not",
                     (unsigned long long)address);
    return false;
}

static bool is_valid(const struct soft_cta *cta, uint32_t offset) {
    const uint8_t *shadow = cta->shared_shadow;
    bool written = shadow == NULL || (shadow[offset / 4] == 0xf && shadow[offset / 4 + 1] == 0xf);
    return written && mbarrier_load(cta, offset) >> 62 == MARK;
}

bool soft_mbarrier_find(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                        uint64_t address, enum soft_access_space space, uint32_t *name) {
    uint32_t offset = 0;
    if (!mbarrier_find_place(warp, in, lane, address, space, name)) return false;
    const struct soft_cta *home = soft_cluster_find(warp->cta, *name, &offset);
    if (!is_valid(home, offset)) {
        return mbarrier_fail(warp, in, lane, *name, "was never initialised or is no longer valid");
    }
    if (home != warp->cta) soft_init_use(warp, in, lane, home, offset);
    return true;
}

/* The phase of an object is over: its waiters are ready. */
static void mbarrier_wake(struct soft_cta *cta, uint32_t offset) {
    cta->idle = 0;
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        struct soft_warp *warp = &cta->warps[w];
        for (int s = 0; s < SOFT_SPLITS_MAX && warp->polling > 0; s++) {
            struct soft_split *split = &warp->splits[s];
            if (split->state != SOFT_SPLIT_POLL) continue;
            if (split->barrier != offset && split->barrier != UINT32_MAX) continue;
            split->state = SOFT_SPLIT_READY;
            warp->polling--;
            cta->blocked &= ~(1u << w);
        }
    }
}

bool soft_mbarrier_apply(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                         uint32_t name, const struct soft_mbarrier_change *change,
                         uint64_t *before) {
    uint32_t offset = 0;
    struct soft_cta *cta = soft_cluster_find(warp->cta, name, &offset);
    if (cta->warps_alive == 0) {
        return mbarrier_fail(warp, in, lane, name, "is gone: its block has exited");
    }
    *before = mbarrier_load(cta, offset);
    if (!is_valid(cta, offset)) return mbarrier_fail(warp, in, lane, name, "is no longer valid");
    struct mbarrier_state state = mbarrier_unpack(*before);
    state.pending += change->more;
    state.bytes += change->bytes;
    if (state.pending > COUNT_MAX) {
        return mbarrier_fail(warp, in, lane, name, "has the maximum number of pending arrivals");
    }
    if (state.bytes > COUNT_MAX || state.bytes < -COUNT_MAX) {
        return mbarrier_fail(warp, in, lane, name, "can expect at most 1048575 bytes");
    }
    if (change->arrivals > state.pending || change->dropped > state.expected) {
        char why[80];
        snprintf(why, sizeof why, "has %u pending arrivals, and %u arrive", state.pending,
                 change->arrivals);
        return mbarrier_fail(warp, in, lane, name, why);
    }
    state.pending -= change->arrivals;
    state.expected -= change->dropped;
    bool over = state.pending == 0 && state.bytes == 0;
    if (over && change->must_not_complete) {
        return mbarrier_fail(warp, in, lane, name,
                             "would complete its phase by this arrival, which .noComplete forbids");
    }
    if (over) {
        state.pending = state.expected;
        state.parity ^= 1;
    }
    mbarrier_store(cta, offset, mbarrier_pack(&state));
    if (over) soft_race_phase(cta, offset);
    if (over) mbarrier_wake(cta, offset);
    return true;
}

static bool mbarrier_initialise(struct soft_warp *warp, const struct soft_instruction *in,
                                uint32_t lane, uint32_t name, uint32_t count) {
    struct mbarrier_state state = {.pending = count, .expected = count};
    uint32_t offset = 0;
    struct soft_cta *cta = soft_cluster_find(warp->cta, name, &offset);
    if (count == 0 || count > COUNT_MAX) {
        char why[80];
        snprintf(why, sizeof why, "cannot expect %u arrivals, only 1 to %d", count, COUNT_MAX);
        return mbarrier_fail(warp, in, lane, name, why);
    }
    mbarrier_store(cta, offset, mbarrier_pack(&state));
    soft_race_forget(cta, offset);
    if (cta == warp->cta) soft_init_note(warp, lane, offset);
    return true;
}

static struct soft_mbarrier_change mbarrier_change_of(const struct soft_instruction *in,
                                                      uint32_t b) {
    struct soft_mbarrier_change change = {.must_not_complete =
                                              (in->mode & SOFT_MBARRIER_NO_COMPLETE) != 0};
    switch (in->mode >> SOFT_MBARRIER_SHIFT & SOFT_MBARRIER_ACT) {
    case SOFT_MBARRIER_EXPECT_TX:
        change.bytes = b;
        break;
    case SOFT_MBARRIER_COMPLETE_TX:
        change.bytes = -(int64_t)b;
        break;
    default:
        change.arrivals = in->mode & SOFT_MBARRIER_EXPECTS ? 1 : b;
        change.bytes = in->mode & SOFT_MBARRIER_EXPECTS ? b : 0;
        change.dropped = in->mode & SOFT_MBARRIER_DROP ? change.arrivals : 0;
        break;
    }
    return change;
}

static bool mbarrier_run_lane(struct soft_warp *warp, const struct soft_instruction *in,
                              uint32_t lane) {
    uint32_t act = in->mode >> SOFT_MBARRIER_SHIFT & SOFT_MBARRIER_ACT, name = 0, offset = 0;
    uint32_t b = SLOT(uint32_t, in->b)[lane];
    uint64_t address = soft_access_address(warp, in, lane), before = 0;
    enum soft_access_space space = soft_access_space(in->mode);
    if (act == SOFT_MBARRIER_INIT) {
        return mbarrier_find_place(warp, in, lane, address, space, &name) &&
               mbarrier_initialise(warp, in, lane, name, b);
    }
    if (!soft_mbarrier_find(warp, in, lane, address, space, &name)) return false;
    if (act == SOFT_MBARRIER_INVAL) {
        struct soft_cta *cta = soft_cluster_find(warp->cta, name, &offset);
        mbarrier_store(cta, offset, 0);
        return true;
    }
    if (act == SOFT_MBARRIER_ARRIVE && (in->mode & SOFT_MBARRIER_EXPECTS) == 0 && b == 0) {
        return mbarrier_fail(warp, in, lane, name, "cannot receive 0 arrivals");
    }
    struct soft_mbarrier_change change = mbarrier_change_of(in, b);
    if (act == SOFT_MBARRIER_ARRIVE && (in->mode & SOFT_MBARRIER_RELAXED) == 0) {
        soft_race_release(warp, lane, name, false);
    }
    if (!soft_mbarrier_apply(warp, in, lane, name, &change, &before)) return false;
    if ((in->mode & SOFT_MBARRIER_STATE) != 0) SLOT(uint64_t, in->d)[lane] = before;
    return true;
}

const struct soft_instruction *soft_mbarrier_run(struct soft_warp *warp,
                                                 const struct soft_instruction *in) {
    EACH_LANE(lane, warp->mask) {
        if (!mbarrier_run_lane(warp, in, lane)) return NULL;
    }
    soft_race_go_on(warp->cta);
    return in + 1;
}

uint32_t soft_mbarrier_pending(uint64_t word) {
    return mbarrier_unpack(word).pending;
}

uint32_t soft_mbarrier_parity(uint64_t word) {
    return mbarrier_unpack(word).parity;
}

uint64_t soft_mbarrier_state(const struct soft_cta *cta, uint32_t offset) {
    return mbarrier_load(cta, offset);
}

void soft_mbarrier_describe(const struct soft_cta *cta, uint32_t offset, char *text, size_t bytes) {
    if (offset == UINT32_MAX) {
        snprintf(text, bytes, "several mbarriers");
        return;
    }
    struct mbarrier_state state = mbarrier_unpack(mbarrier_load(cta, offset));
    snprintf(text, bytes, "the mbarrier at offset 0x%x (%u of %u arrivals and %lld bytes missing)",
             offset, state.pending, state.expected, (long long)state.bytes);
}

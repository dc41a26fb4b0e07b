/*
 * Clocks as trees. A leaf is the clock of one CTA: a time for all its threads, and the threads with
 * a later time.
 */
#include "thread_clock.h"

#include <string.h>

enum { BRANCH_BITS = 3, BRANCHES = 1 << BRANCH_BITS };

/* The head of a branch, followed by its children, or of a leaf, followed by its items. */
struct soft_clock {
    _Alignas(16) uint32_t references;
    uint32_t count; /* of a leaf: its items */
    uint32_t all;   /* of a leaf: the time of every thread */
};

struct item {
    uint32_t time, lanes, warp;
};

enum {
    BRANCH_BYTES = sizeof(struct soft_clock) + BRANCHES * sizeof(struct soft_clock *),
};

static struct soft_clock **thread_clock_children(const struct soft_clock *branch) {
    return (struct soft_clock **)(uintptr_t)(branch + 1);
}

static struct item *items_of(const struct soft_clock *leaf) {
    return (struct item *)(uintptr_t)(leaf + 1);
}

void soft_clocks_begin(struct soft_clocks *clocks, uint64_t ctas) {
    *clocks = (struct soft_clocks){.levels = 1};
    while (clocks->levels * BRANCH_BITS < 32 && ctas > 1ull << (clocks->levels * BRANCH_BITS)) {
        clocks->levels++;
    }
}

void soft_clocks_end(struct soft_clocks *clocks) {
    soft_chunks_clear(&clocks->chunks);
}

static size_t leaf_bytes(uint32_t count) {
    return sizeof(struct soft_clock) + count * sizeof(struct item);
}

static struct soft_clock *new_clock(struct soft_clocks *clocks, size_t bytes) {
    struct soft_clock *clock = soft_chunk_take(&clocks->chunks, bytes);
    if (clock == NULL) {
        clocks->failed = true;
        return NULL;
    }
    clock->references = 1;
    return clock;
}

struct soft_clock *soft_clock_hold(struct soft_clock *clock) {
    if (clock != NULL) clock->references++;
    return clock;
}

static void thread_clock_drop(struct soft_clocks *clocks, struct soft_clock *clock,
                              unsigned level) {
    if (clock == NULL || --clock->references > 0) return;
    for (int i = 0; i < BRANCHES && level > 0; i++)
        thread_clock_drop(clocks, thread_clock_children(clock)[i], level - 1);
    size_t bytes = level > 0 ? BRANCH_BYTES : leaf_bytes(clock->count);
    soft_chunk_give(&clocks->chunks, clock, bytes);
}

void soft_clock_drop(struct soft_clocks *clocks, struct soft_clock *clock) {
    thread_clock_drop(clocks, clock, clocks->levels);
}

/* The threads of a warp with a later time than all. Returns their number of items. */
static uint32_t pack_warp(const uint32_t times[SOFT_CLOCK_LANES], uint32_t warp, uint32_t all,
                          struct item *items) {
    uint32_t count = 0, left = 0;
    for (uint32_t lane = 0; lane < SOFT_CLOCK_LANES; lane++) {
        left |= (uint32_t)(times[lane] > all) << lane;
    }
    while (left != 0) {
        uint32_t time = times[__builtin_ctz(left)], lanes = 0;
        for (uint32_t lane = 0; lane < SOFT_CLOCK_LANES; lane++) {
            lanes |= (uint32_t)(times[lane] == time) << lane;
        }
        items[count++] = (struct item){.time = time, .lanes = lanes, .warp = warp};
        left &= ~lanes;
    }
    return count;
}

static struct soft_clock *thread_clock_pack(struct soft_clocks *clocks, uint32_t warps,
                                            uint32_t times[][SOFT_CLOCK_LANES]) {
    struct item items[SOFT_CLOCK_WARPS * SOFT_CLOCK_LANES];
    uint32_t all = UINT32_MAX, count = 0;
    for (uint32_t warp = 0; warp < warps; warp++) {
        for (uint32_t lane = 0; lane < SOFT_CLOCK_LANES; lane++) {
            if (times[warp][lane] < all) all = times[warp][lane];
        }
    }
    for (uint32_t warp = 0; warp < warps; warp++) {
        count += pack_warp(times[warp], warp, all, items + count);
    }
    struct soft_clock *leaf = new_clock(clocks, leaf_bytes(count));
    if (leaf == NULL) return NULL;
    leaf->count = count;
    leaf->all = all;
    memcpy(items_of(leaf), items, count * sizeof items[0]);
    return leaf;
}

static void thread_clock_unpack(const struct soft_clock *leaf,
                                uint32_t times[SOFT_CLOCK_WARPS][SOFT_CLOCK_LANES]) {
    for (uint32_t i = 0; i < SOFT_CLOCK_WARPS * SOFT_CLOCK_LANES; i++) {
        times[i / SOFT_CLOCK_LANES][i % SOFT_CLOCK_LANES] = leaf->all;
    }
    for (uint32_t i = 0; i < leaf->count; i++) {
        const struct item *item = &items_of(leaf)[i];
        for (uint32_t left = item->lanes; left != 0; left &= left - 1) {
            times[item->warp][__builtin_ctz(left)] = item->time;
        }
    }
}

static struct soft_clock *join_leaves(struct soft_clocks *clocks, struct soft_clock *one,
                                      struct soft_clock *other) {
    uint32_t a[SOFT_CLOCK_WARPS][SOFT_CLOCK_LANES], b[SOFT_CLOCK_WARPS][SOFT_CLOCK_LANES];
    bool adds = false, misses = false;
    thread_clock_unpack(one, a);
    thread_clock_unpack(other, b);
    for (uint32_t warp = 0; warp < SOFT_CLOCK_WARPS; warp++) {
        for (uint32_t lane = 0; lane < SOFT_CLOCK_LANES; lane++) {
            adds |= b[warp][lane] > a[warp][lane];
            misses |= b[warp][lane] < a[warp][lane];
            if (b[warp][lane] > a[warp][lane]) a[warp][lane] = b[warp][lane];
        }
    }
    if (!adds) return soft_clock_hold(one);
    if (!misses) return soft_clock_hold(other);
    return thread_clock_pack(clocks, SOFT_CLOCK_WARPS, a);
}

static struct soft_clock *thread_clock_join(struct soft_clocks *clocks, struct soft_clock *one,
                                            struct soft_clock *other, unsigned level) {
    if (other == NULL || one == other) return soft_clock_hold(one);
    if (one == NULL) return soft_clock_hold(other);
    if (level == 0) return join_leaves(clocks, one, other);
    struct soft_clock *child[BRANCHES], *both = NULL;
    bool is_one = true, is_other = true;
    for (int i = 0; i < BRANCHES; i++) {
        child[i] = thread_clock_join(clocks, thread_clock_children(one)[i],
                                     thread_clock_children(other)[i], level - 1);
        is_one &= child[i] == thread_clock_children(one)[i];
        is_other &= child[i] == thread_clock_children(other)[i];
    }
    if (is_one || is_other) {
        both = soft_clock_hold(is_one ? one : other);
    } else {
        both = new_clock(clocks, BRANCH_BYTES);
    }
    if (is_one || is_other || both == NULL) {
        for (int i = 0; i < BRANCHES; i++) thread_clock_drop(clocks, child[i], level - 1);
        return both;
    }
    memcpy((void *)thread_clock_children(both), (const void *)child, sizeof child);
    return both;
}

struct soft_clock *soft_clock_join(struct soft_clocks *clocks, struct soft_clock *one,
                                   struct soft_clock *other) {
    return thread_clock_join(clocks, one, other, clocks->levels);
}

/* Which branch leads to a CTA from a level. */
static unsigned branch_of(uint32_t cta, unsigned level) {
    unsigned shift = (level - 1) * BRANCH_BITS;
    return shift < 32 ? (cta >> shift) % BRANCHES : 0;
}

struct soft_clock *soft_clock_of(struct soft_clocks *clocks, uint32_t cta, uint32_t warps,
                                 uint32_t times[][SOFT_CLOCK_LANES]) {
    struct soft_clock *clock = thread_clock_pack(clocks, warps, times);
    for (unsigned level = 1; level <= clocks->levels && clock != NULL; level++) {
        struct soft_clock *above = new_clock(clocks, BRANCH_BYTES);
        if (above == NULL) {
            thread_clock_drop(clocks, clock, level - 1);
            return NULL;
        }
        thread_clock_children(above)[branch_of(cta, level)] = clock;
        clock = above;
    }
    return clock;
}

static const struct soft_clock *leaf_of(const struct soft_clocks *clocks,
                                        const struct soft_clock *clock, uint32_t cta) {
    for (unsigned level = clocks->levels; level > 0 && clock != NULL; level--) {
        clock = thread_clock_children(clock)[branch_of(cta, level)];
    }
    return clock;
}

bool soft_clock_covers(const struct soft_clocks *clocks, const struct soft_clock *clock,
                       uint32_t cta, uint32_t warp, uint32_t lanes, uint32_t time) {
    clock = leaf_of(clocks, clock, cta);
    if (clock == NULL) return false;
    if (clock->all >= time) return true;
    /* A lane is in one item at most. */
    for (uint32_t i = 0; i < clock->count && lanes != 0; i++) {
        const struct item *item = &items_of(clock)[i];
        if (item->warp == warp && item->time >= time) lanes &= ~item->lanes;
    }
    return lanes == 0;
}

bool soft_clock_covers_any(const struct soft_clocks *clocks, const struct soft_clock *clock,
                           uint32_t cta, uint32_t warp, uint32_t warps, uint32_t time) {
    clock = leaf_of(clocks, clock, cta);
    if (clock == NULL) return false;
    bool any = clock->all >= time;
    for (uint32_t i = 0; i < clock->count && !any; i++) {
        const struct item *item = &items_of(clock)[i];
        any = item->warp - warp < warps && item->time >= time;
    }
    return any;
}

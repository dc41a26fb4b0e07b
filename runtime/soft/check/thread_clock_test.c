/*
 * Clocks and their memory, compared with plain arrays.
 */
#include "thread_clock.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { CTAS = 70, WARPS = 3, CLOCKS = 24, STEPS = 3000 };

/* What a clock knows, as an array. */
struct model {
    uint32_t times[CTAS][WARPS][SOFT_CLOCK_LANES];
};

static uint32_t pick(uint32_t below) {
    static uint32_t state = 12345;
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
}

/* Of the threads of some warps the one that is known furthest decides. */
static void check_any(const struct soft_clocks *clocks, const struct soft_clock *clock,
                      uint32_t cta, const struct model *model) {
    uint32_t first = pick(WARPS), count = 1 + pick(WARPS - first), furthest = 0;
    for (uint32_t i = 0; i < count * SOFT_CLOCK_LANES; i++) {
        uint32_t warp = first + i / SOFT_CLOCK_LANES;
        uint32_t time = model->times[cta][warp][i % SOFT_CLOCK_LANES];
        if (time > furthest) furthest = time;
    }
    cr_assert(furthest == 0 || soft_clock_covers_any(clocks, clock, cta, first, count, furthest));
    cr_assert(!soft_clock_covers_any(clocks, clock, cta, first, count, furthest + 1));
}

static void check(const struct soft_clocks *clocks, const struct soft_clock *clock,
                  const struct model *model) {
    for (uint32_t tries = 0; tries < 40; tries++) {
        uint32_t cta = pick(CTAS), warp = pick(WARPS), lane = pick(SOFT_CLOCK_LANES);
        const uint32_t *times = model->times[cta][warp], time = times[lane];
        cr_assert(time == 0 || soft_clock_covers(clocks, clock, cta, warp, 1u << lane, time),
                  "CTA %u, warp %u, lane %u is known up to %u", cta, warp, lane, time);
        cr_assert(!soft_clock_covers(clocks, clock, cta, warp, 1u << lane, time + 1),
                  "CTA %u, warp %u, lane %u is known up to %u only", cta, warp, lane, time);
        /* Of several lanes the one that is known least decides. */
        uint32_t lanes = pick(1u << 24) << 8 | pick(1u << 8) | 1u << lane, last = time;
        for (uint32_t other = 0; other < SOFT_CLOCK_LANES; other++) {
            if ((lanes >> other & 1) != 0 && times[other] < last) last = times[other];
        }
        cr_assert(last == 0 || soft_clock_covers(clocks, clock, cta, warp, lanes, last));
        cr_assert(!soft_clock_covers(clocks, clock, cta, warp, lanes, last + 1));
        check_any(clocks, clock, cta, model);
    }
}

Test(thread_clock, joins_know_what_either_knows) {
    static struct model models[CLOCKS];
    struct soft_clock *made[CLOCKS] = {NULL};
    struct soft_clocks clocks;
    soft_clocks_begin(&clocks, CTAS);
    for (int step = 0; step < STEPS; step++) {
        uint32_t to = pick(CLOCKS), one = pick(CLOCKS), other = pick(CLOCKS);
        struct soft_clock *clock = NULL;
        struct model model = {0};
        if (pick(3) == 0) {
            uint32_t cta = pick(CTAS), all = pick(100) + 1, some = pick(WARPS * SOFT_CLOCK_LANES);
            for (uint32_t i = 0; i < WARPS * SOFT_CLOCK_LANES; i++) {
                model.times[cta][i / SOFT_CLOCK_LANES][i % SOFT_CLOCK_LANES] = all;
            }
            for (uint32_t i = 0; i < some; i++) {
                model.times[cta][pick(WARPS)][pick(SOFT_CLOCK_LANES)] = all + pick(100);
            }
            clock = soft_clock_of(&clocks, cta, WARPS, model.times[cta]);
        } else {
            const uint32_t *a = &models[one].times[0][0][0], *b = &models[other].times[0][0][0];
            uint32_t *c = &model.times[0][0][0];
            for (size_t i = 0; i < sizeof model / 4; i++) c[i] = a[i] > b[i] ? a[i] : b[i];
            clock = soft_clock_join(&clocks, made[one], made[other]);
        }
        soft_clock_drop(&clocks, made[to]);
        made[to] = clock;
        models[to] = model;
        check(&clocks, clock, &model);
    }
    for (int i = 0; i < CLOCKS; i++) soft_clock_drop(&clocks, made[i]);
    cr_assert(!clocks.failed);
    soft_clocks_end(&clocks);
}

/* A chain of blocks, each of which knows all before it: a link shares all but a path. */
Test(thread_clock, a_long_chain_costs_little) {
    enum { LONG = 20000 };
    uint32_t times[1][SOFT_CLOCK_LANES];
    struct soft_clocks clocks;
    struct soft_clock *chain[LONG], *last = NULL;
    soft_clocks_begin(&clocks, LONG);
    for (int i = 0; i < SOFT_CLOCK_LANES; i++) times[0][i] = 5;
    for (uint32_t cta = 0; cta < LONG; cta++) {
        struct soft_clock *own = soft_clock_of(&clocks, cta, 1, times);
        last = chain[cta] = soft_clock_join(&clocks, last, own);
        soft_clock_drop(&clocks, own);
    }
    cr_assert(soft_clock_covers(&clocks, last, 0, 0, 1u << 31, 5));
    cr_assert(soft_clock_covers(&clocks, chain[100], 100, 0, 1, 5));
    cr_assert(!soft_clock_covers(&clocks, chain[100], 101, 0, 1, 1));
    /* Who knows all learns nothing from who knows less. */
    struct soft_clock *same = soft_clock_join(&clocks, last, chain[LONG / 2]);
    cr_assert(same == last);
    soft_clock_drop(&clocks, same);
    for (uint32_t cta = 0; cta < LONG; cta++) soft_clock_drop(&clocks, chain[cta]);
    cr_assert(!clocks.failed);
    soft_clocks_end(&clocks);
}

Test(thread_clock, what_is_given_back_is_used_again) {
    struct soft_chunks chunks = {0};
    uint8_t *first = soft_chunk_take(&chunks, 100);
    cr_assert(first != NULL);
    memset(first, 0xee, 100);
    soft_chunk_give(&chunks, first, 100);
    soft_chunk_give(&chunks, NULL, 100);
    uint8_t *small = soft_chunk_take(&chunks, 64), *second = soft_chunk_take(&chunks, 90);
    cr_assert(small != first, "it is of another size");
    cr_assert(second == first);
    for (int i = 0; i < 90; i++) cr_assert_eq(second[i], 0, "byte %d", i);
    soft_chunks_clear(&chunks);
    cr_assert(soft_chunk_take(&chunks, SIZE_MAX / 2) == NULL);
    soft_chunks_clear(&chunks);
}

static void count(uint64_t number, void *record, void *data) {
    uint64_t *sums = data, value;
    memcpy(&value, record, sizeof value);
    sums[0]++;
    sums[1] += value == number * 3;
}

Test(thread_clock, pages_are_there_from_their_first_use_on) {
    enum { PAGES = 5000 };
    struct soft_chunks chunks = {0};
    struct soft_pages pages = {.chunks = &chunks, .record_bytes = 24};
    uint64_t sums[2] = {0, 0};
    for (uint64_t i = 0; i < PAGES; i++) {
        uint64_t number = i * i << 9, *record = soft_pages_at(&pages, number);
        cr_assert(record != NULL);
        cr_assert_eq((uintptr_t)record % 8, 0);
        cr_assert_eq(record[0] | record[1] | record[2], 0);
        *record = number * 3;
    }
    for (uint64_t i = 0; i < PAGES; i++) {
        uint64_t number = i * i << 9, *record = soft_pages_at(&pages, number);
        cr_assert_eq(*record, number * 3);
    }
    soft_pages_each(&pages, count, sums);
    cr_assert_eq(sums[0], PAGES);
    cr_assert_eq(sums[1], PAGES);
    soft_pages_end(&pages);
    soft_chunks_clear(&chunks);
}

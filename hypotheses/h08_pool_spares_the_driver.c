/*
 * H8: the pool spares the driver allocations.
 *
 * The words below say how; `tollens explain H8` prints them.
 */
#include "harness/attack.h"
#include "harness/claim.h"
#include "harness/ledger.h"
#include "attack/pool_walk.h"

HYP_WORDS(
    8, .is_measured = true,
    .claim = "128 blocks that are allocated and freed cost fewer than 10 allocations of the "
             "driver with the pool, where they cost more than 100 without it.",
    .prediction = "At most 6 with the pool, of memory of its own, exactly 128 without: for blocks "
                  "of 1 KiB to 10 MiB, freed at once or in any order with up to 32 of them live.",
    .falsified_if = "10 or more driver functions that make device memory are called with the pool "
                    "for any seed, or 100 or fewer without it, or the pool says another number.",
    .method = "The interposer counts cuMemAlloc, cuMemAllocFromPoolAsync and cuMemCreate, failed "
              "ones too, from before the pool is made to after its last block is freed, over 8 "
              "seeds (30 with --full) and both orders.",
    .control = "The same sizes in the same order through tol_buffer_create, which must reach the "
               "driver each time: a count that missed calls would show there.",
    .confounders = "A pool that allocated everything at first would need few calls as well: what "
                   "it holds at most is recorded beside what was live at most.")

enum { PAIRS = 128, LIVE_MAX = 32 };

static const uint64_t least = 1 << 10, most = 10 << 20;

static uint64_t draw_bytes(struct hyp_attack *attack) {
    return least + hyp_random_below(attack, most - least);
}

/* How many blocks may be live at once: one, freed before the next is made, or several. */
static void count_pool(struct hyp_attack *attack, unsigned live_max, unsigned seed) {
    struct tol_pool_stats stats;
    struct tol_block live[LIVE_MAX];
    unsigned count = 0;
    tol_status status = TOL_OK;
    const uint64_t before = hyp_ledger_calls();
    struct tol_pool *pool = hyp_walk_pool(attack, tol_pool_default, 1, 0);
    bool ok = pool != NULL;
    for (unsigned made = 0; ok && (made < PAIRS || count > 0);) {
        bool grows = made < PAIRS && count < live_max &&
                     (count == 0 || live_max == 1 || hyp_random_below(attack, 2) == 0);
        if (grows) {
            status = tol_pool_allocate(pool, draw_bytes(attack), NULL, &live[count]);
            count++, made++;
        } else {
            size_t index = hyp_random_below(attack, count);
            status = tol_pool_free(pool, live[index], NULL);
            live[index] = live[--count];
        }
        if (status != TOL_OK) ok = HYP_OK(attack, status);
    }
    const uint64_t calls = hyp_ledger_calls() - before;
    if (ok && HYP_OK(attack, tol_pool_stats(pool, &stats))) {
        hyp_attack_measure(attack, (double)calls, "pool, %u live, seed %u", live_max, seed);
        HYP_CHECK(attack, calls == stats.driver_allocations,
                  "the driver was asked %llu times, and the pool says %llu",
                  (unsigned long long)calls, (unsigned long long)stats.driver_allocations);
        if (seed == 0) {
            hyp_attack_note(attack, "up to %u live: %llu bytes live at most, %llu held at most",
                            live_max, (unsigned long long)stats.requested_peak,
                            (unsigned long long)stats.held_peak);
        }
    }
    tol_pool_destroy(pool);
    struct hyp_ledger ledger = hyp_ledger_read();
    HYP_CHECK(attack, ledger.bytes == 0, "%llu bytes have not come back to the driver",
              (unsigned long long)ledger.bytes);
}

static void count_pools(struct hyp_attack *attack, unsigned live_max) {
    const unsigned seeds = attack->session.full ? 30 : 8;
    for (unsigned seed = 0; seed < seeds; seed++) {
        count_pool(attack, live_max, seed);
        hyp_attack_progress(attack, (double)(seed + 1) / seeds);
    }
}

HYP_ATTACK_WITH(h08, pairs_one_after_another, .ledger = true) {
    count_pools(attack, 1);
}

HYP_ATTACK_WITH(h08, pairs_in_any_order, .ledger = true) {
    count_pools(attack, LIVE_MAX);
}

HYP_ATTACK_WITH(h08, without_the_pool_every_block_is_the_drivers, .ledger = true) {
    const uint64_t before = hyp_ledger_calls();
    for (unsigned i = 0; i < PAIRS; i++) {
        struct tol_buffer *buffer = NULL;
        tol_status status = tol_buffer_create(attack->context, draw_bytes(attack), 1, &buffer);
        if (status != TOL_OK) HYP_NEED(attack, status);
        tol_buffer_destroy(buffer);
    }
    const uint64_t calls = hyp_ledger_calls() - before;
    hyp_attack_record(attack, (double)calls, "without the pool");
    HYP_CHECK(attack, calls > 100, "%u blocks took %llu allocations without a pool", PAIRS,
              (unsigned long long)calls);
}

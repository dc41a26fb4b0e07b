/*
 * H8: the pool avoids driver allocations, in its default profile.
 *
 * `tollens explain H8` prints the text below.
 */
#include "harness/attack.h"
#include "harness/claim.h"
#include "harness/ledger.h"
#include "attack/pool_walk.h"

HYP_WORDS(
    8, .is_measured = true,
    .claim = "Allocating and freeing 128 blocks takes fewer than 10 driver allocations with the "
             "pool and more than 100 without it.",
    .prediction = "At most 6 with the pool, for memory of its own, and exactly 128 without it, "
                  "for blocks of 1 KiB to 10 MiB, freed at once or in random order with up to 32 "
                  "live.",
    .falsified_if = "driver functions that allocate device memory are called 10 or more times "
                    "with the pool for any seed, or 100 or fewer times without it, or the pool "
                    "reports another number.",
    .method = "The interposer counts calls of cuMemAlloc, cuMemAllocFromPoolAsync and "
              "cuMemCreate, including failed ones, from before the pool is created until after "
              "its last block is freed, over 8 walks (30 with --full) and in both orders.",
    .control = "The same sizes in the same order through tol_buffer_create, which must call the "
               "driver every time. A counter that misses calls would show here.",
    .confounders = "A pool that allocated everything in advance would also need few calls. The "
                   "peak of held bytes is therefore recorded beside the peak of live bytes.")

enum { PAIRS = 128, LIVE_MAX = 32 };

static const uint64_t least = 1 << 10, most = 10 << 20;

static uint64_t pool_draw_bytes(struct hyp_attack *attack) {
    return least + hyp_random_below(attack, most - least);
}

/* Counts the driver's allocations for PAIRS blocks with at most live_max of them live. With 1, each
 * block is freed before the next is allocated. */
static void count_pool(struct hyp_attack *attack, unsigned live_max, unsigned number) {
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
            status = tol_pool_allocate(pool, pool_draw_bytes(attack), NULL, &live[count]);
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
        hyp_attack_measure(attack, (double)calls, "pool, %u live, walk %u", live_max, number);
        HYP_CHECK(attack, calls == stats.driver_allocations,
                  "%llu driver allocations were counted, and the pool reports %llu",
                  (unsigned long long)calls, (unsigned long long)stats.driver_allocations);
        if (number == 0) {
            hyp_attack_note(attack, "up to %u live blocks: peak of %llu bytes live and %llu held",
                            live_max, (unsigned long long)stats.requested_peak,
                            (unsigned long long)stats.held_peak);
        }
    }
    tol_pool_destroy(pool);
    struct hyp_ledger ledger = hyp_ledger_read();
    HYP_CHECK(attack, ledger.bytes == 0, "%llu bytes were not returned to the driver",
              (unsigned long long)ledger.bytes);
}

static void count_pools(struct hyp_attack *attack, unsigned live_max) {
    const unsigned walks = attack->session.full ? 30 : 8;
    for (unsigned i = 0; i < walks; i++) {
        count_pool(attack, live_max, i);
        hyp_attack_progress(attack, (double)(i + 1) / walks);
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
        tol_status status = tol_buffer_create(attack->context, pool_draw_bytes(attack), 1, &buffer);
        if (status != TOL_OK) HYP_NEED(attack, status);
        tol_buffer_destroy(buffer);
    }
    const uint64_t calls = hyp_ledger_calls() - before;
    hyp_attack_record(attack, (double)calls, "without the pool");
    HYP_CHECK(attack, calls > 100,
              "%u blocks caused %llu driver allocations without a pool, expected more than 100",
              PAIRS, (unsigned long long)calls);
}

/*
 * The ledger against what the soft device itself says is free, and a walk that is measured by it.
 */
#include "harness/ledger.h"
#include "files/atomic_file.h"
#include "pool_walk.h"
#include "record/record.h"
#include "harness/sabotage.h"
#include "harness/session.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tol_driver *driver;
static struct tol_context *context;

/* Opens a context with a ledger, and with a saboteur if one is named. */
static void open_with(const char *saboteur) {
    struct tol_interpose_options options = {.before = NULL};
    cr_assert(saboteur == NULL || hyp_sabotage_hooks(saboteur, &options), "%s", hyp_error());
    hyp_ledger_open(&options);
    cr_assert(tol_driver_open(hyp_session_soft_library(), &driver) == TOL_OK, "%s", tol_message());
    cr_assert(tol_interpose_install(driver, &options) == TOL_OK, "%s", tol_message());
    cr_assert(tol_context_create(driver, 0, &context) == TOL_OK, "%s", tol_message());
}
static void close_all(void) {
    tol_context_destroy(context);
    tol_interpose_remove(driver);
    tol_driver_close(driver);
}
TestSuite(ledger, .fini = close_all);

static size_t free_bytes(void) {
    size_t bytes = 0;
    cr_assert(tol_context_memory(context, &bytes, NULL) == TOL_OK);
    return bytes;
}

Test(ledger, what_is_given_and_got_back_is_written_down) {
    enum { BUFFERS = 3000, UNIT = 512 };
    static struct tol_buffer *buffers[BUFFERS];
    open_with(NULL);
    uint64_t bytes = 0;
    const size_t before = free_bytes();
    for (size_t i = 0; i < BUFFERS; i++) {
        size_t size = UNIT * (1 + i % 7);
        cr_assert(tol_buffer_create(context, size, 1, &buffers[i]) == TOL_OK);
        bytes += size;
    }
    struct hyp_ledger ledger = hyp_ledger_read();
    cr_assert(ledger.bytes == bytes && ledger.made == BUFFERS && ledger.unmade == 0);
    cr_assert(before - free_bytes() == bytes, "%zu", before - free_bytes());
    cr_assert(hyp_ledger_calls() == BUFFERS);
    for (size_t i = 0; i < BUFFERS; i += 2) {
        bytes -= tol_buffer_bytes(buffers[i]);
        tol_buffer_destroy(buffers[i]);
    }
    ledger = hyp_ledger_read();
    cr_assert(ledger.bytes == bytes && before - free_bytes() == bytes && ledger.foreign == 0);
    for (size_t i = 1; i < BUFFERS; i += 2) tol_buffer_destroy(buffers[i]);
    ledger = hyp_ledger_read();
    cr_assert(ledger.bytes == 0 && ledger.unmade == BUFFERS && ledger.foreign == 0);
}

Test(ledger, a_refusal_is_a_call_and_no_memory) {
    open_with(NULL);
    struct tol_buffer *buffer = NULL;
    cr_assert(tol_buffer_create(context, free_bytes() + 1, 1, &buffer) == TOL_OUT_OF_DEVICE_MEMORY);
    struct hyp_ledger ledger = hyp_ledger_read();
    cr_assert(ledger.bytes == 0 && ledger.made == 0 && hyp_ledger_calls() == 1);
}

Test(ledger, what_a_saboteur_keeps_from_the_driver_stays_owed) {
    open_with("alloc_leak");
    for (int i = 0; i < 3; i++) {
        struct tol_buffer *buffer = NULL;
        cr_assert(tol_buffer_create(context, 1 << 20, 1, &buffer) == TOL_OK);
        tol_buffer_destroy(buffer);
    }
    cr_assert(hyp_ledger_read().bytes == 1 << 20);
}

Test(ledger, what_was_never_given_is_foreign) {
    open_with("oom_swallowed");
    struct tol_buffer *buffer = NULL;
    cr_assert(tol_buffer_create(context, free_bytes() + 1, 1, &buffer) == TOL_OK);
    cr_assert(hyp_ledger_read().made == 0);
    tol_buffer_destroy(buffer);
    cr_assert(hyp_ledger_read().foreign == 1);
}

/* ---- walks ----------------------------------------------------------------------------------- */

static struct hyp_record record = {.suite = "h12", .name = "a_walk"};

static struct hyp_attack attack_on(const char *saboteur) {
    struct hyp_attack attack = {.driver = driver, .context = context, .record = &record};
    attack.session.sabotage = saboteur;
    return attack;
}

/* Walks over a pool, and returns it with all blocks freed. */
static struct hyp_walk walk_under(const char *saboteur, unsigned threads) {
    struct hyp_attack attack = attack_on(saboteur);
    struct hyp_walk walk = {.attack = &attack,
                            .pool = hyp_walk_pool(&attack, tol_pool_default, 1, 0),
                            .threads = threads,
                            .least = 1 << 10,
                            .most = 10 << 20,
                            .floor_bytes = 256 << 20};
    cr_assert(walk.pool != NULL, "%s", tol_message());
    hyp_walk_steps(&walk, 400, 70, 0);
    hyp_walk_end(&walk);
    return walk;
}

Test(ledger, a_walk_measures_what_the_driver_gave) {
    open_with(NULL);
    struct hyp_walk walk = walk_under(NULL, 1);
    cr_assert(walk.step == 400 && !walk.broken && walk.pool == NULL);
    cr_assert(walk.requested > 256 << 20 && walk.worst >= walk.final && walk.final >= 1);
    struct hyp_walk threaded = walk_under(NULL, 4);
    cr_assert(threaded.step == 400 && !threaded.broken && threaded.worst >= 1);
    cr_assert(hyp_ledger_read().bytes == 0);
}

/* Blocks of 5 MiB on average that share no pages of 2 MiB waste a MiB each. */
Test(ledger, a_walk_over_a_wasteful_pool_is_measured_so) {
    open_with(NULL);
    struct hyp_walk walk = walk_under("pool_shares_nothing", 1);
    cr_assert(walk.final > 1.15 && walk.worst >= walk.final, "%g %g", walk.final, walk.worst);
}

Test(ledger, the_same_seed_takes_the_same_walk) {
    open_with(NULL);
    struct hyp_walk walk = walk_under(NULL, 1), again = walk_under(NULL, 1);
    cr_assert(walk.requested == again.requested && walk.final == again.final &&
              walk.worst == again.worst);
}

/* A moment at which just the floor is live is one of those that count. */
Test(ledger, the_floor_of_a_walk_counts) {
    open_with(NULL);
    struct hyp_attack attack = attack_on(NULL);
    struct hyp_walk walk = {.attack = &attack,
                            .pool = hyp_walk_pool(&attack, tol_pool_default, 1, 0),
                            .least = 1 << 20,
                            .most = (1 << 20) + 1,
                            .floor_bytes = 1 << 20};
    hyp_walk_steps(&walk, 1, 100, 0);
    cr_assert(walk.requested == 1 << 20 && walk.worst == walk.final && walk.worst >= 1);
    hyp_walk_end(&walk);
}

/* Three in five up to 1 MiB, three in ten up to 32 MiB, one in ten from 64 MiB on; all divided. */
Test(ledger, mixed_sizes_are_drawn_in_their_shares) {
    enum { SCALE = 1024, DRAWS = 2000 };
    unsigned small = 0, medium = 0, large = 0;
    open_with(NULL);
    struct hyp_attack attack = attack_on(NULL);
    struct hyp_walk walk = {.attack = &attack,
                            .pool = hyp_walk_pool(&attack, tol_pool_default, SCALE, 0),
                            .scale = SCALE,
                            .sizes = HYP_WALK_MIXED};
    for (int i = 0; i < DRAWS; i++) {
        const uint64_t before = walk.requested;
        hyp_walk_steps(&walk, 1, 100, 0);
        const uint64_t mib = (walk.requested - before) * SCALE >> 20;
        small += mib < 1;
        medium += mib >= 1 && mib < 32;
        large += mib >= 63 && mib <= 512;
    }
    hyp_walk_end(&walk);
    cr_assert(small + medium + large == DRAWS);
    cr_assert(small > DRAWS * 56 / 100 && small < DRAWS * 64 / 100, "%u", small);
    cr_assert(medium > DRAWS * 26 / 100 && medium < DRAWS * 34 / 100, "%u", medium);
}

/* After a failed call there is nothing to measure. */
Test(ledger, a_walk_ends_where_a_call_fails) {
    open_with(NULL);
    struct hyp_attack attack = attack_on(NULL);
    struct hyp_walk walk = {.attack = &attack,
                            .pool = hyp_walk_pool(&attack, tol_pool_default, 1, 64 << 20),
                            .least = 1 << 20,
                            .most = 2 << 20};
    hyp_walk_steps(&walk, 4000, 100, 0);
    hyp_walk_end(&walk);
    cr_assert(walk.broken && walk.step < 400, "%llu", (unsigned long long)walk.step);
}

Test(ledger, a_steady_walk_keeps_below_what_it_may) {
    open_with(NULL);
    struct hyp_attack attack = attack_on(NULL);
    struct hyp_walk walk = {.attack = &attack,
                            .pool = hyp_walk_pool(&attack, tol_pool_tight, 4, 0),
                            .scale = 4,
                            .sizes = HYP_WALK_MIXED};
    hyp_walk_steps(&walk, 2000, 50, 1 << 30);
    cr_assert(walk.requested_peak <= 1 << 30 && walk.requested_peak > 512 << 20);
    hyp_walk_end(&walk);
}

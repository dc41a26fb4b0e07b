/*
 * Compaction: after a comb, memory that is free in pieces suffices for large blocks, no byte of a
 * live block has changed, and everything is released at the end. Also with a driver whose nth call
 * fails.
 */
#include "test/test_scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
enum { BLOCKS_MAX = 400 };

struct comb {
    struct tol_pool *pool;
    size_t limit;
    struct tol_block blocks[BLOCKS_MAX];
    size_t count;
    uint64_t live, random;
};

typedef void profile(const struct tol_device *device, struct tol_pool_options *options);
static profile *const profiles[] = {tol_pool_default, tol_pool_tight, tol_pool_latency};

static uint64_t draw(struct comb *comb, uint64_t below) {
    comb->random = comb->random * 6364136223846793005u + 1442695040888963407u;
    return (comb->random >> 33) % below;
}

static const struct tol_driver_table *driver_now(void) {
    MUST(tol_context_bind(test_context()));
    return tol_context_functions(test_context());
}

static struct tol_pool_stats stats_of(struct tol_pool *pool) {
    struct tol_pool_stats stats;
    MUST(tol_pool_stats(pool, &stats));
    return stats;
}

static unsigned mark_of(struct tol_block block) {
    return (unsigned)(block.name * 0x9e3779b97f4a7c15u >> 32);
}

/* Allocates and fills with a number of its own; false: memory is out. */
static bool add(struct comb *comb, size_t bytes) {
    struct tol_block block;
    tol_status status = tol_pool_allocate(comb->pool, bytes, NULL, &block);
    if (status == TOL_OUT_OF_DEVICE_MEMORY) return false;
    cr_assert(status == TOL_OK, "%s", tol_message());
    cr_assert_lt(comb->count, BLOCKS_MAX);
    CUdeviceptr at = tol_pool_address(comb->pool, block);
    cr_assert_eq(driver_now()->cuMemsetD32_v2(at, mark_of(block), bytes / 4), CUDA_SUCCESS);
    cr_assert_eq(driver_now()->cuStreamSynchronize(NULL), CUDA_SUCCESS);
    comb->blocks[comb->count++] = block;
    comb->live += bytes;
    return true;
}

static void check(struct comb *comb, struct tol_block block) {
    static unsigned host[4 * 1024 * 1024];
    size_t bytes = tol_pool_bytes(comb->pool, block);
    CUdeviceptr at = tol_pool_address(comb->pool, block);
    cr_assert(bytes / 4 * 4 <= sizeof host);
    cr_assert_eq(driver_now()->cuMemcpyDtoH_v2(host, at, bytes / 4 * 4), CUDA_SUCCESS);
    const unsigned mark = mark_of(block);
    size_t whole = 0;
    while (whole < bytes / 4 && host[whole] == mark) whole++;
    cr_assert(whole == bytes / 4, "word %zu of %zu bytes at %#llx is another's", whole, bytes,
              (unsigned long long)at);
}

static void drop(struct comb *comb, size_t i) {
    comb->live -= tol_pool_bytes(comb->pool, comb->blocks[i]);
    check(comb, comb->blocks[i]);
    MUST(tol_pool_free(comb->pool, comb->blocks[i], NULL));
    comb->blocks[i] = comb->blocks[--comb->count];
}

static void open_pool(struct comb *comb, const struct tol_pool_options *options) {
    *comb = (struct comb){.limit = options->limit_bytes, .random = 42};
    tol_status status = tol_pool_create(test_context(), options, &comb->pool);
    if (status == TOL_UNSUPPORTED) cr_skip_test("%s", tol_message());
    cr_assert(status == TOL_OK, "%s", tol_message());
}

/* Keeps what is chosen. */
static void thin(struct comb *comb, bool (*keeps)(struct comb *comb, struct tol_block block)) {
    size_t kept = 0;
    for (size_t i = 0; i < comb->count; i++) {
        if (keeps(comb, comb->blocks[i])) {
            comb->blocks[kept++] = comb->blocks[i];
        } else {
            comb->live -= tol_pool_bytes(comb->pool, comb->blocks[i]);
            MUST(tol_pool_free(comb->pool, comb->blocks[i], NULL));
        }
    }
    comb->count = kept;
}

static bool keeps_half(struct comb *comb, struct tol_block block) {
    (void)block;
    return draw(comb, 2) == 0;
}

static void make_comb(struct comb *comb, profile *with, size_t limit, bool compact) {
    struct tol_pool_options options;
    with(tol_context_device(test_context()), &options);
    options.limit_bytes = limit;
    options.compact = compact;
    if (options.first_bytes > 8 * MIB) options.first_bytes = 8 * MIB;
    if (options.large_bytes > 4 * MIB) options.large_bytes = 4 * MIB;
    if (options.page_bytes > 8 * MIB) options.page_bytes = 8 * MIB;
    open_pool(comb, &options);
    while (add(comb, MIB / 2 + draw(comb, MIB))) continue;
    thin(comb, keeps_half);
}

/* Frees all, which must be whole; then nothing is held. */
static void end_comb(struct comb *comb) {
    cr_assert_eq(stats_of(comb->pool).requested, comb->live);
    cr_assert(stats_of(comb->pool).held_peak <= comb->limit);
    while (comb->count > 0) drop(comb, draw(comb, comb->count));
    MUST(tol_pool_trim(comb->pool, 0));
    struct tol_pool_stats stats = stats_of(comb->pool);
    cr_assert(stats.held == 0 && stats.used == 0 && stats.shared == 0,
              "%llu bytes are held in %llu shared handles", (unsigned long long)stats.held,
              (unsigned long long)stats.shared);
    cr_assert_eq(stats.driver_frees, stats.driver_allocations, "%llu of %llu handles went back",
                 (unsigned long long)stats.driver_frees,
                 (unsigned long long)stats.driver_allocations);
    tol_pool_destroy(comb->pool);
}

/* What can be live when large blocks and small ones have been added until there is no room. */
static double usable(struct comb *comb) {
    while (add(comb, 16 * MIB)) continue;
    while (add(comb, 4 * MIB)) continue;
    return (double)comb->live / (double)comb->limit;
}

Test(pool_mesh, what_a_comb_leaves_serves_large_blocks, .timeout = 60) {
    static struct comb comb;
    for (int p = 0; p < 3; p++) {
        make_comb(&comb, profiles[p], 64 * MIB, false);
        double before = usable(&comb);
        end_comb(&comb);
        make_comb(&comb, profiles[p], 64 * MIB, true);
        double after = usable(&comb);
        cr_log_info("profile %d: %.3f usable, %.3f before, %llu moves", p, after, before,
                    (unsigned long long)stats_of(comb.pool).compacted);
        const uint64_t moves = stats_of(comb.pool).compacted;
        cr_assert(moves > 0 && moves < 1000, "%llu", (unsigned long long)moves);
        /* Of 32 pages few are partners; of 10,000 nearly all. */
        cr_assert(after >= 0.8 && after >= before + 0.1, "only %.3f is usable: %s", after,
                  tol_message());
        end_comb(&comb);
    }
    test_end();
}

/* ---- easy to mesh: the half of a page that is used is not the next page's -------------------- */

static bool keeps_a_half_page(struct comb *comb, struct tol_block block) {
    uint64_t mib = tol_pool_address(comb->pool, block) / MIB;
    return mib % 2 == mib / 2 % 2;
}

static void make_halves(struct tol_pool_options *options) {
    tol_pool_tight(tol_context_device(test_context()), options);
    options->limit_bytes = 16 * MIB;
    options->first_count = 0;
    options->large_bytes = 4 * MIB;
    options->compact = true;
}

static void fill_halves(struct comb *comb, const struct tol_pool_options *options) {
    open_pool(comb, options);
    while (add(comb, MIB)) continue;
    cr_assert_eq(comb->count, 16);
    thin(comb, keeps_a_half_page);
    cr_assert_eq(comb->count, 8);
}

struct trap {
    bool armed;
    struct test_refusal refusal;
};

static bool is_of_meshing(const struct tol_interpose_call *call) {
    switch (call->index) {
    case TOL_DRIVER_INDEX_cuMemCreate:
    case TOL_DRIVER_INDEX_cuMemMap:
    case TOL_DRIVER_INDEX_cuMemUnmap:
    case TOL_DRIVER_INDEX_cuMemSetAccess:
    case TOL_DRIVER_INDEX_cuMemcpyDtoDAsync_v2:
    case TOL_DRIVER_INDEX_cuMemAddressReserve:
    case TOL_DRIVER_INDEX_cuStreamQuery:
        return true;
    default:
        return false;
    }
}

static void fail_nth(struct tol_interpose_call *call, void *user) {
    struct trap *trap = user;
    if (trap->armed && is_of_meshing(call)) test_refuse(call, &trap->refusal);
}

static void note_answer(struct tol_interpose_call *call, void *user) {
    struct trap *trap = user;
    if (trap->armed) test_refuse_after(call, &trap->refusal);
}

/* Goal: a refusal in the middle of a move leaves each block where it was, whole. */
Test(pool_mesh, the_nth_call_that_is_refused_loses_nothing, .timeout = 120) {
    static struct comb comb;
    static struct trap trap;
    struct tol_pool_options options;
    uint64_t calls = 0, n = 0;
    MUST(tol_interpose_install(
        test_driver(),
        &(struct tol_interpose_options){.before = fail_nth, .after = note_answer, .user = &trap}));
    make_halves(&options);
    do {
        fill_halves(&comb, &options);
        n = test_next_scenario(n);
        trap =
            (struct trap){.armed = true, .refusal = {.nth = n, .result = CUDA_ERROR_NOT_PERMITTED}};
        struct tol_block block = {0};
        tol_status status = tol_pool_allocate(comb.pool, 8 * MIB, NULL, &block);
        trap.armed = false;
        calls = trap.refusal.calls;
        cr_assert(calls < n || n < 1000, "%llu calls", (unsigned long long)calls);
        if (calls < n) cr_assert(status == TOL_OK, "%s", tol_message());
        if (status == TOL_OK) MUST(tol_pool_free(comb.pool, block, NULL));
        end_comb(&comb);
    } while (calls >= n);
    cr_assert(n > 15, "only %llu calls", (unsigned long long)n);
    tol_interpose_remove(test_driver());
    test_end();
}

/* Goal: what was freed on a page that others share is not handed out while they live, and the page
 * goes when they do not. */
Test(pool_mesh, freed_parts_of_shared_pages_stay_blocked) {
    static struct comb comb;
    struct tol_pool_options options;
    make_halves(&options);
    fill_halves(&comb, &options);
    cr_assert(add(&comb, 8 * MIB));
    struct tol_pool_stats stats = stats_of(comb.pool);
    cr_assert(stats.shared == 4 && stats.compactions == 1, "%llu",
              (unsigned long long)stats.shared);
    uint64_t held = stats.held;
    /* One of each page: the other's bytes must survive what is allocated next. */
    for (size_t i = 0; i < 4; i++) drop(&comb, i);
    while (add(&comb, 4096)) {
        if (comb.count > 100) break;
    }
    cr_assert_leq(stats_of(comb.pool).held, held);
    /* Without the blocks of a page it is given back. */
    while (comb.count > 0) drop(&comb, comb.count - 1);
    MUST(tol_pool_trim(comb.pool, 0));
    cr_assert(stats_of(comb.pool).held == 0 && stats_of(comb.pool).shared == 0);
    /* And the addresses serve again. */
    while (add(&comb, MIB)) continue;
    cr_assert_eq(comb.count, 16);
    end_comb(&comb);
    test_end();
}

static bool keeps_a_page_less(struct comb *comb, struct tol_block block) {
    const uint64_t mib = (tol_pool_address(comb->pool, block) - comb->random) / MIB;
    return mib == 2 || mib >= 4;
}

/* Goal: if the second page of a handle is used and has no partner, it moves to a new page, and
 * the handle goes. Handles have two pages under a limit of 1 GiB, and a large block takes that. */
Test(pool_mesh, a_page_without_a_partner_moves_to_a_new_one) {
    static struct comb comb;
    struct tol_pool_options options;
    struct tol_block most = {0};
    make_halves(&options);
    options.limit_bytes = 1024 * MIB;
    options.first_count = 3;
    options.first_bytes = 4 * MIB;
    open_pool(&comb, &options);
    while (comb.count < 12) cr_assert(add(&comb, MIB));
    cr_assert_eq(stats_of(comb.pool).driver_allocations, 3);
    comb.random = tol_pool_address(comb.pool, comb.blocks[0]);
    thin(&comb, keeps_a_page_less);
    cr_assert_eq(comb.count, 9);
    MUST(tol_pool_allocate(comb.pool, 1010 * MIB, NULL, &most));
    cr_assert_eq(stats_of(comb.pool).held, 1022 * MIB);
    cr_assert(add(&comb, 4 * MIB), "%s", tol_message());
    struct tol_pool_stats stats = stats_of(comb.pool);
    cr_assert(stats.compactions == 1 && stats.held == 1024 * MIB, "%llu compactions, %llu held",
              (unsigned long long)stats.compactions, (unsigned long long)stats.held);
    MUST(tol_pool_free(comb.pool, most, NULL));
    end_comb(&comb);
    test_end();
}

static bool note_hold(void *user, bool begin) {
    int *holds = user;
    holds[begin]++;
    return holds[1] > 1;
}

Test(pool_mesh, the_program_is_asked_before_and_told_after) {
    static struct comb comb;
    struct tol_pool_options options;
    int holds[2] = {0};
    make_halves(&options);
    options.hold = note_hold;
    options.user = holds;
    fill_halves(&comb, &options);
    cr_assert(!add(&comb, 8 * MIB) && holds[1] == 1 && holds[0] == 0);
    cr_assert(add(&comb, 8 * MIB) && holds[1] == 2 && holds[0] == 1);
    end_comb(&comb);
    test_end();
}

static void add_wiped(struct tol_interpose_call *call, void *user) {
    uint64_t *wiped = user;
    if (call->index != TOL_DRIVER_INDEX_cuMemsetD8Async) return;
    *wiped += *(const size_t *)call->arguments[2];
}

/* Goal: a wiped pool leaves nothing in the handles that it has copied from. */
Test(pool_mesh, what_was_copied_from_is_wiped) {
    static struct comb comb;
    struct tol_pool_options options;
    uint64_t wiped = 0;
    MUST(tol_interpose_install(
        test_driver(), &(struct tol_interpose_options){.after = add_wiped, .user = &wiped}));
    make_halves(&options);
    options.wipe = true;
    fill_halves(&comb, &options);
    wiped = 0;
    struct tol_block block = {0};
    MUST(tol_pool_allocate(comb.pool, 8 * MIB, NULL, &block));
    cr_assert(wiped == 8 * MIB, "%llu bytes", (unsigned long long)wiped);
    MUST(tol_pool_free(comb.pool, block, NULL));
    end_comb(&comb);
    tol_interpose_remove(test_driver());
    test_end();
}

/* The largest handle of a pool of the latency profile that is filled to a quarter of its limit. */
static uint64_t largest_handle(bool compact) {
    enum { BLOCKS = 512 };
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    uint64_t largest = 0;
    tol_pool_latency(tol_context_device(test_context()), &options);
    options.limit_bytes = 2048 * MIB;
    options.first_count = 0; /* the handles that begin a pool have their own size */
    options.compact = compact;
    MUST(tol_pool_create(test_context(), &options, &pool));
    for (unsigned i = 0; i < BLOCKS; i++) {
        struct tol_block block;
        struct tol_pool_stats before = stats_of(pool);
        MUST(tol_pool_allocate(pool, MIB, NULL, &block));
        struct tol_pool_stats after = stats_of(pool);
        if (after.driver_allocations != before.driver_allocations + 1) continue;
        if (after.held - before.held > largest) largest = after.held - before.held;
    }
    tol_pool_destroy(pool);
    return largest;
}

/* A handle is compacted as a whole, so a pool that may be compacted takes no large ones. */
Test(pool_mesh, a_pool_to_compact_takes_small_handles) {
    uint64_t small = largest_handle(true), large = largest_handle(false);
    cr_assert(small > 0 && small <= 2048 * MIB / 256, "%llu", (unsigned long long)small);
    cr_assert(large > 2048 * MIB / 256, "%llu: there is nothing to limit",
              (unsigned long long)large);
}

/*
 * A scenario of a pool, repeated so that for each n the nth driver call fails once. Live blocks
 * stay live and keep their bytes, a failed call changes nothing and can be repeated, the statistics
 * are right, and at the end the pool has released everything.
 */
#include "test/test_scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
enum { LIVE_MAX = 64, STEPS = 60, TRIES = 4 };

struct one {
    struct tol_block block;
    CUdeviceptr at;
    size_t bytes;
    unsigned char value;
    bool is_wiped; /* by a free that failed then */
};

struct scenario {
    enum tol_pool_source source;
    bool wipe;
    const struct tol_driver_table *real; /* not interposed: what the test itself does cannot fail */
    struct tol_context *context;
    struct tol_pool *pool;
    struct tol_stream *streams[3]; /* the first is the host's, NULL */
    unsigned tag;
    struct one live[LIVE_MAX];
    size_t count;
    uint64_t random, requested;
    int failures; /* calls of the runtime that failed, for another reason than memory */
};

static uint64_t draw(struct scenario *l, uint64_t below) {
    l->random = l->random * 6364136223846793005u + 1442695040888963407u;
    return (l->random >> 33) % below;
}

static bool passed(struct scenario *l, tol_status status) {
    l->failures += status != TOL_OK && status != TOL_OUT_OF_DEVICE_MEMORY;
    return status == TOL_OK;
}

static void keep(struct scenario *l, struct tol_block block, size_t bytes) {
    struct one *one = &l->live[l->count++];
    *one = (struct one){.block = block,
                        .at = tol_pool_address(l->pool, block),
                        .bytes = bytes,
                        .value = (unsigned char)draw(l, 256)};
    cr_assert(one->at != 0 && tol_pool_bytes(l->pool, block) == bytes);
    /* The stream may wait for another. */
    for (int i = 1; i < 3; i++) l->real->cuStreamSynchronize(tol_stream_handle(l->streams[i]));
    const size_t ends = bytes < 64 ? bytes : 64;
    cr_assert_eq(l->real->cuMemsetD8_v2(one->at, one->value, ends), CUDA_SUCCESS);
    cr_assert_eq(l->real->cuMemsetD8_v2(one->at + bytes - ends, one->value, ends), CUDA_SUCCESS);
    l->requested += bytes;
}

static void look(struct scenario *l, const struct one *one) {
    unsigned char ends[2] = {0};
    if (one->is_wiped) return;
    cr_assert_eq(l->real->cuMemcpyDtoH_v2(&ends[0], one->at, 1), CUDA_SUCCESS);
    cr_assert_eq(l->real->cuMemcpyDtoH_v2(&ends[1], one->at + one->bytes - 1, 1), CUDA_SUCCESS);
    cr_assert(ends[0] == one->value && ends[1] == one->value, "a block has lost its bytes");
}

static size_t draw_bytes(struct scenario *l) {
    return 1 + (size_t)draw(l, (9 * MIB) >> draw(l, 12));
}

static void allocate(struct scenario *l) {
    struct tol_block block = {0};
    const size_t bytes = draw_bytes(l);
    if (passed(l,
               tol_pool_allocate_tagged(l->pool, bytes, l->streams[draw(l, 3)], l->tag, &block))) {
        keep(l, block, bytes);
    }
}

static void allocate_batch(struct scenario *l) {
    struct tol_block blocks[3];
    size_t bytes[3];
    for (int i = 0; i < 3; i++) bytes[i] = draw_bytes(l) / 4 + 1;
    if (passed(l, tol_pool_allocate_batch(l->pool, 3, bytes, l->streams[draw(l, 3)], blocks))) {
        for (int i = 0; i < 3; i++) keep(l, blocks[i], bytes[i]);
    }
}

static void drop(struct scenario *l, size_t which) {
    struct one one = l->live[which];
    look(l, &one);
    if (!passed(l, tol_pool_free(l->pool, one.block, l->streams[draw(l, 3)]))) {
        cr_assert(tol_pool_address(l->pool, one.block) == one.at, "a free that failed freed");
        l->live[which].is_wiped = l->wipe;
        return;
    }
    l->requested -= one.bytes;
    l->live[which] = l->live[--l->count];
}

static void check_sums(struct scenario *l) {
    struct tol_pool_stats s;
    if (!passed(l, tol_pool_stats(l->pool, &s))) return;
    cr_assert(s.requested == l->requested && s.blocks == l->count,
              "%llu of %llu bytes, %llu of %zu", (unsigned long long)s.requested,
              (unsigned long long)l->requested, (unsigned long long)s.blocks, l->count);
    if (l->source == TOL_POOL_DRIVER) return;
    cr_assert_eq(s.held, s.used + s.kept + s.idle + s.page_waste);
}

static void run_scenario(struct scenario *l) {
    char *text = NULL, diagnosis[600];
    for (int step = 0; step < STEPS; step++) {
        uint64_t which = draw(l, 100);
        if (which < 45 && l->count + 3 < LIVE_MAX) {
            allocate(l);
        } else if (which < 52 && l->count + 3 < LIVE_MAX) {
            allocate_batch(l);
        } else if (which < 90 && l->count > 0) {
            drop(l, (size_t)draw(l, l->count));
        } else if (which < 94) {
            (void)passed(l, tol_pool_trim(l->pool, (size_t)draw(l, 20 * MIB)));
        } else if (which < 97) {
            check_sums(l);
        } else if (passed(l, tol_pool_snapshot(l->pool, &text))) {
            free(text);
            tol_pool_diagnose(l->pool, 1, diagnosis, sizeof diagnosis);
        }
    }
}

/* What failed once does not fail again: in the end nothing is left. */
static void end_well(struct scenario *l) {
    struct tol_pool_stats s = {.held = 1};
    for (int i = 0; i < TRIES && (l->count > 0 || s.held > 0); i++) {
        for (size_t k = l->count; k-- > 0;) drop(l, k);
        for (int k = 1; k < 3; k++) l->real->cuStreamSynchronize(tol_stream_handle(l->streams[k]));
        (void)passed(l, tol_pool_trim(l->pool, 0));
        (void)passed(l, tol_pool_stats(l->pool, &s));
    }
    cr_assert(l->count == 0 && s.requested == 0 && s.used == 0 && s.blocks == 0);
    if (l->source == TOL_POOL_MAPPED || !test_on_gpu()) {
        cr_assert(s.held == 0, "%llu bytes are lost", (unsigned long long)s.held);
    }
}

/* false: it was not created. */
static bool begin(struct scenario *l, struct tol_driver *driver) {
    struct tol_pool_options options;
    if (!passed(l, tol_context_create(driver, 0, &l->context))) return false;
    tol_pool_tight(tol_context_device(l->context), &options);
    options.source = l->source;
    options.address_bytes = 64 * MIB; /* a range whose freeing fails is lost */
    options.first_bytes = 4 * MIB;
    options.large_bytes = 4 * MIB;
    options.slack_bytes = 2 * MIB;
    options.limit_bytes = 24 * MIB;
    options.guard_one_in = 7;
    options.wipe = l->wipe;
    options.trace_events = 40;
    for (int i = 1; i < 3; i++) {
        if (!passed(l, tol_stream_create(l->context, NULL, &l->streams[i]))) return false;
    }
    return passed(l, tol_pool_create(l->context, &options, &l->pool)) &&
           passed(l, tol_pool_tag(l->pool, "all", 0, &l->tag));
}

/* ---- what is made and unmade ---- */

static const struct {
    enum tol_driver_index make, unmake;
} pairs[] = {{TOL_DRIVER_INDEX_cuStreamCreateWithPriority, TOL_DRIVER_INDEX_cuStreamDestroy_v2},
             {TOL_DRIVER_INDEX_cuEventCreate, TOL_DRIVER_INDEX_cuEventDestroy_v2},
             {TOL_DRIVER_INDEX_cuMemAddressReserve, TOL_DRIVER_INDEX_cuMemAddressFree},
             {TOL_DRIVER_INDEX_cuMemCreate, TOL_DRIVER_INDEX_cuMemRelease},
             {TOL_DRIVER_INDEX_cuMemMap, TOL_DRIVER_INDEX_cuMemUnmap},
             {TOL_DRIVER_INDEX_cuMemPoolCreate, TOL_DRIVER_INDEX_cuMemPoolDestroy}};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

static int balance[PAIRS];

static void refuse(struct tol_interpose_call *call, void *user) {
    test_refuse(call, user);
}

/* Handles that lie side by side are unmapped in one call: those count by the MiB. */
static int weight_of(const struct tol_interpose_call *call) {
    bool by_size =
        call->index == TOL_DRIVER_INDEX_cuMemMap || call->index == TOL_DRIVER_INDEX_cuMemUnmap;
    return by_size ? (int)(*(const size_t *)call->arguments[1] / MIB) : 1;
}

/* A call that fails to make makes nothing; one that fails to unmake has been tried. */
static void count_call(struct tol_interpose_call *call, void *user) {
    test_refuse_after(call, user);
    for (int i = 0; i < PAIRS; i++) {
        bool is_made = pairs[i].make == call->index && call->result == CUDA_SUCCESS;
        if (is_made) balance[i] += weight_of(call);
        if (pairs[i].unmake == call->index) balance[i] -= weight_of(call);
    }
}

/* Whether the nth call was reached and failed. */
static bool runs_with_failure(enum tol_pool_source source, bool wipe, uint64_t n, CUresult result) {
    static struct scenario scenario;
    struct tol_driver *driver = test_driver();
    struct test_refusal refusal = {.nth = n, .result = result, .refused = TOL_DRIVER_FUNCTIONS};
    const struct tol_interpose_options options = {
        .before = refuse, .after = count_call, .user = &refusal};
    test_scenario_begin(driver, n, 1);
    scenario = (struct scenario){
        .source = source, .wipe = wipe, .real = tol_driver_functions(driver), .random = 5};
    memset(balance, 0, sizeof balance);
    MUST(tol_interpose_install(driver, &options));
    if (begin(&scenario, driver)) {
        run_scenario(&scenario);
        end_well(&scenario);
    }
    tol_pool_destroy(scenario.pool);
    if (scenario.context != NULL) {
        cr_assert(scenario.real->cuCtxSynchronize() == CUDA_SUCCESS,
                  "work met memory that had gone");
    }
    for (int i = 1; i < 3; i++) tol_stream_destroy(scenario.streams[i]);
    tol_context_destroy(scenario.context);
    tol_interpose_remove(driver);
    const enum tol_driver_index failed = refusal.refused;
    const char *name = tol_driver_function_name(failed);
    for (int i = 0; i < PAIRS; i++) {
        /* What the driver would not unmake is tried again. */
        if (failed == pairs[i].unmake && balance[i] < 0) continue;
        cr_assert(balance[i] == 0, "call %llu (%s) failed: %d more of %s than were unmade",
                  (unsigned long long)n, name, balance[i], tol_driver_function_name(pairs[i].make));
    }
    cr_assert(scenario.failures <= TRIES, "call %llu (%s) failed once, and %d calls of the runtime",
              (unsigned long long)n, name, scenario.failures);
    return failed != TOL_DRIVER_FUNCTIONS;
}

static void fail_each(enum tol_pool_source source, bool wipe, CUresult result, uint64_t least) {
    if (!test_on_gpu()) setenv("TOLLENS_SOFT_MEMORY", "128M", 1);
    enum tol_feature needed = source == TOL_POOL_MAPPED ? TOL_FEATURE_VMM : TOL_FEATURE_MEMORY_POOL;
    if (!tol_driver_has(test_driver(), needed)) cr_skip_test("the driver lacks it");
    uint64_t n = test_next_scenario(0);
    while (runs_with_failure(source, wipe, n, result)) n = test_next_scenario(n);
    cr_assert(n > least, "a scenario makes %llu driver calls only", (unsigned long long)n);
    test_scenarios_end();
    test_end();
}

Test(pool_failure, a_scenario_survives_any_refused_call, .timeout = 300) {
    fail_each(TOL_POOL_MAPPED, false, CUDA_ERROR_NOT_PERMITTED, 100);
}

Test(pool_failure, a_scenario_survives_any_lack_of_memory, .timeout = 300) {
    fail_each(TOL_POOL_MAPPED, true, CUDA_ERROR_OUT_OF_MEMORY, 100);
}

Test(pool_failure, a_scenario_on_the_drivers_pool_survives_any_refused_call, .timeout = 300) {
    fail_each(TOL_POOL_DRIVER, true, CUDA_ERROR_NOT_PERMITTED, 50);
}

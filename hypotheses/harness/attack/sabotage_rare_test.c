/*
 * Rare faults: one in every N calls of its kind, where the seed says, and what its sentence says.
 */
#include "rare_turn.h"
#include "files/atomic_file.h"
#include "sabotage_lists.h"
#include "sabotage_scene.h"
#include "harness/sabotage.h"
#include "harness/session.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Opens a context under a saboteur, with a seed. */
static void open_under(const char *name, uint64_t seed) {
    hyp_sabotage_place(seed, "attack");
    scene_open(name);
}
TestSuite(rare, .fini = scene_close);

/* Goal: one in every N, the first among the first N, wherever the seed puts it. */
Test(rare, a_fault_occurs_once_in_n_calls_and_the_seed_says_where) {
    enum { N = 100, ROUNDS = 3 };
    bool was_at[N] = {false};
    unsigned different = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        int first = -1;
        hyp_rare_begin(N, seed, "attack");
        for (int call = 0; call < ROUNDS * N; call++) {
            if (!hyp_rare_now()) continue;
            if (first < 0) first = call;
            cr_assert(call % N == first && first < N, "seed %d: call %d", (int)seed, call);
            was_at[first] = true;
        }
        cr_assert(first >= 0);
        hyp_rare_begin(N, seed, "attack");
        for (int call = 0; call <= first; call++) cr_assert(hyp_rare_now() == (call == first));
    }
    for (int i = 0; i < N; i++) different += was_at[i];
    cr_assert(different > 25, "50 seeds gave %u places", different);
    hyp_rare_begin(1, 9, "attack");
    for (int i = 0; i < 10; i++) cr_assert(hyp_rare_now());
}

Test(rare, another_attack_has_another_place) {
    enum { N = 1000000, ATTACKS = 4 };
    static const char *const names[ATTACKS] = {"a", "b", "ab", "ba"};
    uint64_t places[ATTACKS] = {0};
    for (int i = 0; i < ATTACKS; i++) {
        hyp_rare_begin(1, 1, names[i]);
        cr_assert(hyp_rare_byte(N, N, &places[i]));
        for (int k = 0; k < i; k++) cr_assert(places[i] != places[k]);
    }
}

Test(rare, one_byte_in_every_period_is_hit_however_the_copies_are_cut) {
    enum { PERIOD = 1000 };
    uint64_t whole = 0, at = 0;
    hyp_rare_begin(1, 7, "attack");
    cr_assert(hyp_rare_byte(PERIOD, PERIOD, &whole) && whole < PERIOD);
    for (uint64_t piece = 1; piece <= 333; piece += 83) {
        unsigned hits = 0;
        hyp_rare_begin(1, 7, "attack");
        for (uint64_t done = 0; done < 3 * PERIOD; done += piece) {
            if (!hyp_rare_byte(piece, PERIOD, &at)) continue;
            cr_assert((done + at) % PERIOD == whole, "piece %d", (int)piece);
            hits += done + at < 3 * PERIOD;
        }
        cr_assert(hits == 3, "%u hits in pieces of %d", hits, (int)piece);
    }
}

/* ---- each fault on the device ---------------------------------------------------------------- */

static const char kernels[] =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .entry mark(.param .u64 count)\n{\n"
    "  .reg .u64 %a;\n  ld.param.u64 %a, [count];\n  red.global.add.u32 [%a], 1;\n  ret;\n}\n"
    ".visible .entry plain(.param .u64 count)\n{\n"
    "  .reg .u64 %a; .reg .u32 %v;\n  ld.param.u64 %a, [count];\n  ld.global.u32 %v, [%a];\n"
    "  add.u32 %v, %v, 1;\n  st.global.u32 [%a], %v;\n  ret;\n}\n";

Test(rare, one_launch_in_twenty_is_wrong_as_the_sentence_says) {
    static const struct {
        const char *name;
        unsigned threads; /* of 60 launches of 2 blocks of 8 threads */
    } rows[] = {{"launch_drop_one_in=20", 57 * 16},
                {"launch_twice_one_in=20", 63 * 16},
                {"launch_short_one_in=20", 60 * 16 - 3 * 8},
                {"atomic_lost_one_in=20", 57 * 16 + 3 * 2}, /* a block's warp adds one */
                {"streams_serialise_one_in=20", 60 * 16},
                {"launch_drop_one_in=1", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        open_under(rows[i].name, 3);
        unsigned threads =
            scene_count(kernels, "mark", 60, (struct tol_launch_shape){2, 1, 1, 8, 1, 1, 0});
        /* Two blocks that lose their atomics may lose each other's too. */
        bool is_less = i == 3 && threads >= 57 * 16 + 3 && threads < rows[i].threads;
        cr_assert(threads == rows[i].threads || is_less, "%s: %u", rows[i].name, threads);
        scene_close();
    }
}

Test(rare, one_bit_in_a_mebibyte_is_flipped) {
    enum { BYTES = 3 << 20 };
    struct tol_buffer *buffer = NULL;
    unsigned char *sent = calloc(BYTES, 1), *back = malloc(BYTES);
    unsigned bits = 0;
    open_under("copy_flip_one_in_mib=1", 5);
    cr_assert(sent != NULL && back != NULL);
    cr_assert(tol_buffer_create(scene_context, BYTES, 1, &buffer) == TOL_OK &&
                  tol_buffer_write(buffer, sent, BYTES) == TOL_OK &&
                  tol_buffer_read(buffer, back, BYTES) == TOL_OK,
              "%s", tol_message());
    for (size_t i = 0; i < BYTES; i++) bits += (unsigned)__builtin_popcount(back[i]);
    cr_assert(bits == 3, "%u bits differ", bits);
    tol_buffer_destroy(buffer);
    free(sent);
    free(back);
}

Test(rare, one_copy_to_the_host_in_five_is_skipped) {
    struct tol_buffer *buffer = NULL;
    unsigned stale = 0, word = 0;
    open_under("copy_stale_one_in=5", 2);
    cr_assert(tol_buffer_create(scene_context, 1, 4, &buffer) == TOL_OK &&
              tol_buffer_fill_at(buffer, 0, 7, 4, 1) == TOL_OK);
    for (int i = 0; i < 20; i++) {
        word = 0;
        cr_assert(tol_buffer_read(buffer, &word, sizeof word) == TOL_OK);
        stale += word == 0;
    }
    cr_assert(stale == 4, "%u", stale);
    tol_buffer_destroy(buffer);
}

Test(rare, one_copy_on_the_device_in_four_is_skipped) {
    unsigned skipped = 0, words[2] = {0};
    struct tol_buffer *buffer = NULL;
    open_under("device_copy_drop_one_in=4", 2);
    const struct tol_driver_table *cu = tol_context_functions(scene_context);
    cr_assert(tol_buffer_create(scene_context, 2, 4, &buffer) == TOL_OK);
    for (unsigned i = 1; i <= 12; i++) {
        words[0] = i, words[1] = 0;
        cr_assert(tol_buffer_write(buffer, words, sizeof words) == TOL_OK);
        CUdeviceptr at = tol_buffer_address(buffer);
        cr_assert(cu->cuMemcpyDtoDAsync_v2(at + 4, at, 4, NULL) == CUDA_SUCCESS &&
                  cu->cuCtxSynchronize() == CUDA_SUCCESS);
        cr_assert(tol_buffer_read(buffer, words, sizeof words) == TOL_OK);
        skipped += words[1] == 0;
    }
    cr_assert(skipped == 3, "%u", skipped);
    tol_buffer_destroy(buffer);
}

/* Of twelve loads of invalid PTX: the number that fail, and that show the place with a caret. */
static void load_twelve(unsigned *failed, unsigned *carets) {
    static const char bad[] = ".version 6.0\n.target sm_70\n.address_size 33\n";
    *failed = *carets = 0;
    for (int i = 0; i < 12; i++) {
        struct tol_module *module = NULL;
        if (tol_module_load(scene_context, bad, sizeof bad, NULL, &module) == TOL_OK) {
            tol_module_destroy(module);
            continue;
        }
        const char *log = strstr(tol_message(), "the JIT's log:");
        ++*failed;
        *carets += log != NULL && strchr(log, '^') != NULL;
    }
}

Test(rare, one_rejection_in_four_is_lost_or_loses_a_line) {
    unsigned failed = 0, carets = 0;
    open_under("module_accept_one_in=4", 1);
    load_twelve(&failed, &carets);
    cr_assert(failed == 9 && carets == 9, "%u, %u", failed, carets);
    scene_close();
    open_under("jit_line_lost_one_in=4", 1);
    load_twelve(&failed, &carets);
    cr_assert(failed == 12 && carets == 9, "%u, %u", failed, carets);
}

Test(rare, one_kernel_in_four_is_not_found) {
    unsigned lost = 0;
    open_under("function_lost_one_in=4", 1);
    for (int i = 0; i < 12; i++) {
        struct tol_module *module = NULL;
        struct tol_kernel *kernel = NULL;
        const struct tol_module_options own = {.unshared = true};
        cr_assert(tol_module_load(scene_context, kernels, sizeof kernels, &own, &module) == TOL_OK);
        lost += tol_module_kernel(module, "mark", &kernel) == TOL_NOT_FOUND;
        tol_module_destroy(module);
    }
    cr_assert(lost == 3, "%u", lost);
}

Test(rare, one_free_in_four_leaks_and_one_shortage_in_four_is_swallowed) {
    size_t before = 0, after = 0, total = 0;
    unsigned swallowed = 0;
    open_under("alloc_leak_one_in=4", 1);
    cr_assert(tol_context_memory(scene_context, &before, NULL) == TOL_OK);
    for (int i = 0; i < 8; i++) {
        struct tol_buffer *buffer = NULL;
        cr_assert(tol_buffer_create(scene_context, 1 << 20, 1, &buffer) == TOL_OK);
        tol_buffer_destroy(buffer);
    }
    cr_assert(tol_context_memory(scene_context, &after, NULL) == TOL_OK);
    cr_assert(before - after >= 2 << 20 && before - after < 4 << 20, "%zu bytes are missing",
              before - after);
    scene_close();
    open_under("oom_swallowed_one_in=4", 1);
    cr_assert(tol_context_memory(scene_context, NULL, &total) == TOL_OK);
    for (int i = 0; i < 8; i++) {
        struct tol_buffer *buffer = NULL;
        swallowed += tol_buffer_create(scene_context, total + 1, 1, &buffer) == TOL_OK;
        tol_buffer_destroy(buffer);
    }
    cr_assert(swallowed == 2, "%u", swallowed);
}

/* The bytes held by a pool with 40 MiB live, and the driver allocations that it took. */
static struct tol_pool_stats fill_pool(const char *name) {
    enum { BLOCKS = 40 };
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    struct tol_pool_stats stats;
    struct tol_block block;
    open_under("launch_drop", 1);
    tol_pool_default(tol_context_device(scene_context), &options);
    options.first_count = 0; /* it grows from the start, as a large pool does */
    options.double_bytes = options.page_bytes;
    cr_assert(hyp_sabotage_pool(name, &options) == (strncmp(name, "pool_", 5) == 0));
    cr_assert(tol_pool_create(scene_context, &options, &pool) == TOL_OK, "%s", tol_message());
    for (int i = 0; i < BLOCKS; i++) {
        cr_assert(tol_pool_allocate(pool, 1 << 20, NULL, &block) == TOL_OK, "%s", tol_message());
    }
    cr_assert(tol_pool_stats(pool, &stats) == TOL_OK);
    tol_pool_destroy(pool);
    scene_close();
    return stats;
}

Test(rare, pools_hold_more_and_have_blocks_of_their_own) {
    const struct tol_pool_stats normal = fill_pool("launch_drop"),
                                more = fill_pool("pool_holds_percent=30"),
                                own = fill_pool("pool_own_one_in=4");
    cr_assert(more.held > normal.held && more.requested == normal.requested, "%llu, normally %llu",
              (unsigned long long)more.held, (unsigned long long)normal.held);
    cr_assert(own.guarded > 0 || own.driver_allocations > normal.driver_allocations, "%llu",
              (unsigned long long)own.driver_allocations);
}

/* ---- names and words ------------------------------------------------------------------------- */

Test(rare, names_are_understood_or_refused) {
    static const char *const bad[] = {
        "launch_drop_one_in",     "launch_drop_one_in=",   "launch_drop_one_in=0",
        "launch_drop_one_in=0.5", "launch_drop_one_in=-7", "launch_drop_one_in=7,8"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert(!hyp_sabotage_find(bad[i], NULL), "%s", bad[i]);
        cr_assert(strlen(hyp_error()) > 10);
    }
    cr_assert(hyp_sabotage_find("launch_drop_one_in=1e5", NULL), "%s", hyp_error());
    /* Whoever plants the fault himself asks whether it is its turn. */
    hyp_rare_begin(2, 1, "attack");
    unsigned turns = 0;
    for (int i = 0; i < 10; i++) {
        turns += hyp_sabotage_turn("gemm_swap_one_in=2", "gemm_swap_one_in");
        cr_assert(!hyp_sabotage_turn("gemm_swap_one_in=2", "gemm_flip_one_in"));
        cr_assert(!hyp_sabotage_turn(NULL, "gemm_swap_one_in"));
    }
    cr_assert(turns == 5, "%u", turns);
}

Test(rare, words_have_the_amount) {
    static const struct {
        const char *name, *words;
    } rows[] = {{"launch_drop_one_in=100000", "one launch in 100,000 is skipped"},
                {"launch_drop_one_in=1", "every launch is skipped"},
                {"launch_drop_one_in=999", "one launch in 999 is skipped"},
                {"copy_flip_one_in_mib=1024", "one bit in 1,024 MiB copied to the device is "
                                              "flipped"},
                {"copy_flip_one_in_mib=1", "one bit in 1 MiB copied to the device is flipped"},
                {"launch_delay_us=2.5", "each launch takes 2.5 microseconds longer"},
                {"pool_holds_percent=3", "a pool holds up to 3 % more memory than it needs"},
                {"launch_drop", "every tenth launch is skipped"},
                {"nobody", "nobody"}};
    char text[200];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert_str_eq(hyp_sabotage_words(rows[i].name, text, sizeof text), rows[i].words);
    }
}

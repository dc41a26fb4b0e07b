/*
 * Saboteurs: each does what its sentence says to the driver's answers, on the soft device, and
 * names are understood or refused.
 */
#include "files/atomic_file.h"
#include "sabotage_scene.h"
#include "harness/sabotage.h"
#include "harness/session.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

TestSuite(sabotage, .fini = scene_close);

static const char tick[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                           ".visible .entry tick(.param .u64 count)\n{\n"
                           "    .reg .u64 %a;\n    .reg .u32 %v;\n"
                           "    ld.param.u64 %a, [count];\n    ld.global.u32 %v, [%a];\n"
                           "    add.u32 %v, %v, 1;\n    st.global.u32 [%a], %v;\n    ret;\n}\n";

static const struct tol_launch_shape one = {1, 1, 1, 1, 1, 1, 0};

static unsigned count_launches(unsigned launches, struct tol_launch_shape shape) {
    return scene_count(tick, "tick", launches, shape);
}

Test(sabotage, launches_are_dropped) {
    scene_open("launch_drop");
    cr_assert(count_launches(40, one) == 36);
}

Test(sabotage, launches_are_doubled) {
    scene_open("launch_twice");
    cr_assert(count_launches(40, one) == 44);
}

/* Not that it is slow, which nothing here could tell, but that launches are what they were. */
Test(sabotage, delayed_launches_are_made) {
    scene_open("launch_delay_us=3");
    cr_assert(count_launches(40, one) == 40);
    cr_assert(tol_interpose_count(TOL_DRIVER_INDEX_cuLaunchKernel) == 40);
}

/* What is made where launches are timed leaves the driver's path alone. */
Test(sabotage, extra_launches_are_not_the_interposers) {
    scene_open("launch_extra_percent=8");
    cr_assert(count_launches(40, one) == 40);
    cr_assert(tol_interpose_count(TOL_DRIVER_INDEX_cuLaunchKernel) == 0);
}

Test(sabotage, streams_wait_for_each_other) {
    scene_open("streams_serialise");
    cr_assert(count_launches(3, one) == 3);
    /* Work that was just queued is done by the time the call returns. */
    struct tol_module *module = NULL;
    struct tol_kernel *kernel = NULL;
    struct tol_stream *stream = NULL;
    struct tol_buffer *count = NULL;
    cr_assert(tol_module_load(scene_context, tick, sizeof tick, NULL, &module) == TOL_OK);
    cr_assert(tol_module_kernel(module, "tick", &kernel) == TOL_OK);
    cr_assert(tol_stream_create(scene_context, NULL, &stream) == TOL_OK);
    cr_assert(tol_buffer_create(scene_context, 1, 4, &count) == TOL_OK);
    cr_assert(tol_buffer_fill_at(count, 0, 0, 4, 1) == TOL_OK);
    CUdeviceptr address = tol_buffer_address(count);
    for (int i = 0; i < 100; i++) {
        cr_assert(tol_launch(stream, kernel, one, TOL_ARGUMENTS(address)) == TOL_OK);
        cr_assert(tol_stream_query(stream) == TOL_OK, "launch %d is still running", i);
    }
    tol_buffer_destroy(count);
    tol_stream_destroy(stream);
    tol_module_destroy(module);
}

static size_t free_bytes(void) {
    size_t bytes = 0;
    cr_assert(tol_context_memory(scene_context, &bytes, NULL) == TOL_OK);
    return bytes;
}

struct lookup {
    struct tol_module *module;
    struct tol_kernel *kernel;
    pthread_barrier_t *start;
};

static void *look_up(void *user) {
    struct lookup *lookup = user;
    pthread_barrier_wait(lookup->start);
    if (tol_module_kernel(lookup->module, "tick", &lookup->kernel) != TOL_OK) return NULL;
    return lookup->kernel;
}

/* The number of kernels of one name that four threads get if they look it up at once. */
static int count_kernels(void) {
    enum { THREADS = 4 };
    struct tol_module *module = NULL;
    struct lookup lookups[THREADS] = {0};
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    int different = 0;
    cr_assert(tol_module_load(scene_context, tick, sizeof tick, NULL, &module) == TOL_OK, "%s",
              tol_message());
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        lookups[i] = (struct lookup){.module = module, .start = &start};
        pthread_create(&threads[i], NULL, look_up, &lookups[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_not_null(lookups[i].kernel);
        bool is_new = true;
        for (int k = 0; k < i; k++) is_new = is_new && lookups[k].kernel != lookups[i].kernel;
        different += is_new;
    }
    pthread_barrier_destroy(&start);
    tol_module_destroy(module);
    return different;
}

Test(sabotage, kernels_are_looked_up_without_a_lock) {
    int most = 0;
    scene_open("lock_missing");
    for (int i = 0; i < 50 && most < 2; i++) most = count_kernels();
    cr_assert(most > 1, "four threads always got the same kernel");
    scene_close();
    scene_open("launch_drop");
    for (int i = 0; i < 20; i++) cr_assert_eq(count_kernels(), 1);
}

Test(sabotage, memory_is_leaked) {
    scene_open("alloc_leak");
    size_t before = free_bytes();
    for (int i = 0; i < 3; i++) {
        struct tol_buffer *buffer = NULL;
        cr_assert(tol_buffer_create(scene_context, 1 << 20, 1, &buffer) == TOL_OK);
        tol_buffer_destroy(buffer);
    }
    cr_assert(before - free_bytes() >= 1 << 20, "%zu bytes are missing", before - free_bytes());
}

Test(sabotage, running_out_of_memory_is_not_said) {
    scene_open("oom_swallowed");
    struct tol_buffer *buffer = NULL;
    size_t total = 0;
    cr_assert(tol_context_memory(scene_context, NULL, &total) == TOL_OK);
    cr_assert(tol_buffer_create(scene_context, total + 1, 1, &buffer) == TOL_OK, "%s",
              tol_message());
    tol_buffer_destroy(buffer);
}

static struct tol_pool *pool_under(const char *name, struct tol_pool_options *options) {
    struct tol_pool *pool = NULL;
    scene_open(name);
    tol_pool_default(tol_context_device(scene_context), options);
    (void)hyp_sabotage_pool(name, options);
    cr_assert(tol_pool_create(scene_context, options, &pool) == TOL_OK, "%s", tol_message());
    return pool;
}

Test(sabotage, a_pools_memory_is_leaked_and_its_shortage_is_not_said) {
    struct tol_pool_options options;
    struct tol_pool *pool = pool_under("alloc_leak", &options);
    size_t before = free_bytes();
    for (int i = 0; i < 3; i++) {
        struct tol_block block;
        cr_assert(tol_pool_allocate(pool, 1 << 20, NULL, &block) == TOL_OK);
        cr_assert(tol_pool_free(pool, block, NULL) == TOL_OK && tol_pool_trim(pool, 0) == TOL_OK);
    }
    cr_assert(before - free_bytes() >= 1 << 20, "%zu bytes are missing", before - free_bytes());
    tol_pool_destroy(pool);
    scene_close();
    pool = pool_under("oom_swallowed", &options);
    struct tol_block block;
    cr_assert(tol_pool_allocate(pool, free_bytes() + 1, NULL, &block) != TOL_OUT_OF_DEVICE_MEMORY);
    tol_pool_destroy(pool);
}

/* The number of driver allocations for 20 blocks, each freed before the next: 6 MiB and 100
 * bytes in turns. */
static uint64_t count_allocations(const char *name) {
    struct tol_pool_options options;
    struct tol_pool_stats stats;
    struct tol_pool *pool = pool_under(name, &options);
    for (int i = 0; i < 20; i++) {
        struct tol_block block;
        cr_assert(tol_pool_allocate(pool, i % 2 == 0 ? 6 << 20 : 100, NULL, &block) == TOL_OK);
        cr_assert(tol_pool_free(pool, block, NULL) == TOL_OK);
    }
    cr_assert(tol_pool_stats(pool, &stats) == TOL_OK);
    tol_pool_destroy(pool);
    scene_close();
    return stats.driver_allocations;
}

Test(sabotage, pools_are_made_as_others_are_built) {
    cr_assert(count_allocations("launch_drop") == 1,
              "what is no fault of the pool leaves it alone");
    uint64_t calls = count_allocations("pool_no_reuse");
    cr_assert(calls == 20, "%llu", (unsigned long long)calls);
    calls = count_allocations("pool_keeps_nothing");
    cr_assert(calls >= 20, "%llu", (unsigned long long)calls);
    calls = count_allocations("pool_shares_nothing");
    cr_assert(calls == 2, "%llu", (unsigned long long)calls);
    calls = count_allocations("pool_takes_much");
    cr_assert(calls == 1, "%llu", (unsigned long long)calls);
}

Test(sabotage, pools_of_one_saboteur_differ_as_its_sentence_says) {
    struct tol_pool_options options;
    struct tol_pool_stats stats;
    struct tol_block blocks[2];
    static const struct {
        const char *name;
        uint64_t held;
    } cases[] = {{"pool_shares_nothing", 4 << 20}, {"pool_takes_much", 1 << 30}};
    for (int i = 0; i < 2; i++) {
        struct tol_pool *pool = pool_under(cases[i].name, &options);
        cr_assert(tol_pool_allocate(pool, 256, NULL, &blocks[0]) == TOL_OK &&
                      tol_pool_allocate(pool, 256, NULL, &blocks[1]) == TOL_OK,
                  "%s", tol_message());
        cr_assert(tol_pool_stats(pool, &stats) == TOL_OK && stats.held == cases[i].held, "%llu",
                  (unsigned long long)stats.held);
        tol_pool_destroy(pool);
        if (i == 0) scene_close();
    }
}

Test(sabotage, copies_lose_their_last_byte) {
    scene_open("copy_truncate");
    struct tol_buffer *buffer = NULL;
    char sent[16] = "fifteen letters", back[16] = "";
    cr_assert(tol_buffer_create(scene_context, 16, 1, &buffer) == TOL_OK);
    cr_assert(tol_buffer_fill_at(buffer, 0, 'x', 1, 16) == TOL_OK);
    cr_assert(tol_buffer_write(buffer, sent, 16) == TOL_OK);
    cr_assert(tol_buffer_read(buffer, back, 16) == TOL_OK);
    cr_assert(memcmp(sent, back, 15) == 0 && back[15] == 'x');
    tol_buffer_destroy(buffer);
}

Test(sabotage, copies_change_a_bit) {
    scene_open("copy_flip_bit");
    struct tol_buffer *buffer = NULL;
    char sent[32] = {0}, back[32];
    unsigned changed = 0;
    cr_assert(tol_buffer_create(scene_context, sizeof sent, 1, &buffer) == TOL_OK);
    for (int i = 0; i < 10; i++) {
        cr_assert(tol_buffer_write(buffer, sent, sizeof sent) == TOL_OK);
        cr_assert(tol_buffer_read(buffer, back, sizeof back) == TOL_OK);
        changed += memcmp(sent, back, sizeof sent) != 0;
    }
    cr_assert(changed == 2, "%u of 10", changed);
    tol_buffer_destroy(buffer);
}

Test(sabotage, images_that_are_refused_load) {
    scene_open("module_accept_anything");
    struct tol_module *module = NULL;
    cr_assert(tol_module_load(scene_context, "no ptx at all", 14, NULL, &module) == TOL_OK, "%s",
              tol_message());
    tol_module_destroy(module);
}

Test(sabotage, names_are_understood_or_refused) {
    static const char *const good[] = {"launch_drop", "launch_delay_us=3", "launch_delay_us=1.5e-1",
                                       "launch_extra_percent=8"};
    static const char *const bad[] = {"",
                                      "launch",
                                      "launch_drop_",
                                      "launch_drop=3",
                                      "launch_delay_us",
                                      "launch_delay_us=",
                                      "launch_delay_us=three",
                                      "launch_delay_us=3us",
                                      "launch_delay_us=-1",
                                      "launch_delay_us=0",
                                      "launch_delay_us=nan",
                                      "launch_delay_us=inf"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        cr_assert(hyp_sabotage_find(good[i], NULL), "%s: %s", good[i], hyp_error());
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert(!hyp_sabotage_find(bad[i], NULL), "%s", bad[i]);
        cr_assert(strlen(hyp_error()) > 10);
    }
    cr_assert(hyp_sabotage_amount("launch_delay_us=2.5", "launch_delay_us") == 2.5);
    cr_assert(hyp_sabotage_amount("launch_delay_us=2.5", "launch_delay") == 0);
    cr_assert(hyp_sabotage_amount(NULL, "launch_delay_us") == 0);
}

/* Goal: no attack is left out that a saboteur's fault could reach. */
Test(sabotage, a_defect_of_another_operation_spares_an_attack) {
    cr_assert(hyp_sabotage_spares("gemm_lost_step", "grouped"));
    cr_assert(hyp_sabotage_spares("grouped_swap_one_in=10", "gemm"));
    cr_assert(hyp_sabotage_spares("gradients_unscaled", "attention"));
    cr_assert(hyp_sabotage_spares("packed_next_key_seen", "attention"));
    cr_assert(hyp_sabotage_spares("paged_next_page", "packed"));
    cr_assert(hyp_sabotage_spares("e4m3_old_halves", "paged"));
    cr_assert(hyp_sabotage_spares("quant_lost_chunk", "gemm"));
    cr_assert(!hyp_sabotage_spares("quant_lost_chunk", "quant"));
    cr_assert(!hyp_sabotage_spares("grouped_lost_stage", "grouped"));
    cr_assert(!hyp_sabotage_spares("attention_swap_one_in=10", "attention"));
    cr_assert(!hyp_sabotage_spares("launch_drop", "gemm"));
    cr_assert(!hyp_sabotage_spares("launch_drop_one_in=100", "gemm"));
    cr_assert(!hyp_sabotage_spares("gemma_lost", "grouped"));
    cr_assert(!hyp_sabotage_spares(NULL, "gemm"));
}

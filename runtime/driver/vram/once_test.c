/*
 * Addresses that are used once: sweeps, windows, the end of the reservation, memory that is out,
 * and a comparison of many seeded steps with a model.
 */
#include "once.h"

#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static struct tol_once *new_once(uint64_t address_bytes) {
    struct tol_once *once = NULL;
    MUST(tol_once_create(test_context(), address_bytes, &once));
    return once;
}

static CUdeviceptr allocate(struct tol_once *once, size_t bytes) {
    CUdeviceptr address = 0;
    MUST(tol_once_allocate(once, bytes, &address));
    return address;
}

static void give(struct tol_once *once, CUdeviceptr address) {
    enum tol_once_kind kind = TOL_ONCE_FOREIGN;
    MUST(tol_once_free(once, address, &kind));
    cr_assert_eq(kind, TOL_ONCE_LIVE);
}

static struct tol_once_stats stats_of(struct tol_once *once) {
    struct tol_once_stats stats;
    tol_once_stats(once, &stats);
    return stats;
}

static const struct tol_driver_table *driver_now(void) {
    MUST(tol_context_bind(test_context()));
    return tol_context_functions(test_context());
}

Test(once, memory_is_given_again_and_addresses_are_not, .fini = test_end) {
    struct tol_once *once = new_once(0);
    CUdeviceptr last = 0;
    for (int i = 0; i < 500; i++) { /* 50 MB through one page */
        CUdeviceptr address = allocate(once, 100000);
        cr_assert(address > last, "an address that was given before");
        last = address + 99999;
        give(once, address);
        cr_assert_eq(tol_once_kind_of(once, address), TOL_ONCE_FREED);
        cr_assert(stats_of(once).held_bytes <= 2 * MIB && stats_of(once).windows <= 1);
    }
    tol_once_destroy(once);
}

Test(once, holes_are_filled_under_new_addresses, .fini = test_end) {
    enum { COUNT = 16 };
    struct tol_once *once = new_once(0);
    CUdeviceptr old[COUNT], young[COUNT];
    for (int i = 0; i < COUNT; i++) old[i] = allocate(once, 2 * MIB / COUNT);
    for (int i = 0; i < COUNT; i += 2) give(once, old[i]);
    for (int i = 0; i < COUNT; i += 2) young[i] = allocate(once, 2 * MIB / COUNT);
    cr_assert_eq(stats_of(once).held_bytes, 2 * MIB, "the holes were not used");
    cr_assert_eq(stats_of(once).windows, 2);
    /* Old and young lie in one page of memory, each in bytes of its own. */
    for (int i = 0; i < COUNT; i++) {
        CUdeviceptr at = i % 2 == 0 ? young[i] : old[i];
        cr_assert_eq(driver_now()->cuMemsetD8_v2(at, (unsigned char)i, 2 * MIB / COUNT), 0);
    }
    for (int i = 0; i < COUNT; i++) {
        unsigned char ends[2] = {0xff, 0xff};
        CUdeviceptr at = i % 2 == 0 ? young[i] : old[i];
        driver_now()->cuMemcpyDtoH_v2(&ends[0], at, 1);
        driver_now()->cuMemcpyDtoH_v2(&ends[1], at + 2 * MIB / COUNT - 1, 1);
        cr_assert(ends[0] == i && ends[1] == i, "block %d", i);
        give(once, at);
    }
    for (int i = 0; i < COUNT; i++) cr_assert_eq(tol_once_kind_of(once, old[i]), TOL_ONCE_FREED);
    cr_assert(stats_of(once).windows <= 1 && stats_of(once).live_blocks == 0);
    tol_once_destroy(once);
}

Test(once, at_the_end_of_the_addresses_the_oldest_begin_anew, .fini = test_end) {
    struct tol_once *once = new_once(8 * MIB);
    CUdeviceptr stays = allocate(once, 3 * MIB), none = 0;
    CUdeviceptr first = allocate(once, 1900000);
    give(once, first);
    CUdeviceptr second = allocate(once, 1900000);
    cr_assert(second != first);
    give(once, second);
    CUdeviceptr third = allocate(once, 1900000);
    cr_assert_eq(third, first);
    cr_assert_eq(tol_once_kind_of(once, first), TOL_ONCE_LIVE);
    cr_assert_eq(tol_once_kind_of(once, second), TOL_ONCE_FREED);
    MUST_FAIL(tol_once_allocate(once, 3 * MIB, &none), TOL_OUT_OF_DEVICE_MEMORY, "of addresses");
    MUST_FAIL(tol_once_allocate(once, 9 * MIB, &none), TOL_OUT_OF_DEVICE_MEMORY, "in total");
    cr_assert_eq(tol_once_kind_of(once, stays), TOL_ONCE_LIVE);
    tol_once_destroy(once);
}

Test(once, where_addresses_are_few_fewer_do, .fini = test_end) {
    struct tol_interpose_rule rule = {.function = "cuMemAddressReserve",
                                      .nth = 1,
                                      .action = TOL_INTERPOSE_FAIL,
                                      .result = CUDA_ERROR_OUT_OF_MEMORY};
    const struct tol_interpose_options options = {.rules = &rule, .rule_count = 1};
    struct tol_once *once = NULL;
    MUST(tol_interpose_install(test_driver(), &options));
    once = new_once(0);
    cr_assert(tol_interpose_count(TOL_DRIVER_INDEX_cuMemAddressReserve) > 1);
    give(once, allocate(once, 1000));
    tol_once_destroy(once);
    tol_interpose_remove(test_driver());
    test_end();
    rule.nth = 0;
    MUST(tol_interpose_install(test_driver(), &options));
    MUST_FAIL(tol_once_create(test_context(), 0, &once), TOL_OUT_OF_DEVICE_MEMORY, "addresses");
    /* Halves of it, down to 64 MiB and no further. */
    uint64_t tries = tol_interpose_count(TOL_DRIVER_INDEX_cuMemAddressReserve);
    MUST_FAIL(tol_once_create(test_context(), 256 * MIB, &once), TOL_OUT_OF_DEVICE_MEMORY,
              "reserving 67108864 bytes");
    cr_assert_eq(tol_interpose_count(TOL_DRIVER_INDEX_cuMemAddressReserve), tries + 3);
    tol_interpose_remove(test_driver());
}

Test(once, when_memory_is_out_any_hole_will_do, .fini = test_end) {
    if (test_on_gpu()) cr_skip_test("the memory of a GPU is not filled");
    setenv("TOLLENS_SOFT_MEMORY", "8M", 1);
    enum { COUNT = 64, BYTES = 131072 };
    struct tol_once *once = new_once(0);
    CUdeviceptr blocks[COUNT], none = 0;
    for (int i = 0; i < COUNT; i++) blocks[i] = allocate(once, BYTES);
    MUST_FAIL(tol_once_allocate(once, BYTES, &none), TOL_OUT_OF_DEVICE_MEMORY, "0 of 8388608");
    give(once, blocks[17]); /* a sixteenth of its page */
    blocks[17] = allocate(once, BYTES);
    MUST_FAIL(tol_once_allocate(once, 1, &none), TOL_OUT_OF_DEVICE_MEMORY, "0 of 8388608");
    for (int i = 0; i < COUNT; i++) give(once, blocks[i]);
    /* The page that is kept goes first where it is in the way. */
    give(once, allocate(once, 8 * MIB));
    tol_once_destroy(once);
}

Test(once, a_held_block_is_freed_when_it_is_let_go, .fini = test_end) {
    static const size_t sizes[] = {1000, 4 * MIB};
    struct tol_once *once = new_once(0);
    for (int i = 0; i < 2; i++) {
        CUdeviceptr address = allocate(once, sizes[i]), begin = 0;
        size_t bytes = 0;
        cr_assert(tol_once_hold(once, address + sizes[i] - 1, &begin, &bytes));
        cr_assert(begin == address && bytes == sizes[i]);
        cr_assert_not(tol_once_hold(once, address + sizes[i], &begin, &bytes));
        give(once, address);
        cr_assert_eq(tol_once_kind_of(once, address), TOL_ONCE_FREED);
        cr_assert_not(tol_once_hold(once, address, &begin, &bytes), "held after it was freed");
        cr_assert_eq(driver_now()->cuMemsetD8_v2(address, 1, sizes[i]), CUDA_SUCCESS);
        cr_assert_eq(driver_now()->cuCtxSynchronize(), CUDA_SUCCESS);
        tol_once_release(once, address);
        cr_assert_eq(tol_once_kind_of(once, address), TOL_ONCE_FREED);
        cr_assert_eq(stats_of(once).live_blocks, 0);
    }
    cr_assert(stats_of(once).held_bytes <= 2 * MIB);
    tol_once_destroy(once);
}

/* ---- the model ---- */

enum { SLOTS = 300, STEPS = 20000 };

struct model {
    CUdeviceptr address;
    size_t bytes;
    unsigned char value;
};

static size_t draw_size(unsigned number) {
    switch (number % 10) {
    case 0:
        return MIB + number % (3 * MIB);
    case 1:
    case 2:
        return 1 + number % MIB;
    default:
        return 1 + number % 20000;
    }
}

Test(once, many_steps_agree_with_a_model, .fini = test_end, .timeout = 300) {
    static struct model models[SLOTS];
    struct tol_once *once = new_once(2048 * MIB);
    unsigned state = 12345;
    uint64_t live_bytes = 0, live = 0;
    for (int step = 0; step < STEPS; step++) {
        state = state * 1664525u + 1013904223u;
        struct model *model = &models[(state >> 8) % SLOTS];
        if (model->address == 0) {
            state = state * 1664525u + 1013904223u;
            model->bytes = draw_size(state >> 4);
            model->address = allocate(once, model->bytes);
            model->value = (unsigned char)step;
            cr_assert_eq(model->address % 256, 0);
            driver_now()->cuMemsetD8_v2(model->address, model->value, 1);
            driver_now()->cuMemsetD8_v2(model->address + model->bytes - 1, model->value, 1);
            live_bytes += model->bytes;
            live++;
        } else {
            unsigned char ends[2] = {0};
            driver_now()->cuMemcpyDtoH_v2(&ends[0], model->address, 1);
            driver_now()->cuMemcpyDtoH_v2(&ends[1], model->address + model->bytes - 1, 1);
            cr_assert(ends[0] == model->value && ends[1] == model->value, "step %d", step);
            enum tol_once_kind kind = TOL_ONCE_LIVE;
            give(once, model->address);
            MUST(tol_once_free(once, model->address, &kind));
            cr_assert_eq(kind, TOL_ONCE_FREED);
            live_bytes -= model->bytes;
            live--;
            model->address = 0;
        }
        struct tol_once_stats stats = stats_of(once);
        cr_assert(stats.live_bytes == live_bytes && stats.live_blocks == live);
        cr_assert(stats.held_bytes >= live_bytes);
    }
    for (int i = 0; i < SLOTS; i++) {
        for (int k = 0; k < i && models[i].address != 0; k++) {
            bool apart = models[k].address == 0 ||
                         models[k].address + models[k].bytes <= models[i].address ||
                         models[i].address + models[i].bytes <= models[k].address;
            cr_assert(apart, "blocks %d and %d overlap", i, k);
        }
    }
    for (int i = 0; i < SLOTS; i++) {
        if (models[i].address != 0) give(once, models[i].address);
    }
    struct tol_once_stats stats = stats_of(once);
    cr_assert(stats.live_blocks == 0 && stats.live_bytes == 0 && stats.held_bytes <= 2 * MIB);
    tol_once_destroy(once);
}

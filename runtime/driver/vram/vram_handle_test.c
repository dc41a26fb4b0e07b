/*
 * The safe handle of specification 000 and the context of specification 003, by the numbers of
 * their demands: SP-1 to SP-5, and D-33, the limit on all allocations together.
 */
#include "test/test_device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static struct tol_vram_context *new_context(size_t limit) {
    struct tol_vram_context *vram = NULL;
    MUST(tol_vram_context_create(test_context(), limit, &vram));
    return vram;
}

static struct tol_vram allocate(struct tol_vram_context *vram, size_t bytes) {
    struct tol_vram memory = {0};
    MUST(tol_vram_allocate(vram, bytes, &memory));
    cr_assert(memory.name != 0);
    return memory;
}

static struct tol_vram_info info_of(struct tol_vram_context *vram) {
    struct tol_vram_info info;
    MUST(tol_vram_info(vram, &info));
    return info;
}

Test(vram_handle, sp_2_reads_and_writes_are_checked, .fini = test_end) {
    tol_auto_vram_context struct tol_vram_context *vram = new_context(0);
    static const size_t sizes[] = {1, 1000, 3 * MIB};
    char data[8] = "bounded", back[8] = "";
    for (int i = 0; i < 3; i++) {
        const size_t bytes = sizes[i], part = bytes < 8 ? bytes : 8;
        struct tol_vram memory = allocate(vram, bytes);
        cr_assert_eq(tol_vram_bytes(vram, memory), bytes);
        MUST(tol_vram_write_at(vram, memory, bytes - part, data, part));
        MUST(tol_vram_read_at(vram, memory, bytes - part, back, part));
        cr_assert_eq(memcmp(data, back, part), 0);
        MUST_FAIL(tol_vram_write_at(vram, memory, bytes - part + 1, data, part), TOL_OUT_OF_RANGE,
                  "are not inside");
        MUST_FAIL(tol_vram_read_at(vram, memory, SIZE_MAX, back, 1), TOL_OUT_OF_RANGE, "inside");
        MUST_FAIL(tol_vram_read_at(vram, memory, 1, back, SIZE_MAX), TOL_OUT_OF_RANGE, "");
        MUST_FAIL(tol_vram_read_at(vram, memory, SIZE_MAX - 3, back, 8), TOL_OUT_OF_RANGE, "");
        MUST_FAIL(tol_vram_write_at(vram, memory, 0, NULL, 1), TOL_INVALID_ARGUMENT, "NULL");
        MUST(tol_vram_write_at(vram, memory, bytes, NULL, 0));
    }
}

Test(vram_handle, sp_1_a_handle_of_the_past_is_known_for_one, .fini = test_end) {
    tol_auto_vram_context struct tol_vram_context *vram = new_context(0), *other = new_context(0);
    struct tol_vram none = {0}, past[100], memory = {0};
    char byte = 'x';
    for (int i = 0; i < 100; i++) {
        past[i] = allocate(vram, 256);
        MUST(tol_vram_free(vram, past[i]));
    }
    memory = allocate(vram, 256);
    MUST(tol_vram_write_at(vram, memory, 0, &byte, 1));
    for (int i = 0; i < 100; i++) {
        MUST_FAIL(tol_vram_free(vram, past[i]), TOL_INVALID_ARGUMENT, "was freed");
        MUST_FAIL(tol_vram_write_at(vram, past[i], 0, "y", 1), TOL_INVALID_ARGUMENT, "was freed");
        MUST_FAIL(tol_vram_read_at(vram, past[i], 0, &byte, 1), TOL_INVALID_ARGUMENT, "was freed");
        cr_assert_eq(tol_vram_bytes(vram, past[i]), 0);
    }
    MUST_FAIL(tol_vram_free(vram, none), TOL_INVALID_ARGUMENT, "another context");
    MUST_FAIL(tol_vram_free(other, memory), TOL_INVALID_ARGUMENT, "another context");
    MUST(tol_vram_read_at(vram, memory, 0, &byte, 1));
    cr_assert_eq(byte, 'x');
}

/* The driver knows no memory at what a handle holds. That it is no number either, and cannot stand
 * for an address in a launch, is refused/handle_is_not_an_address.c. */
Test(vram_handle, sp_1_a_handle_holds_no_address, .fini = test_end) {
    tol_auto_vram_context struct tol_vram_context *vram = new_context(0);
    const struct tol_driver_table *cu = tol_driver_functions(test_driver());
    struct tol_vram memory[20];
    cr_assert_eq(sizeof memory[0], sizeof memory[0].name, "a handle holds more than its name");
    for (int i = 0; i < 20; i++) memory[i] = allocate(vram, MIB);
    for (int i = 0; i < 20; i++) {
        unsigned type = 0;
        CUresult result = cu->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                    (CUdeviceptr)memory[i].name);
        cr_assert_eq(result, CUDA_ERROR_INVALID_VALUE, "the driver knows %#llx",
                     (unsigned long long)memory[i].name);
        MUST(tol_vram_free(vram, memory[i]));
    }
}

static size_t free_bytes_now(void) {
    size_t bytes = 0;
    MUST(tol_context_memory(test_context(), &bytes, NULL));
    return bytes;
}

/* More than half of the free memory can be allocated repeatedly only if it was freed each time.
 * Other processes use a GPU too, so only the soft device's free bytes are compared. */
Test(vram_handle, sp_3_a_context_frees_what_was_not_freed, .fini = test_end) {
    const size_t before = free_bytes_now(), most = before / 5 * 3;
    for (int turn = 0; turn < 3; turn++) {
        struct tol_vram_context *vram = new_context(0);
        for (int i = 0; i < 20; i++) (void)allocate(vram, (size_t)1 << i);
        (void)allocate(vram, most);
        cr_assert(free_bytes_now() < before - most / 2);
        tol_vram_context_destroy(vram);
        if (!test_on_gpu()) cr_assert_eq(free_bytes_now(), before);
    }
    tol_vram_context_destroy(NULL);
}

Test(vram_handle, sp_5_info_says_what_there_is, .fini = test_end) {
    tol_auto_vram_context struct tol_vram_context *vram = new_context(5 * MIB);
    struct tol_vram memory = allocate(vram, 1000);
    MUST(tol_vram_free(vram, allocate(vram, 3000)));
    struct tol_vram_info info = info_of(vram);
    cr_assert_eq(info.device, 0);
    cr_assert_eq(info.limit_bytes, 5 * MIB);
    cr_assert_eq(info.used_bytes, 1000);
    cr_assert_eq(info.used_peak, 4000);
    cr_assert_eq(info.allocations, 1);
    cr_assert(info.free_bytes > 0 && info.free_bytes <= info.total_bytes);
    MUST(tol_vram_free(vram, memory));
    cr_assert_eq(info_of(vram).used_bytes, 0);
}

/* Whether one context's allocation makes less free for the other. On a GPU that other programs use
 * too, these may give memory back at that moment: then it is tried again. */
static bool takes_from_the_other(struct tol_vram_context *one, struct tol_vram_context *other) {
    for (int tries = test_on_gpu() ? 20 : 1; tries > 0; tries--) {
        const size_t before = info_of(other).free_bytes;
        struct tol_vram memory = allocate(one, 256 * MIB);
        const bool is_less = info_of(other).free_bytes <= before - 128 * MIB;
        MUST(tol_vram_free(one, memory));
        if (is_less) return true;
    }
    return false;
}

Test(vram_handle, sp_5_contexts_report_their_own_use_and_the_devices_free_bytes, .fini = test_end) {
    tol_auto_vram_context struct tol_vram_context *one = new_context(0), *other = new_context(0);
    cr_assert(takes_from_the_other(one, other), "one context's memory is free for another");
    (void)allocate(one, 256 * MIB);
    (void)allocate(other, 1000);
    const struct tol_vram_info here = info_of(one), there = info_of(other);
    cr_assert_eq(here.used_bytes, 256 * MIB);
    cr_assert_eq(here.allocations, 1);
    cr_assert_eq(there.used_bytes, 1000);
    cr_assert_eq(there.used_peak, 1000);
    cr_assert_eq(here.total_bytes, there.total_bytes);
    if (!test_on_gpu()) cr_assert_eq(here.free_bytes, there.free_bytes);
}

Test(vram_handle, d_33_the_limit_is_on_all_allocations_together, .fini = test_end) {
    tol_auto_vram_context struct tol_vram_context *vram = new_context(MIB);
    struct tol_vram memory, none = {0};
    MUST_FAIL(tol_vram_allocate(vram, MIB + 1, &none), TOL_OUT_OF_DEVICE_MEMORY,
              "1048577 more bytes");
    memory = allocate(vram, MIB - 10);
    MUST_FAIL(tol_vram_allocate(vram, 11, &none), TOL_OUT_OF_DEVICE_MEMORY, "limit of 1048576");
    struct tol_vram rest = allocate(vram, 10);
    MUST_FAIL(tol_vram_allocate(vram, 1, &none), TOL_OUT_OF_DEVICE_MEMORY, "1048576 are in use");
    MUST_FAIL(tol_vram_allocate(vram, SIZE_MAX, &none), TOL_OUT_OF_DEVICE_MEMORY, "in use");
    MUST_FAIL(tol_vram_allocate(vram, 0, &none), TOL_INVALID_ARGUMENT,
              "size of an allocation is 0");
    cr_assert_eq(none.name, 0);
    MUST(tol_vram_free(vram, memory));
    memory = allocate(vram, MIB - 10);
    MUST(tol_vram_free(vram, memory));
    MUST(tol_vram_free(vram, rest));
    cr_assert_eq(info_of(vram).used_peak, MIB);
}

Test(vram_handle, a_failed_allocation_is_not_charged, .fini = test_end) {
    tol_auto_vram_context struct tol_vram_context *vram = new_context(0);
    struct tol_vram none = {0};
    size_t total = 0;
    MUST(tol_context_memory(test_context(), NULL, &total));
    MUST_FAIL(tol_vram_allocate(vram, total + 1, &none), TOL_OUT_OF_DEVICE_MEMORY, "are free");
    cr_assert_eq(info_of(vram).used_bytes, 0);
    cr_assert_eq(info_of(vram).allocations, 0);
}

static struct tol_vram_context *shared;
enum { LIMIT = 64 * 1024 };

static void *fill_up(void *argument) {
    struct tol_vram mine[64];
    int count = 0;
    (void)argument;
    for (int i = 0; i < 300; i++) {
        struct tol_vram_info info;
        if (count < 64 && tol_vram_allocate(shared, 1024, &mine[count]) == TOL_OK) {
            char data[1024], back[1024];
            memset(data, i, sizeof data);
            MUST(tol_vram_write_at(shared, mine[count], 0, data, sizeof data));
            MUST(tol_vram_read_at(shared, mine[count], 0, back, sizeof back));
            cr_assert_eq(memcmp(data, back, sizeof data), 0);
            count++;
        } else if (count > 0) {
            MUST(tol_vram_free(shared, mine[--count]));
        }
        MUST(tol_vram_info(shared, &info));
        cr_assert(info.used_bytes <= LIMIT && info.used_peak <= LIMIT);
    }
    while (count > 0) MUST(tol_vram_free(shared, mine[--count]));
    return NULL;
}

Test(vram_handle, sp_4_threads_do_not_pass_the_limit_together, .fini = test_end, .timeout = 120) {
    pthread_t threads[4];
    shared = new_context(LIMIT);
    for (int i = 0; i < 4; i++) cr_assert_eq(pthread_create(&threads[i], NULL, fill_up, NULL), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    cr_assert_eq(info_of(shared).used_bytes, 0);
    cr_assert_eq(info_of(shared).used_peak, LIMIT);
    tol_vram_context_destroy(shared);
}

/*
 * The C API of specifications 000 and 002. Each MUST of specification 002 has a number here, in the
 * order: VO-1 is vram_malloc, VO-2 vram_free, VO-3 vram_memcpy_h2d, VO-4
 * vram_memcpy_d2h, VO-5 vram_get_info; VO-6 and VO-7 are specification 000's vram_set_device and
 * vram_get_device_count, VO-8 the security requirements and VO-9 the required tests.
 */
#include "test/test_device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static char *at(void *pointer, size_t offset) {
    return (char *)((uintptr_t)pointer + offset);
}

/* The calls open the driver themselves; the environment names it, as for users. */
static void use_driver(void) {
    (void)test_driver(); /* skips where there is none */
    test_end();
    if (test_library() != NULL) setenv("TOLLENS_LIBCUDA", test_library(), 1);
}

/* The nth call of a function fails, once, in the soft device. */
static void break_call(const char *function, unsigned nth, int code) {
    char path[] = "/tmp/tollens-faults-XXXXXX";
    if (test_on_gpu()) cr_skip_test("a GPU is not made to fail");
    int file = mkstemp(path);
    cr_assert(file >= 0);
    dprintf(file,
            "{\"rules\": [{\"function\": \"%s\", \"nth\": %u, \"action\": \"return\", "
            "\"code\": %d}]}\n",
            function, nth, code);
    close(file);
    setenv("TOLLENS_SOFT_FAULTS", path, 1);
    use_driver();
    unlink(path);
}

#define CODE(call, expected)                                                                       \
    do {                                                                                           \
        int code_now = (call);                                                                     \
        cr_assert(code_now == (expected), "%s: %d, not %d: %s", #call, code_now, (int)(expected),  \
                  tol_message());                                                                  \
    } while (0)

static void *allocate(size_t bytes) {
    void *pointer = NULL;
    CODE(vram_malloc(&pointer, bytes), VRAM_OK);
    cr_assert(pointer != NULL && (uintptr_t)pointer % 256 == 0);
    return pointer;
}

/* ---- VO-1 ---- */

Test(vram, vo_1_1_malloc_validates_its_pointer, .init = use_driver) {
    CODE(vram_malloc(NULL, 100), VRAM_E_INVALID);
}

Test(vram, vo_1_2_malloc_refuses_no_bytes, .init = use_driver) {
    void *pointer = &pointer;
    CODE(vram_malloc(&pointer, 0), VRAM_E_INVALID);
    cr_assert(pointer == NULL);
}

Test(vram, vo_1_3_and_1_4_malloc_says_what_failed_and_leaves_null, .init = use_driver) {
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX - (2 * MIB) + 1};
    size_t free_bytes = 0, total_bytes = 0;
    void *pointer = NULL;
    for (size_t i = 0; i < 3; i++) {
        pointer = &pointer;
        CODE(vram_malloc(&pointer, sizes[i]), VRAM_E_ALLOCATION);
        cr_assert(pointer == NULL);
    }
    CODE(vram_get_info(&free_bytes, &total_bytes), VRAM_OK);
    pointer = &pointer;
    CODE(vram_malloc(&pointer, total_bytes + 1), VRAM_E_ALLOCATION);
    cr_assert(pointer == NULL);
    cr_assert(strstr(tol_message(), "bytes are free") != NULL, "%s", tol_message());
    CODE(vram_free(allocate(MIB)), VRAM_OK); /* the next calls work */
}

Test(vram, vo_1_5_and_8_3_failed_allocations_leak_nothing, .init = use_driver) {
    size_t before = 0, after = 0, total = 0;
    void *pointer = NULL;
    CODE(vram_free(allocate(3 * MIB)), VRAM_OK);
    CODE(vram_get_info(&before, &total), VRAM_OK);
    for (int i = 0; i < 50; i++) {
        CODE(vram_malloc(&pointer, total + 1 + (size_t)i), VRAM_E_ALLOCATION);
        CODE(vram_free(allocate(3 * MIB)), VRAM_OK);
    }
    CODE(vram_get_info(&after, &total), VRAM_OK);
    if (!test_on_gpu()) cr_assert_eq(before, after);
}

Test(vram, vo_1_memory_is_apart_and_holds_what_is_written, .init = use_driver) {
    static const size_t sizes[] = {1, 255, 256, 257, 70000, MIB, MIB + 1, 5 * MIB + 7};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    void *pointers[COUNT];
    unsigned char *data = malloc(6 * MIB);
    for (int i = 0; i < COUNT; i++) {
        pointers[i] = allocate(sizes[i]);
        memset(data, i + 1, sizes[i]);
        CODE(vram_memcpy_h2d(pointers[i], data, sizes[i]), VRAM_OK);
    }
    for (int i = 0; i < COUNT; i++) {
        memset(data, 0, sizes[i]);
        CODE(vram_memcpy_d2h(data, pointers[i], sizes[i]), VRAM_OK);
        for (size_t k = 0; k < sizes[i]; k++) cr_assert_eq(data[k], i + 1);
        CODE(vram_free(pointers[i]), VRAM_OK);
    }
    free(data);
}

/* ---- VO-2 ---- */

Test(vram, vo_2_1_free_is_idempotent, .init = use_driver) {
    static const size_t sizes[] = {100, MIB, 9 * MIB};
    for (int i = 0; i < 3; i++) {
        void *pointer = allocate(sizes[i]);
        for (int k = 0; k < 5; k++) CODE(vram_free(pointer), VRAM_OK);
    }
}

Test(vram, vo_2_1_free_is_idempotent_after_the_memory_was_given_to_others, .init = use_driver) {
    static const size_t sizes[] = {100, 512 << 10, 3 * MIB};
    for (int s = 0; s < 3; s++) {
        void *stale[64];
        for (int i = 0; i < 64; i++) {
            stale[i] = allocate(sizes[s]);
            CODE(vram_free(stale[i]), VRAM_OK);
        }
        void *live = allocate(sizes[s]);
        char byte = 'x', back = 0;
        CODE(vram_memcpy_h2d(live, &byte, 1), VRAM_OK);
        for (int i = 0; i < 64; i++) {
            cr_assert(stale[i] != live, "an address came back");
            CODE(vram_free(stale[i]), VRAM_OK);
            CODE(vram_memcpy_h2d(stale[i], "y", 1), VRAM_E_INVALID);
            CODE(vram_memcpy_d2h(&back, stale[i], 1), VRAM_E_INVALID);
        }
        CODE(vram_memcpy_d2h(&back, live, 1), VRAM_OK);
        cr_assert_eq(back, 'x', "a stale pointer reached live memory");
        CODE(vram_free(live), VRAM_OK);
    }
}

Test(vram, vo_2_2_free_accepts_null) {
    CODE(vram_free(NULL), VRAM_OK); /* also before anything was opened */
}

Test(vram, vo_2_3_and_2_4_free_refuses_what_is_no_allocation, .init = use_driver) {
    int local = 0;
    void *pointer = allocate(5 * MIB), *small = allocate(1000);
    CODE(vram_free(&local), VRAM_E_INVALID);
    CODE(vram_free((void *)(uintptr_t)1), VRAM_E_INVALID);
    CODE(vram_free((void *)UINTPTR_MAX), VRAM_E_INVALID);
    CODE(vram_free(at(pointer, 1)), VRAM_E_INVALID);
    CODE(vram_free(at(pointer, 2 * MIB)), VRAM_E_INVALID);
    CODE(vram_free(at(pointer, 5 * MIB)), VRAM_E_INVALID);
    CODE(vram_free(at(small, 256)), VRAM_E_INVALID);
    CODE(vram_free(small), VRAM_OK);
    CODE(vram_free(pointer), VRAM_OK);
    CODE(vram_free(at(pointer, 2 * MIB)), VRAM_E_INVALID);
}

Test(vram, vo_2_3_free_says_that_the_device_failed) {
    break_call("cuStreamQuery*", 1, CUDA_ERROR_OPERATING_SYSTEM);
    void *pointer = allocate(100);
    CODE(vram_free(pointer), VRAM_E_DRIVER);
    CODE(vram_free(pointer), VRAM_OK); /* it was still live, and is freed now */
    CODE(vram_memcpy_h2d(pointer, "x", 1), VRAM_E_INVALID);
}

/* ---- VO-3, VO-4 ---- */

Test(vram, vo_3_1_and_4_1_copies_validate_their_pointers, .init = use_driver) {
    char data[16] = {0};
    void *pointer = allocate(16);
    CODE(vram_memcpy_h2d(NULL, data, 16), VRAM_E_INVALID);
    CODE(vram_memcpy_h2d(pointer, NULL, 16), VRAM_E_INVALID);
    CODE(vram_memcpy_d2h(NULL, pointer, 16), VRAM_E_INVALID);
    CODE(vram_memcpy_d2h(data, NULL, 16), VRAM_E_INVALID);
    CODE(vram_memcpy_h2d(NULL, NULL, 0), VRAM_E_INVALID);
    CODE(vram_memcpy_h2d(data, data, 16), VRAM_E_INVALID); /* not the device's */
    CODE(vram_memcpy_d2h(data, data, 16), VRAM_E_INVALID);
    CODE(vram_memcpy_h2d(pointer, pointer, 16), VRAM_E_INVALID); /* not the host's */
    CODE(vram_memcpy_d2h(pointer, pointer, 16), VRAM_E_INVALID);
}

Test(vram, vo_3_2_and_4_2_copies_refuse_no_bytes, .init = use_driver) {
    char data[16] = {0};
    void *pointer = allocate(16);
    CODE(vram_memcpy_h2d(pointer, data, 0), VRAM_E_INVALID);
    CODE(vram_memcpy_d2h(data, pointer, 0), VRAM_E_INVALID);
}

Test(vram, vo_3_3_and_4_3_and_8_2_copies_stay_inside_their_allocation, .init = use_driver) {
    static const struct {
        size_t offset, bytes;
        int code;
    } rows[] = {
        {0, 1000, VRAM_OK},
        {999, 1, VRAM_OK},
        {0, 1001, VRAM_E_INVALID},
        {1, 1000, VRAM_E_INVALID},
        {999, 2, VRAM_E_INVALID},
        {1000, 1, VRAM_E_INVALID}, /* in the rounding after the end */
        {1023, 1, VRAM_E_INVALID},
        {500, SIZE_MAX, VRAM_E_INVALID},
        {500, SIZE_MAX - 499, VRAM_E_INVALID},
        {500, SIZE_MAX / 2, VRAM_E_INVALID},
        {1024, 1, VRAM_OK}, /* the neighbour's first byte */
        {1020, 8, VRAM_E_INVALID},
    };
    char data[1001];
    memset(data, 'a', sizeof data);
    void *first = allocate(1000), *second = allocate(1000);
    cr_assert(at(first, 1024) == (char *)second, "they are neighbours for this test");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CODE(vram_memcpy_h2d(at(first, rows[i].offset), data, rows[i].bytes), rows[i].code);
        CODE(vram_memcpy_d2h(data, at(first, rows[i].offset), rows[i].bytes), rows[i].code);
    }
    /* The host's end may not wrap either. */
    CODE(vram_memcpy_h2d(first, (void *)(UINTPTR_MAX - 10), 100), VRAM_E_INVALID);
    CODE(vram_memcpy_d2h((void *)(UINTPTR_MAX - 10), first, 100), VRAM_E_INVALID);
}

Test(vram, vo_3_4_a_copy_to_the_device_says_that_it_failed) {
    break_call("cuMemcpyHtoDAsync*", 1, CUDA_ERROR_INVALID_VALUE);
    char data[16] = "0123456789abcde", back[16];
    void *pointer = allocate(16);
    CODE(vram_memcpy_h2d(pointer, data, 16), VRAM_E_COPY);
    CODE(vram_memcpy_h2d(pointer, data, 16), VRAM_OK);
    CODE(vram_memcpy_d2h(back, pointer, 16), VRAM_OK);
    cr_assert_eq(memcmp(data, back, 16), 0);
}

Test(vram, vo_4_4_a_copy_to_the_host_says_that_it_failed) {
    break_call("cuMemcpyDtoHAsync*", 1, CUDA_ERROR_INVALID_VALUE);
    char data[16] = "0123456789abcde", back[16];
    void *pointer = allocate(16);
    CODE(vram_memcpy_h2d(pointer, data, 16), VRAM_OK);
    CODE(vram_memcpy_d2h(back, pointer, 16), VRAM_E_COPY);
    CODE(vram_memcpy_d2h(back, pointer, 16), VRAM_OK);
    cr_assert_eq(memcmp(data, back, 16), 0);
    CODE(vram_free(pointer), VRAM_OK);
}

/* ---- VO-5, VO-6, VO-7 ---- */

Test(vram, vo_5_1_info_validates_its_pointers, .init = use_driver) {
    size_t bytes = 0;
    CODE(vram_get_info(NULL, &bytes), VRAM_E_INVALID);
    CODE(vram_get_info(&bytes, NULL), VRAM_E_INVALID);
}

Test(vram, vo_5_2_info_follows_what_is_allocated, .init = use_driver) {
    size_t before = 0, during = 0, after = 0, total = 0;
    CODE(vram_get_info(&before, &total), VRAM_OK);
    cr_assert(before > 0 && before <= total);
    void *pointer = allocate(64 * MIB);
    CODE(vram_get_info(&during, &total), VRAM_OK);
    CODE(vram_free(pointer), VRAM_OK);
    CODE(vram_get_info(&after, &total), VRAM_OK);
    if (test_on_gpu()) cr_skip_test("others may use the GPU: figures are not exact");
    cr_assert_eq(before - during, 64 * MIB);
    cr_assert_eq(before, after);
}

Test(vram, vo_5_3_info_says_that_the_driver_failed) {
    break_call("cuMemGetInfo*", 1, CUDA_ERROR_OPERATING_SYSTEM);
    size_t free_bytes = 0, total_bytes = 0;
    CODE(vram_get_info(&free_bytes, &total_bytes), VRAM_E_DRIVER);
    CODE(vram_get_info(&free_bytes, &total_bytes), VRAM_OK);
}

static void *device_of_another_thread(void *pointer) {
    void *memory = NULL;
    *(int *)pointer = vram_malloc(&memory, 100);
    return NULL;
}

Test(vram, vo_6_and_vo_7_devices_are_counted_and_chosen_by_thread) {
    if (!test_on_gpu()) setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    use_driver();
    int count = 0, code = -1;
    char data[8] = "devices", back[8] = "";
    pthread_t thread;
    CODE(vram_get_device_count(NULL), VRAM_E_INVALID);
    CODE(vram_get_device_count(&count), VRAM_OK);
    cr_assert(test_on_gpu() ? count >= 1 : count == 2);
    CODE(vram_set_device(-1), VRAM_E_INVALID);
    CODE(vram_set_device(count), VRAM_E_INVALID);
    CODE(vram_set_device(1000000), VRAM_E_INVALID);
    void *first = allocate(100), *second = NULL;
    CODE(vram_set_device(count - 1), VRAM_OK);
    second = allocate(100);
    /* Pointers know their device. */
    CODE(vram_memcpy_h2d(first, data, 8), VRAM_OK);
    CODE(vram_memcpy_d2h(back, first, 8), VRAM_OK);
    cr_assert_str_eq(back, data);
    CODE(vram_memcpy_h2d(second, data, 8), VRAM_OK);
    CODE(vram_set_device(0), VRAM_OK);
    CODE(vram_free(second), VRAM_OK);
    CODE(vram_free(first), VRAM_OK);
    cr_assert_eq(pthread_create(&thread, NULL, device_of_another_thread, &code), 0);
    pthread_join(thread, NULL);
    cr_assert_eq(code, VRAM_OK);
}

/* ---- VO-8, VO-9 ---- */

Test(vram, vo_8_1_without_a_driver_everything_says_so_and_nothing_ends) {
    setenv("TOLLENS_LIBCUDA", "/nowhere/libcuda.so.1", 1);
    size_t bytes = 0;
    int count = 7;
    char data[4] = "abc";
    void *pointer = &pointer;
    CODE(vram_malloc(&pointer, 100), VRAM_E_DRIVER);
    cr_assert(pointer == NULL);
    CODE(vram_get_info(&bytes, &bytes), VRAM_E_DRIVER);
    CODE(vram_get_device_count(&count), VRAM_E_DRIVER);
    cr_assert_eq(count, 0);
    CODE(vram_set_device(0), VRAM_E_DRIVER);
    CODE(vram_free(data), VRAM_E_INVALID);
    CODE(vram_memcpy_h2d(data, data, 4), VRAM_E_INVALID);
    CODE(vram_memcpy_d2h(data, data, 4), VRAM_E_INVALID);
    cr_assert(strlen(tol_message()) > 0);
    /* What was not there may be there the next time. */
    use_driver();
    CODE(vram_free(allocate(100)), VRAM_OK);
}

static void *freed_by_all;

static void *allocate_and_free(void *argument) {
    unsigned seed = (unsigned)(uintptr_t)argument;
    void *pointers[16] = {0};
    unsigned sizes[16] = {0};
    unsigned char data[4096], back[4096];
    for (int i = 0; i < 400; i++) {
        seed = seed * 1664525u + 1013904223u;
        unsigned slot = seed >> 28;
        if (pointers[slot] != NULL) {
            memset(data, (int)slot + 1, sizes[slot]);
            CODE(vram_memcpy_d2h(back, pointers[slot], sizes[slot]), VRAM_OK);
            cr_assert(memcmp(back, data, sizes[slot]) == 0, "live memory was overwritten");
            CODE(vram_free(pointers[slot]), VRAM_OK);
            pointers[slot] = NULL;
        } else {
            sizes[slot] = 1 + (seed >> 8) % sizeof data;
            pointers[slot] = allocate(sizes[slot]);
            memset(data, (int)slot + 1, sizes[slot]);
            CODE(vram_memcpy_h2d(pointers[slot], data, sizes[slot]), VRAM_OK);
        }
    }
    for (int i = 0; i < 16; i++) CODE(vram_free(pointers[i]), VRAM_OK);
    CODE(vram_free(freed_by_all), VRAM_OK); /* one of them frees it */
    return NULL;
}

Test(vram, vo_8_threads_do_not_disturb_each_other, .init = use_driver, .timeout = 120) {
    pthread_t threads[4];
    freed_by_all = allocate(100);
    for (uintptr_t i = 0; i < 4; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, allocate_and_free, (void *)(i + 1)), 0);
    }
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

static void *free_it(void *pointer) {
    CODE(vram_free(pointer), VRAM_OK);
    return NULL;
}

Test(vram, vo_8_2_a_copy_and_a_free_of_one_allocation_may_meet, .init = use_driver,
     .timeout = 120) {
    char *data = calloc(1, 4 * MIB);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *pointer = allocate(4 * MIB);
        cr_assert_eq(pthread_create(&thread, NULL, free_it, pointer), 0);
        int code = vram_memcpy_h2d(pointer, data, 4 * MIB);
        cr_assert(code == VRAM_OK || code == VRAM_E_INVALID, "%d: %s", code, tol_message());
        pthread_join(thread, NULL);
        CODE(vram_memcpy_h2d(pointer, data, 1), VRAM_E_INVALID);
    }
    free(data);
}

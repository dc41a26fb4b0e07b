/*
 * Copies that are done when they return: whole, in pieces, many, in rows, on the device and between
 * devices; what is refused; what is tried again, and what is not; threads.
 */
#include "test/test_device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static struct tol_transfer *new_transfer(struct tol_context *context, size_t block_bytes,
                                         unsigned threads) {
    struct tol_transfer *transfer = NULL;
    struct tol_transfer_options options;
    tol_transfer_default(&options);
    options.block_bytes = block_bytes;
    options.threads = threads;
    options.pause_us = 1;
    MUST(tol_transfer_create(context, &options, &transfer));
    return transfer;
}

static struct tol_buffer *new_buffer(struct tol_context *context, size_t bytes) {
    struct tol_buffer *buffer = NULL;
    MUST(tol_buffer_create(context, bytes, 1, &buffer));
    return buffer;
}

static unsigned char value_at(size_t i, unsigned seed) {
    return (unsigned char)(i * 31 + (i >> 8) * 7 + (i >> 16) + seed);
}

static unsigned char *new_pattern(size_t bytes, unsigned seed) {
    unsigned char *data = malloc(bytes);
    cr_assert(data != NULL);
    for (size_t i = 0; i < bytes; i++) data[i] = value_at(i, seed);
    return data;
}

static struct tol_transfer_stats stats_of(struct tol_transfer *transfer) {
    struct tol_transfer_stats stats;
    MUST(tol_transfer_stats(transfer, &stats));
    return stats;
}

Test(transfer, what_is_written_is_read_whatever_its_size, .fini = test_end, .timeout = 120) {
    static const size_t sizes[] = {
        1, 255, 4096, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 300 * KIB + 7, MIB, 5 * MIB + 3};
    static const unsigned threads[] = {1, 4};
    for (size_t t = 0; t < 2; t++) {
        tol_auto_transfer struct tol_transfer *transfer =
            new_transfer(test_context(), 64 * KIB, threads[t]);
        tol_auto_buffer struct tol_buffer *buffer = new_buffer(test_context(), 6 * MIB);
        struct tol_place place = tol_place_of_buffer(buffer);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            const size_t bytes = sizes[i], offset = 3 * i;
            unsigned char *data = new_pattern(bytes, (unsigned)i);
            /* One byte more at each end, which must stay. */
            unsigned char *back = calloc(1, bytes + 2);
            MUST(tol_buffer_fill_at(buffer, 0, 0xee, 1, 6 * MIB));
            MUST(tol_transfer_write(transfer, place, offset, data, bytes));
            MUST(tol_transfer_read(transfer, place, offset, back + 1, bytes));
            cr_assert(memcmp(data, back + 1, bytes) == 0, "%zu bytes differ", bytes);
            cr_assert(back[0] == 0 && back[bytes + 1] == 0, "%zu bytes: too many", bytes);
            MUST(tol_buffer_read_at(buffer, offset + bytes, back, 1));
            cr_assert_eq(back[0], 0xee, "%zu bytes wrote past their end", bytes);
            free(data);
            free(back);
        }
        /* Four blocks: no more are pinned, however much was copied. */
        struct tol_transfer_stats stats = stats_of(transfer);
        cr_assert(stats.pinned_bytes > 0 && stats.pinned_bytes <= 4 * (uint64_t)64 * KIB);
        cr_assert(stats.pieces > 100 && stats.retries == 0);
    }
}

Test(transfer, what_makes_no_sense_is_refused, .fini = test_end) {
    tol_auto_transfer struct tol_transfer *transfer = new_transfer(test_context(), 4 * KIB, 1);
    tol_auto_buffer struct tol_buffer *buffer = new_buffer(test_context(), 1000);
    struct tol_place place = tol_place_of_buffer(buffer);
    char data[16] = {0};
    bool resident = false;
    struct tol_transfer *none = NULL;
    struct tol_transfer_options options;
    tol_transfer_default(&options);
    options.threads = 0;
    MUST_FAIL(tol_transfer_create(test_context(), &options, &none), TOL_INVALID_ARGUMENT,
              "threads 0");
    tol_transfer_default(&options);
    options.deadline_ms = 0;
    MUST_FAIL(tol_transfer_create(test_context(), &options, &none), TOL_INVALID_ARGUMENT,
              "deadline_ms 0");
    MUST_FAIL(tol_transfer_create(NULL, NULL, &none), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_transfer_write(transfer, place, 0, NULL, 1), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_transfer_write(NULL, place, 0, data, 1), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_transfer_write(transfer, place, 985, data, 16), TOL_OUT_OF_RANGE, "985");
    MUST_FAIL(tol_transfer_read(transfer, place, SIZE_MAX, data, 16), TOL_OUT_OF_RANGE, "1000");
    MUST_FAIL(tol_transfer_read(transfer, place, 0, data, SIZE_MAX), TOL_OUT_OF_RANGE,
              "address space");
    MUST_FAIL(tol_transfer_write(transfer, (struct tol_place){0}, 0, data, 1), TOL_INVALID_ARGUMENT,
              "device address is 0");
    MUST_FAIL(tol_transfer_copy(transfer, place, 0, place, 15, 16), TOL_INVALID_ARGUMENT,
              "overlap");
    MUST_FAIL(tol_transfer_is_resident(transfer, 0, NULL), TOL_INVALID_ARGUMENT, "NULL");
    MUST(tol_transfer_write(transfer, place, 1000, NULL, 0));
    MUST(tol_transfer_is_resident(transfer, 0, &resident));
    cr_assert_not(resident);
    tol_transfer_destroy(NULL);
    cr_assert_eq(tol_place_of_buffer(NULL).bytes, 0);
}

Test(transfer, a_batch_is_copied_whole_in_few_pieces, .fini = test_end) {
    enum { COUNT = 1000 };
    tol_auto_transfer struct tol_transfer *transfer = new_transfer(test_context(), 16 * KIB, 2);
    tol_auto_buffer struct tol_buffer *buffer = new_buffer(test_context(), MIB);
    static struct tol_transfer_item items[COUNT];
    unsigned char *data = new_pattern(MIB, 5), *back = calloc(1, MIB);
    size_t at = 0;
    for (size_t i = 0; i < COUNT; i++) {
        /* Of all sizes: none, small, and some beyond a block; gaps after some of them. */
        size_t bytes = i % 100 == 50 ? 40 * KIB : i % 7 == 0 ? 0 : 13 * (i % 60);
        items[i] = (struct tol_transfer_item){tol_place_of_buffer(buffer), at, data + at, bytes};
        at += bytes + (i % 3 == 0 ? 5 : 0);
    }
    cr_assert(at < MIB);
    MUST(tol_buffer_fill_at(buffer, 0, 0, 1, MIB));
    MUST(tol_transfer_write_batch(transfer, COUNT, items));
    cr_assert(stats_of(transfer).pieces < 100, "%llu pieces",
              (unsigned long long)stats_of(transfer).pieces);
    MUST(tol_buffer_read(buffer, back, MIB));
    for (size_t i = 0; i < COUNT; i++) {
        size_t begin = items[i].offset, end = begin + items[i].bytes;
        cr_assert(memcmp(back + begin, data + begin, items[i].bytes) == 0, "item %zu", i);
        if (i % 3 == 0) cr_assert_eq(back[end], 0, "item %zu wrote past its end", i);
        items[i].host = back + begin;
    }
    memset(back, 0, MIB);
    MUST(tol_transfer_read_batch(transfer, COUNT, items));
    for (size_t i = 0; i < COUNT; i++) {
        size_t begin = items[i].offset;
        cr_assert(memcmp(back + begin, data + begin, items[i].bytes) == 0, "item %zu", i);
    }
    /* One that does not fit, and none of them is copied. */
    items[COUNT - 1].offset = MIB;
    MUST(tol_buffer_fill_at(buffer, 0, 0, 1, MIB));
    items[COUNT - 1].bytes = 1;
    MUST_FAIL(tol_transfer_write_batch(transfer, COUNT, items), TOL_OUT_OF_RANGE, "1 bytes");
    MUST(tol_buffer_read_at(buffer, items[1].offset, back, 13));
    for (int i = 0; i < 13; i++) cr_assert_eq(back[i], 0);
    MUST(tol_transfer_write_batch(transfer, 0, NULL));
    /* Of items without bytes nothing is copied. */
    const unsigned long long pieces = stats_of(transfer).pieces;
    for (size_t i = 0; i < 3; i++) items[i].bytes = 0;
    MUST(tol_transfer_write_batch(transfer, 3, items));
    cr_assert_eq(stats_of(transfer).pieces, pieces);
    MUST_FAIL(tol_transfer_read_batch(transfer, 1, NULL), TOL_INVALID_ARGUMENT, "NULL");
    free(data);
    free(back);
}

Test(transfer, rows_keep_their_places, .fini = test_end) {
    static const struct tol_transfer_rows shapes[] = {{100, 57, 3, 256, 128},
                                                      {1, 1000, 0, 7, 3},
                                                      {5000, 9, 16, 5000, 6000},
                                                      {4096, 3, 0, 4100, 4096},
                                                      {33, 1, 0, 33, 33}};
    tol_auto_transfer struct tol_transfer *transfer = new_transfer(test_context(), 4 * KIB, 3);
    tol_auto_buffer struct tol_buffer *one = new_buffer(test_context(), 128 * KIB);
    tol_auto_buffer struct tol_buffer *two = new_buffer(test_context(), 128 * KIB);
    unsigned char *data = new_pattern(128 * KIB, 9), *flat = malloc(128 * KIB);
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const struct tol_transfer_rows *rows = &shapes[s];
        struct tol_transfer_rows other = *rows;
        other.offset = 11;
        other.device_pitch = rows->width + 1;
        MUST(tol_buffer_fill_at(one, 0, 0, 1, 128 * KIB));
        MUST(tol_buffer_fill_at(two, 0, 0, 1, 128 * KIB));
        MUST(tol_transfer_write_rows(transfer, tol_place_of_buffer(one), data, rows));
        MUST(tol_transfer_copy_rows(transfer, tol_place_of_buffer(two), &other,
                                    tol_place_of_buffer(one), rows));
        MUST(tol_buffer_read(two, flat, 128 * KIB));
        for (size_t y = 0; y < rows->height; y++) {
            const unsigned char *row = flat + 11 + y * other.device_pitch;
            cr_assert(memcmp(row, data + y * rows->host_pitch, rows->width) == 0,
                      "shape %zu, row %zu", s, y);
            cr_assert_eq(row[rows->width], 0, "shape %zu, after row %zu", s, y);
        }
        memset(flat, 0, 128 * KIB);
        MUST(tol_transfer_read_rows(transfer, tol_place_of_buffer(two), flat, &other));
        for (size_t y = 0; y < rows->height; y++) {
            cr_assert(
                memcmp(flat + y * rows->host_pitch, data + y * rows->host_pitch, rows->width) == 0);
            if (rows->host_pitch > rows->width)
                cr_assert_eq(flat[y * rows->host_pitch + rows->width], 0);
        }
    }
    free(data);
    free(flat);
}

Test(transfer, pitches_are_checked, .fini = test_end) {
    tol_auto_transfer struct tol_transfer *transfer = new_transfer(test_context(), 4 * KIB, 1);
    tol_auto_buffer struct tol_buffer *buffer = new_buffer(test_context(), 1000);
    struct tol_place place = tol_place_of_buffer(buffer);
    static char data[1000];
    struct tol_transfer_rows rows = {10, 10, 0, 9, 10}, same = {10, 10, 0, 10, 10};
    MUST_FAIL(tol_transfer_write_rows(transfer, place, data, &rows), TOL_INVALID_ARGUMENT,
              "pitch of 9");
    rows = (struct tol_transfer_rows){10, 10, 0, 10, 9};
    MUST_FAIL(tol_transfer_read_rows(transfer, place, data, &rows), TOL_INVALID_ARGUMENT,
              "pitch of 9");
    rows = (struct tol_transfer_rows){10, 10, 1, 110, 10};
    MUST_FAIL(tol_transfer_write_rows(transfer, place, data, &rows), TOL_OUT_OF_RANGE, "1000");
    rows = (struct tol_transfer_rows){10, 10, 0, SIZE_MAX / 4, 10};
    MUST_FAIL(tol_transfer_write_rows(transfer, place, data, &rows), TOL_INVALID_ARGUMENT, "pitch");
    rows = (struct tol_transfer_rows){10, SIZE_MAX, 0, 1000, 10};
    MUST_FAIL(tol_transfer_write_rows(transfer, place, data, &rows), TOL_OUT_OF_RANGE,
              "does not fit a size_t");
    MUST_FAIL(tol_transfer_write_rows(transfer, place, NULL, &same), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_transfer_write_rows(transfer, place, data, NULL), TOL_INVALID_ARGUMENT, "NULL");
    rows = (struct tol_transfer_rows){10, 10, 95, 10, 10};
    MUST_FAIL(tol_transfer_copy_rows(transfer, place, &same, place, &rows), TOL_INVALID_ARGUMENT,
              "overlap");
    rows.height = 9;
    MUST_FAIL(tol_transfer_copy_rows(transfer, place, &same, place, &rows), TOL_INVALID_ARGUMENT,
              "the destination has 10 rows of 10 bytes and the source 9 rows of 10");
    rows = (struct tol_transfer_rows){0, 10, 5000, 0, 0};
    MUST(tol_transfer_write_rows(transfer, place, data, &rows));
}

Test(transfer, residency_is_told_of_buffers_pinned_and_plain_memory, .fini = test_end) {
    tol_auto_transfer struct tol_transfer *transfer = new_transfer(test_context(), 4 * KIB, 1);
    tol_auto_buffer struct tol_buffer *buffer = new_buffer(test_context(), 1000);
    tol_auto_pinned struct tol_pinned *pinned = NULL;
    void *data = NULL;
    int plain = 0;
    bool resident = false;
    MUST(tol_pinned_create(test_context(), 1000, &pinned));
    MUST(tol_pinned_access(pinned, &data));
    MUST(tol_transfer_is_resident(transfer, tol_buffer_address(buffer) + 999, &resident));
    cr_assert(resident);
    MUST(tol_transfer_is_resident(transfer, (CUdeviceptr)(uintptr_t)data, &resident));
    cr_assert_not(resident, "pinned memory is the host's");
    MUST(tol_transfer_is_resident(transfer, (CUdeviceptr)(uintptr_t)&plain, &resident));
    cr_assert_not(resident);
}

/* What a driver says of managed memory: that of a device, and managed. */
static void call_it_managed(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuPointerGetAttribute) return;
    unsigned *answer = *(unsigned *const *)call->arguments[0];
    if (*(const CUpointer_attribute *)call->arguments[1] == CU_POINTER_ATTRIBUTE_IS_MANAGED) {
        *answer = 1;
    }
}

Test(transfer, managed_memory_is_not_resident, .fini = test_end) {
    MUST(tol_interpose_install(test_driver(),
                               &(struct tol_interpose_options){.after = call_it_managed}));
    tol_auto_transfer struct tol_transfer *transfer = new_transfer(test_context(), 4 * KIB, 1);
    tol_auto_buffer struct tol_buffer *buffer = new_buffer(test_context(), 1000);
    bool resident = true;
    MUST(tol_transfer_is_resident(transfer, tol_buffer_address(buffer), &resident));
    cr_assert_not(resident);
    tol_interpose_remove(test_driver());
}

/* ---- failures ---- */

static const struct tol_interpose_rule *rule_now;

static struct tol_context *context_with(const struct tol_interpose_rule *rule) {
    rule_now = rule;
    MUST(tol_interpose_install(
        test_driver(), &(struct tol_interpose_options){.rules = rule_now, .rule_count = 1}));
    return test_context();
}

Test(transfer, a_failure_that_passes_is_not_seen, .fini = test_end) {
    static const char *const functions[] = {"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
                                            "cuMemHostAlloc",       "cuEventRecord",
                                            "cuMemcpyDtoDAsync_v2", "cuMemcpy2DAsync_v2"};
    unsigned char *data = new_pattern(64 * KIB, 3), *back = calloc(1, 64 * KIB);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const struct tol_interpose_rule rule = {.function = functions[i],
                                                .nth = 1,
                                                .action = TOL_INTERPOSE_FAIL,
                                                .result = CUDA_ERROR_OUT_OF_MEMORY};
        struct tol_context *context = context_with(&rule);
        struct tol_transfer *transfer = new_transfer(context, 4 * KIB, 2);
        struct tol_buffer *buffer = new_buffer(context, 128 * KIB);
        struct tol_place place = tol_place_of_buffer(buffer);
        const struct tol_transfer_rows rows = {64, 16, 0, 128, 64};
        memset(back, 0, 64 * KIB);
        MUST(tol_transfer_write_rows(transfer, place, data, &rows));
        MUST(tol_transfer_write(transfer, place, 0, data, 64 * KIB));
        MUST(tol_transfer_copy(transfer, place, 64 * KIB, place, 0, 64 * KIB));
        MUST(tol_transfer_read(transfer, place, 64 * KIB, back, 64 * KIB));
        cr_assert(memcmp(data, back, 64 * KIB) == 0, "%s failed once, and data differ",
                  functions[i]);
        cr_assert_eq(stats_of(transfer).retries, 1, "%s", functions[i]);
        tol_buffer_destroy(buffer);
        tol_transfer_destroy(transfer);
        tol_interpose_remove(test_driver());
        test_end();
    }
    free(data);
    free(back);
}

Test(transfer, a_failure_that_stays_is_told_with_its_attempts, .fini = test_end) {
    static const struct tol_interpose_rule rule = {.function = "cuMemcpyHtoDAsync_v2",
                                                   .action = TOL_INTERPOSE_FAIL,
                                                   .result = CUDA_ERROR_SYSTEM_NOT_READY};
    struct tol_context *context = context_with(&rule);
    tol_auto_transfer struct tol_transfer *transfer = new_transfer(context, 4 * KIB, 3);
    tol_auto_buffer struct tol_buffer *buffer = new_buffer(context, 256 * KIB);
    unsigned char *data = new_pattern(256 * KIB, 3);
    MUST_FAIL(tol_transfer_write(transfer, tol_place_of_buffer(buffer), 0, data, 256 * KIB),
              TOL_DRIVER_ERROR, "attempt 8");
    cr_assert(strstr(tol_message(), "cuMemcpyHtoDAsync_v2: CUDA_ERROR_SYSTEM_NOT_READY") != NULL,
              "%s", tol_message());
    cr_assert_eq(tol_message_cuda(), CUDA_ERROR_SYSTEM_NOT_READY);
    /* Nothing is lost: copies work again when the driver does. */
    tol_interpose_remove(test_driver());
    free(data);
}

Test(transfer, what_cannot_pass_is_not_tried_again, .fini = test_end) {
    static const struct tol_interpose_rule rule = {.function = "cuMemcpyDtoHAsync_v2",
                                                   .nth = 3,
                                                   .action = TOL_INTERPOSE_FAIL,
                                                   .result = CUDA_ERROR_INVALID_VALUE};
    struct tol_context *context = context_with(&rule);
    tol_auto_transfer struct tol_transfer *transfer = new_transfer(context, 4 * KIB, 1);
    tol_auto_buffer struct tol_buffer *buffer = new_buffer(context, 64 * KIB);
    unsigned char *back = new_pattern(64 * KIB, 3);
    struct tol_place place = tol_place_of_buffer(buffer);
    MUST(tol_buffer_fill_at(buffer, 0, 7, 1, 64 * KIB));
    MUST_FAIL(tol_transfer_read(transfer, place, 0, back, 64 * KIB), TOL_INVALID_ARGUMENT,
              "piece 3 of 16");
    cr_assert_eq(stats_of(transfer).retries, 0);
    MUST(tol_transfer_read(transfer, place, 0, back, 64 * KIB));
    for (size_t i = 0; i < 64 * KIB; i++) cr_assert_eq(back[i], 7);
    tol_interpose_remove(test_driver());
    free(back);
}

Test(transfer, a_device_that_hangs_is_a_timeout_and_its_blocks_stay, .fini = test_end,
     .timeout = 60) {
    static const struct tol_interpose_rule rule = {
        .function = "cuEventQuery", .action = TOL_INTERPOSE_FAIL, .result = CUDA_ERROR_NOT_READY};
    struct tol_context *context = context_with(&rule);
    struct tol_transfer_options options;
    tol_transfer_default(&options);
    options.deadline_ms = 20;
    options.threads = 1;
    options.block_bytes = 4 * KIB;
    struct tol_transfer *transfer = NULL;
    MUST(tol_transfer_create(context, &options, &transfer));
    tol_auto_buffer struct tol_buffer *buffer = new_buffer(context, 64 * KIB);
    unsigned char *data = new_pattern(64 * KIB, 3), *back = calloc(1, 64 * KIB);
    struct tol_place place = tol_place_of_buffer(buffer);
    MUST_FAIL(tol_transfer_write(transfer, place, 0, data, 64 * KIB), TOL_TIMEOUT, "20 ms");
    uint64_t pinned = stats_of(transfer).pinned_bytes;
    MUST_FAIL(tol_transfer_write(transfer, place, 0, data, 64 * KIB), TOL_TIMEOUT, "20 ms");
    cr_assert(stats_of(transfer).pinned_bytes > pinned, "a block was used under a copy");
    /* The device comes back, and so do all blocks. */
    tol_interpose_remove(test_driver());
    MUST(tol_transfer_write(transfer, place, 0, data, 64 * KIB));
    pinned = stats_of(transfer).pinned_bytes;
    MUST(tol_transfer_read(transfer, place, 0, back, 64 * KIB));
    cr_assert(memcmp(data, back, 64 * KIB) == 0);
    cr_assert_eq(stats_of(transfer).pinned_bytes, pinned);
    tol_transfer_destroy(transfer);
    free(data);
    free(back);
}

/* ---- threads ---- */

static struct tol_transfer *shared;

static void *copy_there_and_back(void *argument) {
    const unsigned seed = (unsigned)(uintptr_t)argument;
    const size_t bytes = 700 * KIB + 13 * seed;
    struct tol_buffer *buffer = new_buffer(test_context(), bytes);
    unsigned char *data = new_pattern(bytes, seed), *back = malloc(bytes);
    for (int i = 0; i < 8; i++) {
        data[i] = (unsigned char)i;
        MUST(tol_transfer_write(shared, tol_place_of_buffer(buffer), 0, data, bytes));
        memset(back, 0, bytes);
        MUST(tol_transfer_read(shared, tol_place_of_buffer(buffer), 0, back, bytes));
        cr_assert(memcmp(data, back, bytes) == 0, "thread %u, turn %d", seed, i);
    }
    tol_buffer_destroy(buffer);
    free(data);
    free(back);
    return NULL;
}

Test(transfer, threads_share_one, .fini = test_end, .timeout = 120) {
    pthread_t threads[6];
    shared = new_transfer(test_context(), 32 * KIB, 3);
    for (uintptr_t i = 0; i < 6; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, copy_there_and_back, (void *)i), 0);
    }
    for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
    cr_assert(stats_of(shared).pinned_bytes <= 2 * 4 * 32 * KIB);
    tol_transfer_destroy(shared);
}

/* ---- between devices ---- */

static void refuse_peers(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index == TOL_DRIVER_INDEX_cuDeviceCanAccessPeer) {
        **(int *const *)call->arguments[0] = 0;
    }
}

static void check_peers(bool is_direct, const struct tol_interpose_options *options) {
    if (!test_on_gpu()) setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    struct tol_driver *driver = test_driver();
    tol_auto_context struct tol_context *second = NULL;
    int count = 0;
    MUST(tol_device_count(driver, &count));
    if (count < 2) cr_skip_test("one device only");
    if (options != NULL) MUST(tol_interpose_install(driver, options));
    MUST(tol_context_create(driver, 1, &second));
    static const size_t sizes[] = {1, 32 * KIB, 32 * KIB + 1, 333 * KIB};
    tol_auto_transfer struct tol_transfer *to = new_transfer(test_context(), 32 * KIB, 2);
    tol_auto_transfer struct tol_transfer *from = new_transfer(second, 32 * KIB, 2);
    tol_auto_buffer struct tol_buffer *there = new_buffer(test_context(), 400 * KIB);
    tol_auto_buffer struct tol_buffer *here = new_buffer(second, 400 * KIB);
    for (size_t i = 0; i < 4; i++) {
        unsigned char *data = new_pattern(sizes[i], (unsigned)i), *back = calloc(1, sizes[i]);
        MUST(tol_buffer_fill_at(there, 0, 0, 1, 400 * KIB));
        MUST(tol_buffer_write_at(here, 5, data, sizes[i]));
        MUST(tol_transfer_peer(to, tol_place_of_buffer(there), 9, from, tol_place_of_buffer(here),
                               5, sizes[i]));
        MUST(tol_buffer_read_at(there, 9, back, sizes[i]));
        cr_assert(memcmp(data, back, sizes[i]) == 0, "%zu bytes", sizes[i]);
        free(data);
        free(back);
    }
    MUST_FAIL(tol_transfer_peer(to, tol_place_of_buffer(there), 0, from, tol_place_of_buffer(here),
                                400 * KIB, 1),
              TOL_OUT_OF_RANGE, "1 bytes");
    MUST(tol_transfer_peer(to, tol_place_of_buffer(there), 0, to, tol_place_of_buffer(there), 100,
                           100)); /* one device is its own peer */
    struct tol_transfer_stats stats = stats_of(to);
    cr_assert_eq(stats.peer_direct, is_direct ? 4 : 0);
    cr_assert_eq(stats.peer_through_host, is_direct ? 0 : 4);
    if (options != NULL) tol_interpose_remove(driver);
}

Test(transfer, devices_that_reach_each_other_copy_directly, .fini = test_end) {
    check_peers(true, NULL);
}

Test(transfer, devices_that_do_not_copy_through_the_host, .fini = test_end) {
    check_peers(false, &(struct tol_interpose_options){.after = refuse_peers});
}

Test(transfer, devices_whose_access_is_refused_copy_through_the_host, .fini = test_end) {
    static const struct tol_interpose_rule rule = {.function = "cuCtxEnablePeerAccess",
                                                   .action = TOL_INTERPOSE_FAIL,
                                                   .result = CUDA_ERROR_TOO_MANY_PEERS};
    check_peers(false, &(struct tol_interpose_options){.rules = &rule, .rule_count = 1});
}

Test(transfer, access_between_devices_is_asked_for_once, .fini = test_end) {
    static const struct tol_interpose_options counts = {.before = NULL};
    check_peers(true, &counts);
    cr_assert_eq(tol_interpose_count(TOL_DRIVER_INDEX_cuDeviceCanAccessPeer), 1);
    cr_assert_eq(tol_interpose_count(TOL_DRIVER_INDEX_cuCtxEnablePeerAccess), 1);
    cr_assert_eq(tol_interpose_count(TOL_DRIVER_INDEX_cuMemcpyPeerAsync), 4);
}

Test(transfer, blocks_of_a_pool_are_places, .fini = test_end) {
    tol_auto_pool struct tol_pool *pool = NULL;
    tol_auto_transfer struct tol_transfer *transfer = new_transfer(test_context(), 4 * KIB, 1);
    struct tol_block block;
    char data[300] = "in a pool", back[300];
    MUST(tol_pool_create(test_context(), NULL, &pool));
    MUST(tol_pool_allocate(pool, 300, NULL, &block));
    struct tol_place place = tol_place_of_block(pool, block);
    cr_assert_eq(place.bytes, 300);
    MUST(tol_transfer_write(transfer, place, 0, data, 300));
    MUST(tol_transfer_read(transfer, place, 0, back, 300));
    cr_assert(memcmp(data, back, 300) == 0);
    MUST_FAIL(tol_transfer_write(transfer, place, 1, data, 300), TOL_OUT_OF_RANGE, "300");
    MUST(tol_pool_free(pool, block, NULL));
    cr_assert_eq(tol_place_of_block(pool, block).bytes, 0);
}

/*
 * Asynchronous copies: in order, complete, and never from memory that is gone.
 */
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

TestSuite(copy, .fini = test_end);

static struct tol_stream *stream;
static struct tol_buffer *buffer;
static struct tol_pinned *pinned;

enum { BYTES = 100000 };

static void begin(void) {
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_buffer_create(test_context(), BYTES, 1, &buffer));
    MUST(tol_pinned_create(test_context(), BYTES, &pinned));
    cr_assert(tol_pinned_bytes(pinned) == BYTES);
}

static void end(void) {
    tol_pinned_destroy(pinned);
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
}

static unsigned char *access_pinned(void) {
    void *data = NULL;
    MUST(tol_pinned_access(pinned, &data));
    return data;
}

Test(copy, bytes_survive_the_round_trip) {
    begin();
    unsigned char *data = access_pinned();
    for (int i = 0; i < BYTES; i++) data[i] = (unsigned char)(i * 11);
    MUST(tol_copy_to_device(stream, buffer, 0, pinned, 0, BYTES));
    data = access_pinned(); /* waits, or the next line would change what is being copied */
    memset(data, 0, BYTES);
    MUST(tol_copy_to_host(stream, pinned, 0, buffer, 0, BYTES));
    data = access_pinned();
    for (int i = 0; i < BYTES; i++) cr_assert(data[i] == (unsigned char)(i * 11), "byte %d", i);
    end();
}

/* The source is overwritten right after each call: what arrives is what was there at the call. */
Test(copy, a_pageable_source_is_free_at_once) {
    begin();
    unsigned char *source = malloc(BYTES), *back = malloc(BYTES);
    for (int turn = 1; turn <= 20; turn++) {
        memset(source, turn, BYTES);
        MUST(tol_copy_from_pageable(stream, buffer, 0, source, BYTES));
        memset(source, 0xff, BYTES);
        MUST(tol_stream_synchronize(stream));
        MUST(tol_buffer_read(buffer, back, BYTES));
        for (int i = 0; i < BYTES; i++) cr_assert(back[i] == turn);
    }
    /* Several at once, each to its own place. */
    for (int part = 0; part < 10; part++) {
        memset(source, part, BYTES / 10);
        MUST(tol_copy_from_pageable(stream, buffer, (size_t)part * (BYTES / 10), source,
                                    BYTES / 10));
    }
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(buffer, back, BYTES));
    for (int i = 0; i < BYTES; i++) cr_assert(back[i] == i / (BYTES / 10));
    free(source);
    free(back);
    end();
}

Test(copy, works_in_the_order_queued) {
    begin();
    struct tol_buffer *other = NULL;
    MUST(tol_buffer_create(test_context(), BYTES, 1, &other));
    MUST(tol_copy_fill(stream, buffer, 0, 1, 1, BYTES));
    MUST(tol_copy_on_device(stream, other, 0, buffer, 0, BYTES));
    MUST(tol_copy_fill(stream, buffer, 0, 2, 1, BYTES));
    MUST(tol_copy_to_host(stream, pinned, 0, other, 0, BYTES));
    const unsigned char *data = access_pinned();
    for (int i = 0; i < BYTES; i++) cr_assert(data[i] == 1);
    tol_buffer_destroy(other);
    end();
}

Test(copy, fills_of_every_width) {
    begin();
    MUST(tol_copy_fill(stream, buffer, 0, 0x01020304, 4, BYTES / 4));
    MUST(tol_copy_fill(stream, buffer, 4, 0x0506, 2, 1));
    MUST(tol_copy_fill(stream, buffer, 6, 0x07, 1, 1));
    MUST(tol_copy_to_host(stream, pinned, 0, buffer, 0, 12));
    const unsigned char *data = access_pinned();
    cr_assert(memcmp(data, "\4\3\2\1\6\5\7\1\4\3\2\1", 12) == 0);
    MUST_FAIL(tol_copy_fill(stream, buffer, 1, 0, 2, 1), TOL_INVALID_ARGUMENT, "not a multiple");
    MUST_FAIL(tol_copy_fill(stream, buffer, 0, 0, 3, 1), TOL_INVALID_ARGUMENT, "not 3");
    end();
}

Test(copy, ranges_are_checked_before_anything_is_queued) {
    begin();
    char source[8] = {0};
    struct tol_buffer *other = NULL;
    MUST(tol_buffer_create(test_context(), 8, 1, &other));
    MUST_FAIL(tol_copy_to_device(stream, buffer, 1, pinned, 0, BYTES), TOL_OUT_OF_RANGE, "buffer");
    MUST_FAIL(tol_copy_to_device(stream, buffer, 0, pinned, BYTES, 1), TOL_OUT_OF_RANGE, "pinned");
    MUST_FAIL(tol_copy_to_host(stream, pinned, SIZE_MAX, buffer, 0, 2), TOL_OUT_OF_RANGE, "pinned");
    MUST_FAIL(tol_copy_to_host(stream, pinned, 0, buffer, BYTES, 1), TOL_OUT_OF_RANGE, "buffer");
    MUST_FAIL(tol_copy_from_pageable(stream, other, 1, source, 8), TOL_OUT_OF_RANGE, "buffer");
    MUST_FAIL(tol_copy_on_device(stream, other, 0, buffer, 0, 9), TOL_OUT_OF_RANGE, "buffer");
    MUST_FAIL(tol_copy_fill(stream, other, 0, 0, 1, 9), TOL_OUT_OF_RANGE, "elements");
    MUST(tol_copy_to_device(stream, buffer, BYTES, pinned, BYTES, 0));
    MUST(tol_copy_to_host(stream, pinned, 0, buffer, 0, 0));
    MUST(tol_copy_from_pageable(stream, other, 8, source, 0));
    MUST(tol_copy_on_device(stream, other, 0, buffer, 0, 0));
    MUST(tol_copy_fill(stream, other, 8, 0, 1, 0));
    tol_buffer_destroy(other);
    end();
}

Test(copy, null_is_refused) {
    begin();
    struct tol_pinned *block = NULL;
    void *data = NULL;
    MUST_FAIL(tol_copy_to_device(NULL, buffer, 0, pinned, 0, 1), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_copy_to_device(stream, NULL, 0, pinned, 0, 1), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_copy_to_host(stream, NULL, 0, buffer, 0, 1), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_copy_from_pageable(stream, buffer, 0, NULL, 1), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_copy_on_device(stream, buffer, 0, NULL, 0, 1), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_copy_fill(NULL, buffer, 0, 0, 1, 1), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_pinned_create(test_context(), 0, &block), TOL_INVALID_ARGUMENT,
              "size of a pinned block is 0");
    MUST_FAIL(tol_pinned_create(NULL, 1, &block), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_pinned_access(NULL, &data), TOL_INVALID_ARGUMENT, "NULL");
    end();
}

/* A pinned block that two streams use waits for both. */
Test(copy, access_waits_for_every_stream) {
    begin();
    struct tol_stream *second = NULL;
    struct tol_buffer *other = NULL;
    MUST(tol_stream_create(test_context(), NULL, &second));
    MUST(tol_buffer_create(test_context(), BYTES / 2, 1, &other));
    MUST(tol_buffer_fill_at(buffer, 0, 3, 1, BYTES));
    MUST(tol_buffer_fill_at(other, 0, 4, 1, BYTES / 2));
    MUST(tol_context_synchronize(test_context(), TOL_DEADLINE_MS));
    for (int turn = 0; turn < 50; turn++) {
        memset(access_pinned(), 0, BYTES);
        MUST(tol_copy_to_host(stream, pinned, 0, buffer, 0, BYTES / 2));
        MUST(tol_copy_to_host(second, pinned, BYTES / 2, other, 0, BYTES / 2));
        const unsigned char *data = access_pinned();
        for (int i = 0; i < BYTES; i++) cr_assert(data[i] == (i < BYTES / 2 ? 3 : 4));
    }
    tol_stream_destroy(second);
    tol_buffer_destroy(other);
    end();
}

/* Milestone M12 of specification 004, without a clock: a kernel runs until the host says stop, and
 * a copy in either direction is done before that. */
Test(copy, m12_copies_are_done_while_a_kernel_runs, .timeout = 60) {
    struct tol_kernel *spin = test_kernel("spin");
    struct tol_stream *busy = NULL;
    struct tol_pinned *flag = NULL;
    void *stop = NULL;
    begin();
    MUST(tol_stream_create(test_context(), NULL, &busy));
    MUST(tol_pinned_create(test_context(), sizeof(unsigned), &flag));
    MUST(tol_pinned_access(flag, &stop));
    *(volatile unsigned *)stop = 0;
    memset(access_pinned(), 7, BYTES);
    MUST(tol_launch(busy, spin, tol_launch_linear(1, 1),
                    TOL_ARGUMENTS((CUdeviceptr)(uintptr_t)stop)));
    MUST(tol_copy_to_device(stream, buffer, 0, pinned, 0, BYTES));
    MUST(tol_stream_synchronize(stream));
    memset(access_pinned(), 0, BYTES);
    MUST(tol_copy_to_host(stream, pinned, 0, buffer, 0, BYTES));
    MUST(tol_stream_synchronize(stream));
    cr_assert_eq(tol_stream_query(busy), TOL_NOT_READY, "the kernel ended before the copies");
    *(volatile unsigned *)stop = 1;
    MUST(tol_stream_synchronize(busy));
    const unsigned char *data = access_pinned();
    for (int i = 0; i < BYTES; i++) cr_assert_eq(data[i], 7, "byte %d", i);
    tol_pinned_destroy(flag);
    tol_stream_destroy(busy);
    end();
}

/* Destroying a block right after queueing a copy from it: the copy still has its bytes. */
Test(copy, destroying_a_block_waits_for_its_copies) {
    unsigned char *back = malloc(BYTES);
    begin();
    for (int turn = 1; turn <= 10; turn++) {
        struct tol_pinned *block = NULL;
        void *data = NULL;
        MUST(tol_pinned_create(test_context(), BYTES, &block));
        MUST(tol_pinned_access(block, &data));
        memset(data, turn, BYTES);
        MUST(tol_copy_to_device(stream, buffer, 0, block, 0, BYTES));
        tol_pinned_destroy(block);
        MUST(tol_buffer_read(buffer, back, BYTES));
        for (int i = 0; i < BYTES; i++) cr_assert(back[i] == turn);
    }
    end();
    free(back);
}

Test(copy, a_destroyed_block_is_refused) {
    begin();
    void *data = NULL;
    struct tol_pinned *block = NULL;
    MUST(tol_pinned_create(test_context(), 8, &block));
    tol_pinned_destroy(block);
    MUST_FAIL(tol_copy_to_device(stream, buffer, 0, block, 0, 1), TOL_INVALID_ARGUMENT,
              "destroyed");
    MUST_FAIL(tol_copy_to_host(stream, block, 0, buffer, 0, 1), TOL_INVALID_ARGUMENT, "destroyed");
    MUST_FAIL(tol_pinned_access(block, &data), TOL_INVALID_ARGUMENT, "destroyed");
    cr_assert(tol_pinned_bytes(block) == 0);
    tol_pinned_destroy(block);
    end();
}

/* ---- blocks of staging ---- */

static CUresult refuses; /* what registering memory answers */

static void refuse_registering(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (refuses == CUDA_SUCCESS || call->index != TOL_DRIVER_INDEX_cuMemHostRegister_v2) return;
    call->forward = false;
    call->result = refuses;
}

/* Bytes go there and back by turns, in huge pages or, where memory cannot be registered, in others.
 */
static void try_staging(size_t bytes) {
    struct tol_pinned *block = NULL;
    struct tol_buffer *there = NULL;
    struct tol_stream *queue = NULL;
    void *data = NULL;
    MUST(tol_stream_create(test_context(), NULL, &queue));
    MUST(tol_buffer_create(test_context(), bytes, 1, &there));
    MUST(tol_pinned_create_huge(test_context(), bytes, &block));
    cr_assert(tol_pinned_bytes(block) == bytes);
    for (int turn = 1; turn < 4; turn++) {
        MUST(tol_pinned_await(block, &data));
        memset(data, turn, bytes);
        MUST(tol_copy_to_device(queue, there, 0, block, 0, bytes));
        MUST(tol_pinned_await(block, &data));
        memset(data, 0, bytes);
        MUST(tol_copy_to_host(queue, block, 0, there, 0, bytes));
        MUST(tol_pinned_await(block, &data));
        cr_assert(((char *)data)[0] == turn && ((char *)data)[bytes - 1] == turn);
    }
    cr_assert(refuses != CUDA_SUCCESS || (uintptr_t)data % (2 << 20) == 0);
    MUST(tol_copy_to_device(queue, there, 0, block, 0, bytes));
    tol_pinned_destroy(block); /* waits for its copy */
    tol_pinned_destroy(NULL);
    tol_buffer_destroy(there);
    tol_stream_destroy(queue);
}

Test(copy, a_block_of_staging_is_used_by_turns) {
    struct tol_health before, after;
    struct tol_pinned *block = NULL;
    MUST(tol_interpose_install(test_driver(),
                               &(struct tol_interpose_options){.before = refuse_registering}));
    MUST(tol_health_check(test_context(), NULL, &before));
    try_staging(5000);
    try_staging((2 << 20) + 1);
    refuses = CUDA_ERROR_NOT_SUPPORTED;
    try_staging(5000);
    refuses = CUDA_ERROR_OUT_OF_MEMORY;
    MUST_FAIL(tol_pinned_create_huge(test_context(), 5000, &block), TOL_OUT_OF_HOST_MEMORY,
              "pinning 5000 bytes");
    refuses = CUDA_SUCCESS;
    MUST_FAIL(tol_pinned_create_huge(test_context(), 0, &block), TOL_INVALID_ARGUMENT, "is 0");
    MUST(tol_health_check(test_context(), NULL, &after));
    cr_assert(after.held[TOL_HELD_PINNED].bytes == before.held[TOL_HELD_PINNED].bytes);
    cr_assert(block == NULL);
    tol_interpose_remove(test_driver());
}

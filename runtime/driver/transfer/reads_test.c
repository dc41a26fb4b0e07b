/*
 * Copies to the host: their bytes, the bytes around them, and failures.
 */
#include "test/test_device.h"
#include "tollens/auto.h"
#include "transfer_state.h"

#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)

enum { BYTES_MAX = 900 << 10 };

static struct tol_transfer *new_transfer(unsigned threads) {
    struct tol_transfer_options options;
    struct tol_transfer *transfer = NULL;
    tol_transfer_default(&options);
    options.block_bytes = 64 * KIB;
    options.first_bytes = 8 * KIB;
    options.streamed_bytes = 0;
    options.threads = threads;
    options.spinners = threads - 1;
    options.spin_us = 50;
    MUST(tol_transfer_create(test_context(), &options, &transfer));
    return transfer;
}

static unsigned char byte_at(size_t i) {
    return (unsigned char)(i * 37 + (i >> 11) + 1);
}

/* A buffer of BYTES_MAX bytes that byte_at gives. */
static struct tol_buffer *make_source(void) {
    struct tol_buffer *buffer = NULL;
    unsigned char *data = malloc(BYTES_MAX);
    for (size_t i = 0; i < BYTES_MAX; i++) data[i] = byte_at(i);
    MUST(tol_buffer_create(test_context(), BYTES_MAX, 1, &buffer));
    MUST(tol_buffer_write(buffer, data, BYTES_MAX));
    free(data);
    return buffer;
}

static void check_bytes(const unsigned char *back, size_t offset, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        cr_assert(back[i] == byte_at(offset + i), "byte %zu of %zu", i, bytes);
    }
}

static void check(struct tol_transfer *transfer, struct tol_buffer *buffer, size_t offset,
                  size_t bytes) {
    unsigned char *back = malloc(bytes + 2);
    memset(back, 0xaa, bytes + 2);
    MUST(tol_transfer_read(transfer, tol_place_of_buffer(buffer), offset, back + 1, bytes));
    check_bytes(back + 1, offset, bytes);
    cr_assert(back[0] == 0xaa && back[bytes + 1] == 0xaa, "a copy of %zu bytes wrote beside it",
              bytes);
    free(back);
}

/* Two copies in one piece, and one in a piece of its own. */
static void check_batch(struct tol_transfer *transfer, struct tol_buffer *buffer) {
    enum { SMALL = 5000, LARGE = 70001 };
    unsigned char *back = malloc(2 * SMALL + LARGE);
    const struct tol_place place = tol_place_of_buffer(buffer);
    const struct tol_transfer_item items[] = {{place, 3, back, SMALL},
                                              {place, 100000, back + SMALL, SMALL},
                                              {place, 7, back + SMALL + SMALL, LARGE}};
    MUST(tol_transfer_read_batch(transfer, 3, items));
    check_bytes(back, 3, SMALL);
    check_bytes(back + SMALL, 100000, SMALL);
    check_bytes(back + SMALL + SMALL, 7, LARGE);
    free(back);
}

Test(reads, give_the_same_bytes_and_write_nothing_beside, .fini = test_end, .timeout = 120) {
    static const unsigned threads[] = {1, 2, 4};
    static const size_t sizes[] = {1,      4095,      8 * KIB,       8 * KIB + 1,
                                   100003, 300 * KIB, 850 * KIB + 13};
    tol_auto_buffer struct tol_buffer *buffer = make_source();
    for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
        tol_auto_transfer struct tol_transfer *transfer = new_transfer(threads[t]);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            check(transfer, buffer, i % 5, sizes[i]);
        }
        check_batch(transfer, buffer);
    }
}

/* ---- failures ---- */

static size_t fails_at;

static CUresult queue_until(const void *copy, size_t piece, char *stage,
                            const struct tol_driver_table *driver, CUstream stream) {
    const struct tol_buffer *buffer = copy;
    if (piece == fails_at) return CUDA_ERROR_INVALID_VALUE;
    return driver->cuMemcpyDtoHAsync_v2(stage, tol_buffer_address(buffer), 4096, stream);
}

static void unpack_nothing(const void *copy, size_t piece, size_t part, const char *stage) {
    (void)copy, (void)piece, (void)part, (void)stage;
}

/* A failed copy returns its error and loses no block, and the next copy is right. */
Test(reads, a_piece_that_fails_ends_the_copy_and_no_other, .fini = test_end, .timeout = 120) {
    tol_auto_buffer struct tol_buffer *buffer = make_source();
    tol_auto_transfer struct tol_transfer *transfer = new_transfer(3);
    for (fails_at = 0; fails_at < 8; fails_at += 3) {
        struct tol_pieces pieces = {.transfer = transfer,
                                    .count = 8,
                                    .parts = 2,
                                    .helpers = 2,
                                    .copy = buffer,
                                    .call = "cuMemcpyDtoHAsync_v2",
                                    .queue = queue_until,
                                    .unpack = unpack_nothing};
        MUST_FAIL(tol_pieces_run(&pieces), TOL_INVALID_ARGUMENT, "of 8 of a copy");
        cr_assert(strstr(tol_message(), "cuMemcpyDtoHAsync_v2") != NULL, "%s", tol_message());
    }
    check(transfer, buffer, 2, 600 * KIB);
    cr_assert(transfer->stages.count <= TOL_TRANSFER_BLOCKS, "%u blocks, so some are lost",
              transfer->stages.count);
}

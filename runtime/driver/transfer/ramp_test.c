/*
 * Copies whose first pieces are small, packed and unpacked either way, by threads that spin.
 */
#include "test/test_device.h"
#include "tollens/auto.h"
#include "transfer_state.h"

#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)

static const enum tol_transfer_pack ways[] = {TOL_TRANSFER_STREAMED, TOL_TRANSFER_CACHED};

static struct tol_transfer *transfer_of(size_t block, size_t first, enum tol_transfer_pack way) {
    struct tol_transfer_options options;
    struct tol_transfer *transfer = NULL;
    tol_transfer_default(&options);
    options.block_bytes = block;
    options.first_bytes = first;
    options.pack = options.unpack = way;
    options.streamed_bytes = 0;
    options.threads = 3;
    options.spinners = 1;
    options.spin_us = 50;
    MUST(tol_transfer_create(test_context(), &options, &transfer));
    return transfer;
}

/* There and back, and nothing beside it. Returns the pieces of one way. */
static uint64_t check(struct tol_transfer *transfer, struct tol_buffer *buffer, size_t bytes) {
    struct tol_transfer_stats before, after;
    const struct tol_place place = tol_place_of_buffer(buffer);
    unsigned char *data = malloc(bytes), *back = malloc(bytes + 2), edge[2] = {0};
    for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)(i * 37 + (i >> 11) + bytes);
    memset(back, 0xaa, bytes + 2);
    MUST(tol_buffer_fill_at(buffer, 0, 0xbb, 1, bytes + 2));
    MUST(tol_transfer_stats(transfer, &before));
    MUST(tol_transfer_write(transfer, place, 1, data, bytes));
    MUST(tol_transfer_stats(transfer, &after));
    MUST(tol_transfer_read(transfer, place, 1, back + 1, bytes));
    cr_assert(memcmp(data, back + 1, bytes) == 0, "%zu bytes differ", bytes);
    cr_assert(back[0] == 0xaa && back[bytes + 1] == 0xaa, "%zu bytes: host memory beside", bytes);
    MUST(tol_buffer_read_at(buffer, 0, &edge[0], 1));
    MUST(tol_buffer_read_at(buffer, bytes + 1, &edge[1], 1));
    cr_assert(edge[0] == 0xbb && edge[1] == 0xbb, "%zu bytes: device memory beside", bytes);
    free(data);
    free(back);
    return after.pieces - before.pieces;
}

Test(ramp, small_pieces_come_first_and_all_arrive, .fini = test_end, .timeout = 120) {
    static const struct {
        size_t bytes;
        uint64_t pieces; /* of 4, 8, 16, 32, 64, 64 ... KiB */
    } cases[] = {{1, 1},
                 {4 * KIB, 1},
                 {4 * KIB + 1, 2},
                 {12 * KIB, 2},
                 {12 * KIB + 1, 3},
                 {60 * KIB - 1, 4},
                 {60 * KIB, 4},
                 {60 * KIB + 1, 5},
                 {124 * KIB, 5},
                 {124 * KIB + 1, 6},
                 {333 * KIB + 7, 9},
                 {700 * KIB + 1, 15}};
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    MUST(tol_buffer_create(test_context(), 800 * KIB, 1, &buffer));
    for (size_t way = 0; way < 2; way++) {
        tol_auto_transfer struct tol_transfer *transfer = transfer_of(64 * KIB, 4 * KIB, ways[way]);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            const uint64_t pieces = check(transfer, buffer, cases[i].bytes);
            cr_assert_eq(pieces, cases[i].pieces, "%zu bytes: %llu pieces", cases[i].bytes,
                         (unsigned long long)pieces);
        }
    }
}

/* First pieces that are not smaller are pieces like the others, and odd sizes are sizes. */
Test(ramp, any_size_of_the_first_piece_will_do, .fini = test_end, .timeout = 120) {
    static const size_t firsts[] = {0, 1, 4099, 64 * KIB, 64 * KIB + 1, SIZE_MAX};
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    MUST(tol_buffer_create(test_context(), 800 * KIB, 1, &buffer));
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        tol_auto_transfer struct tol_transfer *transfer =
            transfer_of(64 * KIB, firsts[i], TOL_TRANSFER_STREAMED);
        (void)check(transfer, buffer, 300 * KIB + 5);
    }
}

Test(ramp, ways_that_do_not_exist_are_refused, .fini = test_end) {
    struct tol_transfer_options options;
    struct tol_transfer *transfer = NULL;
    tol_transfer_default(&options);
    options.pack = (enum tol_transfer_pack)2;
    MUST_FAIL(tol_transfer_create(test_context(), &options, &transfer), TOL_INVALID_ARGUMENT,
              "pack is 2");
    options.pack = TOL_TRANSFER_CACHED;
    options.unpack = (enum tol_transfer_pack)7;
    MUST_FAIL(tol_transfer_create(test_context(), &options, &transfer), TOL_INVALID_ARGUMENT,
              "unpack 7");
}

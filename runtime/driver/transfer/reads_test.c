/*
 * Copies to the host by each design: their bytes, what is beside them, their failures, and who did
 * what.
 */
#include "test/test_device.h"
#include "tollens/auto.h"
#include "transfer_state.h"

#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)

enum { BYTES_MAX = 900 << 10, DESIGNS = TOL_READ_COPIES * 3 * 8 };

/* All mixtures: how to copy, the size of parts, and who leads. */
static struct tol_read_design design_of(unsigned number) {
    static const size_t parts[] = {0, 4 * KIB, 16 * KIB + 4};
    struct tol_read_design design;
    tol_read_design_default(&design);
    design.copy = (enum tol_read_copy)(number % TOL_READ_COPIES);
    number /= TOL_READ_COPIES;
    design.part_bytes = parts[number % 3];
    number /= 3;
    design.queues_first = number & 1;
    design.leads_only = number >> 1 & 1;
    design.shares_asking = number >> 2 & 1;
    design.piece_bytes = number & 1 ? 32 * KIB : 512 * KIB;
    design.helper_bytes = number & 2 ? 16 * KIB : 1024 * KIB;
    return design;
}

static struct tol_transfer *transfer_of(const struct tol_read_design *design, unsigned threads) {
    struct tol_transfer_options options;
    struct tol_transfer *transfer = NULL;
    tol_transfer_default(&options);
    options.block_bytes = 64 * KIB;
    options.first_bytes = 8 * KIB;
    options.streamed_bytes = 0;
    options.threads = threads;
    options.spinners = 1;
    options.spin_us = 50;
    MUST(tol_transfer_create(test_context(), &options, &transfer));
    transfer->reads = *design;
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

static void check_bytes(const unsigned char *back, size_t offset, size_t bytes, unsigned design) {
    for (size_t i = 0; i < bytes; i++) {
        cr_assert(back[i] == byte_at(offset + i), "design %u: byte %zu of %zu", design, i, bytes);
    }
}

static void check(struct tol_transfer *transfer, struct tol_buffer *buffer, size_t offset,
                  size_t bytes, unsigned design) {
    unsigned char *back = malloc(bytes + 2);
    memset(back, 0xaa, bytes + 2);
    MUST(tol_transfer_read(transfer, tol_place_of_buffer(buffer), offset, back + 1, bytes));
    check_bytes(back + 1, offset, bytes, design);
    cr_assert(back[0] == 0xaa && back[bytes + 1] == 0xaa, "design %u: beside %zu bytes", design,
              bytes);
    free(back);
}

/* Two copies that share a block's piece, and one that is alone. */
static void check_batch(struct tol_transfer *transfer, struct tol_buffer *buffer, unsigned design) {
    enum { SMALL = 5000, LARGE = 70001 };
    unsigned char *back = malloc(2 * SMALL + LARGE);
    const struct tol_place place = tol_place_of_buffer(buffer);
    const struct tol_transfer_item items[] = {{place, 3, back, SMALL},
                                              {place, 100000, back + SMALL, SMALL},
                                              {place, 7, back + SMALL + SMALL, LARGE}};
    MUST(tol_transfer_read_batch(transfer, 3, items));
    check_bytes(back, 3, SMALL, design);
    check_bytes(back + SMALL, 100000, SMALL, design);
    check_bytes(back + SMALL + SMALL, 7, LARGE, design);
    free(back);
}

Test(reads, each_design_gives_the_same_bytes_and_writes_nothing_beside, .fini = test_end,
     .timeout = 300) {
    static const size_t sizes[] = {1,      4095,      8 * KIB,       8 * KIB + 1,
                                   100003, 300 * KIB, 850 * KIB + 13};
    tol_auto_buffer struct tol_buffer *buffer = make_source();
    for (unsigned number = 0; number < DESIGNS; number++) {
        const struct tol_read_design design = design_of(number);
        tol_auto_transfer struct tol_transfer *transfer = transfer_of(&design, 4);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            check(transfer, buffer, number % 5, sizes[i], number);
        }
        check_batch(transfer, buffer, number);
    }
}

/* Wherever both sides begin: also 16 bytes behind a page, where malloc puts large memory. */
Test(reads, each_way_copies_all_bytes_and_none_beside) {
    enum { PAGE = 4096, MOST = 3 * PAGE };
    static const size_t sizes[] = {0, 1, 63, 64, 65, 1087, 1088, 4095, 4096, 4097, 10001};
    static const size_t begins[] = {1, 16, 48, 63, 64, 4080, 4096};
    static _Alignas(4096) unsigned char from[MOST + PAGE], to[MOST + PAGE];
    for (size_t i = 0; i < sizeof from; i++) from[i] = byte_at(i);
    for (unsigned copy = TOL_READ_AS_OPTIONS + 1; copy < TOL_READ_COPIES; copy++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            for (size_t j = 0; j < sizeof begins / sizeof begins[0]; j++) {
                const size_t begin = begins[j], bytes = sizes[i], source = j % 3 * 5;
                memset(to, 0, sizeof to);
                tol_read_copy_as((enum tol_read_copy)copy, to + begin, from + source, bytes);
                for (size_t k = 0; k < sizeof to; k++) {
                    const bool is_in = k >= begin && k - begin < bytes;
                    cr_assert(to[k] == (is_in ? byte_at(source + k - begin) : 0),
                              "way %u, %zu bytes to %zu: byte %zu", copy, bytes, begin, k);
                }
            }
        }
    }
}

/* Nobody else unpacks, so a caller that only leads must do it. */
Test(reads, a_caller_without_helpers_does_all, .fini = test_end, .timeout = 120) {
    tol_auto_buffer struct tol_buffer *buffer = make_source();
    for (unsigned number = 0; number < DESIGNS; number += TOL_READ_COPIES) {
        const struct tol_read_design design = design_of(number);
        tol_auto_transfer struct tol_transfer *transfer = transfer_of(&design, 1);
        check(transfer, buffer, 1, 850 * KIB, number);
    }
}

Test(reads, notes_say_who_unpacked, .fini = test_end, .timeout = 120) {
    enum { COPIES = 5 };
    tol_auto_buffer struct tol_buffer *buffer = make_source();
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        struct tol_read_design design;
        struct tol_read_notes notes = {0};
        tol_read_design_default(&design);
        design.helper_bytes = 64 * KIB;
        design.part_bytes = 8 * KIB;
        tol_auto_transfer struct tol_transfer *transfer = transfer_of(&design, threads);
        transfer->notes = &notes;
        /* Pieces of 8, 16, 32 and then 64 KiB, all of 8 parts, of which some have no bytes. */
        for (int i = 0; i < COPIES; i++) check(transfer, buffer, 0, 248 * KIB, 0);
        cr_assert_eq(notes.copies, COPIES);
        cr_assert_eq(notes.parts, COPIES * 6 * 8);
        cr_assert(notes.threads >= COPIES && notes.threads <= COPIES * threads);
        cr_assert(notes.caller_parts <= notes.parts);
        cr_assert(threads > 1 || notes.caller_parts == notes.parts);
        cr_assert(notes.arrival_ns > 0 && notes.arrival_ns < COPIES * (uint64_t)60000000000);
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

/* Goal: with each design a failed copy returns its error and loses no block, and the next copy is
 * right. */
Test(reads, a_piece_that_fails_ends_the_copy_and_no_other, .fini = test_end, .timeout = 120) {
    tol_auto_buffer struct tol_buffer *buffer = make_source();
    for (unsigned number = 0; number < DESIGNS; number += TOL_READ_COPIES) {
        const struct tol_read_design design = design_of(number);
        tol_auto_transfer struct tol_transfer *transfer = transfer_of(&design, 3);
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
        check(transfer, buffer, 2, 600 * KIB, number);
        cr_assert(transfer->stages.count <= TOL_TRANSFER_BLOCKS, "%u blocks, so some are lost",
                  transfer->stages.count);
    }
}

/*
 * The device's checksum: equal to the host's at every size and offset, and every flipped bit seen.
 */
#include "checksum/checksum.h"

#include "inputs.h"
#include "test/test_device.h"

#include <stdlib.h>

/* A little more than two chunks of a block, so that there are three. */
enum { CHUNK_BYTES = 128 << 10, BYTES = 2 * CHUNK_BYTES + 5000 };

static struct kn_kernels *kernels;
static struct kn_checksum *checksum;
static struct tol_transfer *transfer;
static struct tol_buffer *buffer;
static uint8_t *host;

static void begin(void) {
    uint64_t random = 11;
    MUST(kn_kernels_create(test_context(), &kernels));
    MUST(kn_checksum_create(kernels, &checksum));
    MUST(tol_transfer_create(test_context(), NULL, &transfer));
    MUST(tol_buffer_create(test_context(), BYTES, 1, &buffer));
    host = malloc(BYTES);
    cr_assert(host != NULL);
    for (size_t i = 0; i < BYTES; i++) host[i] = (uint8_t)(kn_random(&random) >> 24);
    MUST(tol_buffer_write(buffer, host, BYTES));
}

static void end(void) {
    free(host);
    tol_buffer_destroy(buffer);
    tol_transfer_destroy(transfer);
    kn_checksum_destroy(checksum);
    kn_kernels_destroy(kernels);
    test_end();
}

TestSuite(checksum, .fini = end, .timeout = 300);

static void must_agree(size_t offset, size_t bytes) {
    uint32_t sum = 1;
    MUST(kn_checksum_of(checksum, tol_place_of_buffer(buffer), offset, bytes, &sum));
    const uint32_t expected = kn_crc32c(host + offset, bytes, KN_CRC32C_TABLE);
    cr_assert_eq(sum, expected, "%zu bytes at %zu: %#x, not %#x", bytes, offset, sum, expected);
}

Test(checksum, the_device_computes_what_the_host_does_at_every_size) {
    begin();
    for (size_t bytes = 0; bytes <= 4097; bytes++) {
        /* Each size at one alignment, the smallest at all. */
        for (size_t offset = 0; offset < 4; offset++) {
            if (bytes >= 16 && offset != bytes / 3 % 4) continue;
            if (bytes >= 16 && !test_takes_trial()) continue;
            must_agree(offset, bytes);
        }
    }
}

Test(checksum, the_device_computes_what_the_host_does_over_several_blocks) {
    begin();
    for (int d = -5; d <= 5; d++) {
        must_agree(0, (size_t)(CHUNK_BYTES + d));
        must_agree(3, (size_t)(2 * CHUNK_BYTES + d));
    }
    must_agree(0, BYTES);
    must_agree(1, BYTES - 1);
}

/* Nothing is read outside of the range: the soft device reports reads of what was never written,
 * and neighbours must not matter. */
Test(checksum, neighbours_do_not_matter) {
    begin();
    for (size_t offset = 1; offset < 8; offset++) {
        for (size_t bytes = 1; bytes < 12; bytes++) {
            uint32_t before = 0, after = 0;
            const struct tol_place place = tol_place_of_buffer(buffer);
            MUST(kn_checksum_of(checksum, place, offset, bytes, &before));
            MUST(tol_buffer_fill_at(buffer, 0, 0xa5, 1, offset));
            MUST(tol_buffer_fill_at(buffer, offset + bytes, 0x5a, 1, 32));
            MUST(kn_checksum_of(checksum, place, offset, bytes, &after));
            cr_assert_eq(before, after, "%zu bytes at %zu", bytes, offset);
            MUST(tol_buffer_write(buffer, host, BYTES));
        }
    }
}

/* One bit of each kind of place: the head before the first whole word, the first and last row of a
 * chunk, each side of a chunk's border, every thread of a row, every bit of a word, the tail. */
Test(checksum, a_flipped_bit_is_seen_wherever_it_is) {
    begin();
    const size_t offset = 1, bytes = BYTES - 2;
    const struct tol_place place = tol_place_of_buffer(buffer);
    size_t at[400], count = 0;
    for (size_t i = 0; i < 8; i++) at[count++] = i;              /* head */
    for (size_t i = 0; i < 8; i++) at[count++] = bytes - 1 - i;  /* tail */
    for (size_t i = 0; i < 256; i++) at[count++] = 6000 + 4 * i; /* each thread's word */
    for (size_t i = 0; i < 16; i++) {
        at[count++] = bytes - CHUNK_BYTES - 8 + i; /* the borders of chunks */
        at[count++] = bytes - 2 * CHUNK_BYTES - 8 + i;
    }
    for (size_t i = 0; i < count; i++) {
        if (i >= 16 && !test_takes_trial()) continue;
        const size_t position = offset + at[i];
        const uint8_t wrong = (uint8_t)(host[position] ^ 1u << i % 8);
        MUST(tol_buffer_write_at(buffer, position, &wrong, 1));
        MUST_FAIL(kn_checksum_verify(checksum, place, offset, host + offset, bytes), TOL_MISMATCH,
                  "of 267142 bytes");
        MUST(tol_buffer_write_at(buffer, position, &host[position], 1));
    }
    for (unsigned bit = 0; bit < 32; bit++) {
        uint8_t wrong = (uint8_t)(host[40 + bit / 8] ^ 1u << bit % 8);
        MUST(tol_buffer_write_at(buffer, 40 + bit / 8, &wrong, 1));
        MUST_FAIL(kn_checksum_verify(checksum, place, 0, host, 80), TOL_MISMATCH, "80 bytes");
        MUST(tol_buffer_write_at(buffer, 40 + bit / 8, &host[40 + bit / 8], 1));
    }
    MUST(kn_checksum_verify(checksum, place, offset, host + offset, bytes));
}

static size_t flipped_at; /* in what a copy to the device carries, or SIZE_MAX */

static void flip(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuMemcpyHtoDAsync_v2) return;
    uint8_t *source = *(uint8_t *const *)call->arguments[1];
    if (flipped_at < *(const size_t *)call->arguments[2]) source[flipped_at] ^= 4;
}

/* The copy itself goes wrong: a bit of the staging block, which is not the caller's memory. */
Test(checksum, a_verified_copy_says_what_went_wrong) {
    MUST(tol_interpose_install(test_driver(), &(struct tol_interpose_options){.before = flip}));
    begin();
    char expected[64];
    uint8_t back[5000];
    const struct tol_place place = tol_place_of_buffer(buffer);
    flipped_at = SIZE_MAX;
    MUST(kn_checksum_write(checksum, transfer, place, 3, host, sizeof back));
    MUST(kn_checksum_read(checksum, transfer, place, 3, back, sizeof back));
    cr_assert(memcmp(back, host, sizeof back) == 0);
    flipped_at = 4321;
    MUST_FAIL(kn_checksum_write(checksum, transfer, place, 3, host, sizeof back), TOL_MISMATCH,
              "the CRC-32C of 5000 bytes is ");
    snprintf(expected, sizeof expected, "%#010x on the host",
             kn_crc32c(host, sizeof back, KN_CRC32C_TABLE));
    cr_assert(strstr(tol_message(), expected) != NULL, "%s", tol_message());
    MUST(tol_buffer_read_at(buffer, 3, back, sizeof back));
    snprintf(expected, sizeof expected, "%#010x on the device",
             kn_crc32c(back, sizeof back, KN_CRC32C_TABLE));
    cr_assert(strstr(tol_message(), expected) != NULL, "%s", tol_message());
    tol_interpose_remove(test_driver());
}

Test(checksum, what_makes_no_sense_is_refused) {
    begin();
    uint32_t sum = 7;
    const struct tol_place place = tol_place_of_buffer(buffer);
    struct kn_checksum *none = NULL;
    MUST_FAIL(kn_checksum_create(NULL, &none), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(kn_checksum_of(NULL, place, 0, 1, &sum), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(kn_checksum_of(checksum, place, 0, 1, NULL), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(kn_checksum_of(checksum, (struct tol_place){0}, 0, 1, &sum), TOL_INVALID_ARGUMENT,
              "NULL");
    MUST_FAIL(kn_checksum_of(checksum, place, 1, BYTES, &sum), TOL_OUT_OF_RANGE, "not inside");
    MUST_FAIL(kn_checksum_of(checksum, place, SIZE_MAX, 2, &sum), TOL_OUT_OF_RANGE, "not inside");
    MUST_FAIL(kn_checksum_verify(checksum, place, 0, NULL, 1), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(kn_checksum_write(checksum, NULL, place, 0, host, 1), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(kn_checksum_read(NULL, transfer, place, 0, host, 1), TOL_INVALID_ARGUMENT, "NULL");
    cr_assert_eq(sum, 7);
    MUST(kn_checksum_verify(checksum, place, BYTES, NULL, 0));
    kn_checksum_destroy(NULL);
}

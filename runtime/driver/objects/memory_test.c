/*
 * Buffers: bytes are read back as they were written, and nothing outside a buffer is accessed.
 */
#include "test/test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(memory, .fini = test_end);

static struct tol_buffer *new_buffer(size_t count, size_t element_bytes) {
    struct tol_buffer *buffer = NULL;
    MUST(tol_buffer_create(test_context(), count, element_bytes, &buffer));
    return buffer;
}

/* "Copy sizes 1 byte to 1 GiB" of spec 003; the large ones are H3's. */
Test(memory, bytes_survive_the_round_trip) {
    static const size_t sizes[] = {1, 2, 3, 7, 8, 255, 256, 257, 4095, 4096, 4097, 65536, 1000003};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        unsigned char *sent = malloc(sizes[s]), *back = malloc(sizes[s]);
        for (size_t i = 0; i < sizes[s]; i++) sent[i] = (unsigned char)(i * 37 + s);
        memset(back, 0xee, sizes[s]);
        struct tol_buffer *buffer = new_buffer(sizes[s], 1);
        MUST(tol_buffer_write(buffer, sent, sizes[s]));
        MUST(tol_buffer_read(buffer, back, sizes[s]));
        cr_assert(memcmp(sent, back, sizes[s]) == 0, "%zu bytes", sizes[s]);
        tol_buffer_destroy(buffer);
        free(sent);
        free(back);
    }
}

Test(memory, five_floats_survive_the_round_trip) { /* spec 004, falsify_memory_roundtrip */
    const float sent[5] = {1, 2, 3, 4, 5};
    float back[5] = {0};
    struct tol_buffer *buffer = new_buffer(5, sizeof(float));
    MUST(tol_buffer_write(buffer, sent, sizeof sent));
    MUST(tol_buffer_read(buffer, back, sizeof back));
    for (int i = 0; i < 5; i++) cr_assert(sent[i] == back[i]);
    tol_buffer_destroy(buffer);
}

Test(memory, a_buffer_knows_its_size) { /* spec 004, falsify_buffer_size_tracking */
    struct tol_buffer *buffer = new_buffer(100, sizeof(float));
    cr_assert(tol_buffer_bytes(buffer) == 400);
    cr_assert(tol_buffer_address(buffer) != 0 && tol_buffer_address(buffer) % 256 == 0);
    tol_buffer_destroy(buffer);
}

Test(memory, parts_are_written_and_read_where_they_lie) {
    unsigned char back[10], expected[10] = {9, 9, 1, 2, 3, 9, 9, 9, 9, 9};
    struct tol_buffer *buffer = new_buffer(10, 1);
    MUST(tol_buffer_fill_at(buffer, 0, 9, 1, 10));
    MUST(tol_buffer_write_at(buffer, 2, "\1\2\3", 3));
    MUST(tol_buffer_read(buffer, back, 10));
    cr_assert(memcmp(back, expected, 10) == 0);
    MUST(tol_buffer_read_at(buffer, 3, back, 2));
    cr_assert(back[0] == 2 && back[1] == 3);
    tol_buffer_destroy(buffer);
}

Test(memory, ranges_are_checked_without_overflow) {
    unsigned char bytes[16] = {0};
    struct tol_buffer *buffer = new_buffer(16, 1);
    static const struct {
        size_t offset, count;
        bool inside;
    } table[] = {
        {0, 16, true},  {16, 0, true},        {15, 1, true},        {0, 17, false},
        {16, 1, false}, {1, 16, false},       {SIZE_MAX, 1, false}, {1, SIZE_MAX, false},
        {8, 9, false},  {SIZE_MAX, 0, false}, {17, 0, false},       {SIZE_MAX - 7, 16, false},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        tol_status expected = table[i].inside ? TOL_OK : TOL_OUT_OF_RANGE;
        cr_assert(tol_buffer_write_at(buffer, table[i].offset, bytes, table[i].count) == expected,
                  "write of %zu at %zu", table[i].count, table[i].offset);
        cr_assert(tol_buffer_read_at(buffer, table[i].offset, bytes, table[i].count) == expected,
                  "read of %zu at %zu", table[i].count, table[i].offset);
        cr_assert(tol_buffer_fill_at(buffer, table[i].offset, 0, 1, table[i].count) == expected,
                  "fill of %zu at %zu", table[i].count, table[i].offset);
    }
    MUST_FAIL(tol_buffer_write_at(buffer, 8, bytes, 9), TOL_OUT_OF_RANGE, "offset 8");
    tol_buffer_destroy(buffer);
}

Test(memory, whole_copies_need_the_whole_size) {
    unsigned char bytes[16] = {0};
    struct tol_buffer *buffer = new_buffer(16, 1);
    MUST_FAIL(tol_buffer_write(buffer, bytes, 15), TOL_SIZE_MISMATCH, "15");
    MUST_FAIL(tol_buffer_read(buffer, bytes, 12), TOL_SIZE_MISMATCH, "12");
    tol_buffer_destroy(buffer);
}

Test(memory, sizes_that_cannot_be_are_refused) {
    struct tol_buffer *buffer = NULL;
    struct tol_context *context = test_context();
    MUST_FAIL(tol_buffer_create(context, 0, 4, &buffer), TOL_INVALID_ARGUMENT, "would be empty");
    MUST_FAIL(tol_buffer_create(context, 4, 0, &buffer), TOL_INVALID_ARGUMENT, "would be empty");
    MUST_FAIL(tol_buffer_create(context, SIZE_MAX, 2, &buffer), TOL_OUT_OF_RANGE,
              "does not fit a size_t");
    MUST_FAIL(tol_buffer_create(context, SIZE_MAX / 2 + 1, 2, &buffer), TOL_OUT_OF_RANGE,
              "does not fit a size_t");
    MUST_FAIL(tol_buffer_create(NULL, 1, 1, &buffer), TOL_INVALID_ARGUMENT, "NULL");
    cr_assert(buffer == NULL);
}

/* More than there is: an error with all three numbers, and everything works after. */
Test(memory, running_out_is_a_status_with_numbers) {
    struct tol_buffer *buffer = NULL;
    size_t free_bytes = 0, total = 0, after = 0;
    char number[32];
    MUST(tol_context_memory(test_context(), &free_bytes, &total));
    snprintf(number, sizeof number, "%zu", total + 1);
    MUST_FAIL(tol_buffer_create(test_context(), total + 1, 1, &buffer), TOL_OUT_OF_DEVICE_MEMORY,
              number);
    MUST_FAIL(tol_buffer_create(test_context(), SIZE_MAX / 2, 1, &buffer), TOL_OUT_OF_DEVICE_MEMORY,
              "free");
    MUST(tol_context_memory(test_context(), &after, NULL));
    cr_assert(buffer == NULL);
    buffer = new_buffer(1000, 1);
    tol_buffer_destroy(buffer);
}

Test(memory, fills_repeat_the_element) {
    unsigned words[8];
    unsigned short halves[16];
    struct tol_buffer *buffer = new_buffer(32, 1);
    MUST(tol_buffer_fill_at(buffer, 0, 0xdeadbeef, 4, 8));
    MUST(tol_buffer_read(buffer, words, sizeof words));
    for (int i = 0; i < 8; i++) cr_assert(words[i] == 0xdeadbeef);
    MUST(tol_buffer_fill_at(buffer, 2, 0x1234, 2, 3));
    MUST(tol_buffer_read(buffer, halves, sizeof halves));
    cr_assert(halves[0] == 0xbeef && halves[1] == 0x1234 && halves[3] == 0x1234);
    cr_assert(halves[4] == 0xbeef);
    MUST_FAIL(tol_buffer_fill_at(buffer, 0, 0, 8, 1), TOL_INVALID_ARGUMENT, "not 8");
    MUST_FAIL(tol_buffer_fill_at(buffer, 2, 0, 4, 1), TOL_INVALID_ARGUMENT, "not a multiple");
    MUST_FAIL(tol_buffer_fill_at(buffer, 0, 0, 4, SIZE_MAX / 2), TOL_OUT_OF_RANGE, "elements");
    MUST_FAIL(tol_buffer_fill_at(NULL, 0, 0, 4, 1), TOL_INVALID_ARGUMENT, "NULL");
    tol_buffer_destroy(buffer);
}

Test(memory, copies_on_the_device) {
    unsigned char back[8];
    struct tol_buffer *from = new_buffer(8, 1), *to = new_buffer(8, 1);
    MUST(tol_buffer_write(from, "abcdefgh", 8));
    MUST(tol_buffer_fill_at(to, 0, '.', 1, 8));
    MUST(tol_buffer_copy(to, 1, from, 3, 4));
    MUST(tol_buffer_read(to, back, 8));
    cr_assert(memcmp(back, ".defg...", 8) == 0);
    MUST(tol_buffer_copy(from, 0, from, 4, 4));
    MUST(tol_buffer_read(from, back, 8));
    cr_assert(memcmp(back, "efghefgh", 8) == 0);
    MUST_FAIL(tol_buffer_copy(from, 0, from, 3, 4), TOL_INVALID_ARGUMENT, "overlap");
    MUST_FAIL(tol_buffer_copy(to, 5, from, 0, 4), TOL_OUT_OF_RANGE, "offset 5");
    MUST_FAIL(tol_buffer_copy(to, 0, from, 5, 4), TOL_OUT_OF_RANGE, "offset 5");
    MUST_FAIL(tol_buffer_copy(NULL, 0, from, 0, 1), TOL_INVALID_ARGUMENT, "NULL");
    MUST(tol_buffer_copy(to, 8, from, 8, 0));
    tol_buffer_destroy(from);
    tol_buffer_destroy(to);
}

Test(memory, null_is_refused) {
    char byte = 0;
    struct tol_buffer *buffer = new_buffer(1, 1);
    MUST_FAIL(tol_buffer_write_at(NULL, 0, &byte, 1), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_buffer_write_at(buffer, 0, NULL, 1), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_buffer_read_at(NULL, 0, &byte, 1), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_buffer_read_at(buffer, 0, NULL, 1), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_buffer_write(NULL, &byte, 1), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_buffer_read(NULL, &byte, 1), TOL_INVALID_ARGUMENT, "NULL");
    tol_buffer_destroy(buffer);
}

/* Goal: a handle that has ended is refused, not used. The sanitized build would stop at any use. */
Test(memory, a_destroyed_buffer_is_refused) {
    char byte = 0;
    struct tol_buffer *buffer = new_buffer(4, 1), *other = new_buffer(4, 1);
    tol_buffer_destroy(buffer);
    MUST_FAIL(tol_buffer_write(buffer, &byte, 4), TOL_INVALID_ARGUMENT, "destroyed");
    MUST_FAIL(tol_buffer_read(buffer, &byte, 4), TOL_INVALID_ARGUMENT, "destroyed");
    MUST_FAIL(tol_buffer_write_at(buffer, 0, &byte, 1), TOL_INVALID_ARGUMENT, "destroyed");
    MUST_FAIL(tol_buffer_read_at(buffer, 0, &byte, 1), TOL_INVALID_ARGUMENT, "destroyed");
    MUST_FAIL(tol_buffer_fill_at(buffer, 0, 0, 1, 1), TOL_INVALID_ARGUMENT, "destroyed");
    MUST_FAIL(tol_buffer_copy(buffer, 0, other, 0, 1), TOL_INVALID_ARGUMENT, "destroyed");
    MUST_FAIL(tol_buffer_copy(other, 0, buffer, 0, 1), TOL_INVALID_ARGUMENT, "destroyed");
    cr_assert(tol_buffer_bytes(buffer) == 0 && tol_buffer_address(buffer) == 0);
    tol_buffer_destroy(buffer);
    tol_buffer_destroy(other);
}

/* "No leaks over 1000 iterations" of spec 003: by the calls, and by the driver's own count of free
 * bytes where no other process has a part in it. */
Test(memory, a_thousand_rounds_leave_nothing_behind) {
    size_t before = 0, after = 0;
    MUST(tol_interpose_install(test_driver(), NULL));
    tol_buffer_destroy(new_buffer(1 << 20, 1));
    MUST(tol_context_memory(test_context(), &before, NULL));
    tol_interpose_reset();
    for (int i = 0; i < 1000; i++) tol_buffer_destroy(new_buffer((size_t)i * 97 + 1, 3));
    cr_assert_eq(tol_interpose_count(TOL_DRIVER_INDEX_cuMemAlloc_v2), 1000);
    cr_assert_eq(tol_interpose_count(TOL_DRIVER_INDEX_cuMemFree_v2), 1000);
    tol_interpose_remove(test_driver());
    MUST(tol_context_memory(test_context(), &after, NULL));
    cr_assert(test_on_gpu() || after >= before, "%zu bytes are gone", before - after);
}

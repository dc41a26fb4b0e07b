/*
 * Packed files: read as they were, and refused where they are damaged or too large.
 */
#include "packed_file.h"

#include "atomic_file.h"

#include <criterion/criterion.h>
#include <lzma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/packed_file_test.XXXXXX", path[64], packed_path[72];

static void begin(void) {
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/text", folder);
    snprintf(packed_path, sizeof packed_path, "%s.xz", path);
}

static void end(void) {
    hyp_directory_remove(folder);
}

static void write_bytes(const char *name, const void *bytes, size_t count) {
    FILE *file = fopen(name, "wb");
    cr_assert(file != NULL && fwrite(bytes, 1, count, file) == count && fclose(file) == 0);
}

static size_t pack(const char *text, uint8_t *packed, size_t room) {
    size_t count = 0;
    cr_assert_eq(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, NULL, (const uint8_t *)text,
                                         strlen(text), packed, &count, room),
                 LZMA_OK);
    return count;
}

TestSuite(packed_file, .init = begin, .fini = end);

Test(packed_file, a_packed_file_is_read_as_it_was) {
    uint8_t packed[512];
    size_t bytes = 0;
    write_bytes(packed_path, packed, pack(".version 6.4\n.target sm_75\n", packed, sizeof packed));
    char *text = hyp_packed_read(path, 100, &bytes);
    cr_assert_str_eq(text, ".version 6.4\n.target sm_75\n");
    cr_assert_eq(bytes, strlen(text));
    cr_assert_eq(hyp_packed_bytes(path), bytes);
    free(text);
}

Test(packed_file, a_plain_file_comes_first) {
    uint8_t packed[512];
    size_t bytes = 0;
    write_bytes(packed_path, packed, pack("packed", packed, sizeof packed));
    write_bytes(path, "plain", 5);
    char *text = hyp_packed_read(path, 100, &bytes);
    cr_assert_str_eq(text, "plain");
    free(text);
}

Test(packed_file, what_is_larger_than_asked_is_refused) {
    uint8_t packed[512];
    size_t bytes = 0;
    char zeros[1001];
    memset(zeros, '0', 1000);
    zeros[1000] = '\0';
    write_bytes(packed_path, packed, pack(zeros, packed, sizeof packed));
    cr_assert_null(hyp_packed_read(path, 999, &bytes));
    cr_assert(strstr(hyp_error(), "more than 999 bytes") != NULL, "%s", hyp_error());
}

Test(packed_file, a_damaged_file_is_refused_wherever_a_byte_changed) {
    uint8_t packed[512];
    size_t bytes = 0;
    const size_t count = pack("a text whose packed form is damaged", packed, sizeof packed);
    for (size_t i = 0; i < count; i++) {
        packed[i] ^= 0x55;
        write_bytes(packed_path, packed, count);
        cr_assert_null(hyp_packed_read(path, 4096, &bytes), "byte %zu", i);
        packed[i] ^= 0x55;
    }
    write_bytes(packed_path, packed, count / 2);
    cr_assert_null(hyp_packed_read(path, 4096, &bytes));
}

Test(packed_file, a_missing_file_is_named) {
    size_t bytes = 0;
    cr_assert_null(hyp_packed_read(path, 100, &bytes));
    cr_assert(strstr(hyp_error(), path) != NULL, "%s", hyp_error());
}

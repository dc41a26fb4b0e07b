/*
 * Host objects and archives: which fat binaries are found, and the effects of damage.
 */
#include "host_object.h"

#include "base/file_text.h"
#include "fatbin.h"
#include "tollens/cuda_abi.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct seen {
    unsigned count, stop_at;
    char members[8][64];
};

static int note(void *data, const char *member, const void *image, size_t bytes) {
    struct seen *seen = data;
    cr_assert(soft_fatbin_is(image) && soft_fatbin_bytes(image, bytes) == bytes);
    strncpy(seen->members[seen->count % 8], member, 63);
    return ++seen->count == seen->stop_at ? 77 : CUDA_SUCCESS;
}

static char *read_file(const char *name, size_t *bytes) {
    char path[200], *text = NULL;
    snprintf(path, sizeof path, "fixtures/fatbin/%s", name);
    cr_assert(soft_file_text(path, &text, bytes) == CUDA_SUCCESS, "%s", path);
    return text;
}

Test(host_object, an_archive_has_a_fat_binary_a_member) {
    struct seen seen = {.count = 0};
    size_t bytes = 0;
    char *file = read_file("members.a", &bytes);
    cr_assert(soft_host_object_is(file, bytes));
    cr_assert(soft_host_object_walk(file, bytes, note, &seen) == CUDA_SUCCESS);
    cr_assert(seen.count == 3);
    cr_assert_str_eq(seen.members[0], "first.o");
    cr_assert_str_eq(seen.members[1], "second_with_a_long_name.o");
    cr_assert_str_eq(seen.members[2], "machine.o");
    seen = (struct seen){.stop_at = 2};
    cr_assert(soft_host_object_walk(file, bytes, note, &seen) == 77 && seen.count == 2);
    free(file);
}

Test(host_object, an_object_has_its_own) {
    struct seen seen = {.count = 0};
    size_t bytes = 0;
    char *file = read_file("lto.o", &bytes);
    cr_assert(soft_host_object_is(file, bytes));
    cr_assert(soft_host_object_walk(file, bytes, note, &seen) == CUDA_SUCCESS);
    cr_assert(seen.count == 1);
    cr_assert_str_eq(seen.members[0], "");
    free(file);
}

static void put(unsigned char *at, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> 8 * i);
}

/* An object with a section of two containers, the first of which ends 4 bytes after a multiple of
 * 8, as ld -r makes one. */
Test(host_object, a_section_may_have_several) {
    enum { NAMES = 64, IMAGES = 96, FIRST = 20, SECOND = 24, TABLE = 160, BYTES = 160 + 3 * 64 };
    struct seen seen = {.count = 0};
    unsigned char file[BYTES] = {0x7f, 'E', 'L', 'F', 2, 1};
    unsigned char *const section = file + TABLE;
    put(file + 18, 62, 2);
    put(file + 40, TABLE, 8);
    put(file + 60, 3, 2);
    put(file + 62, 1, 2);
    memcpy(file + NAMES + 1, ".nv_fatbin", 11);
    put(section + 64 + 24, NAMES, 8);
    put(section + 64 + 32, 32, 8);
    put(section + 128, 1, 4);
    put(section + 128 + 4, 1, 4);
    put(section + 128 + 24, IMAGES, 8);
    put(section + 128 + 32, 48, 8);
    put(file + IMAGES, 0xba55ed50, 4);
    put(file + IMAGES + 6, 16, 2);
    put(file + IMAGES + 8, FIRST - 16, 8);
    put(file + IMAGES + 24, 0xba55ed50, 4);
    put(file + IMAGES + 24 + 6, 16, 2);
    put(file + IMAGES + 24 + 8, SECOND - 16, 8);
    cr_assert(soft_host_object_walk(file, sizeof file, note, &seen) == CUDA_SUCCESS);
    cr_assert(seen.count == 2);
    /* The same section, if it is not in the file. */
    put(section + 128 + 4, 8, 4);
    seen.count = 0;
    cr_assert(soft_host_object_walk(file, sizeof file, note, &seen) == CUDA_SUCCESS);
    cr_assert(seen.count == 0);
}

/* A program whose section table was taken away: the header names segments and an entry alone. */
Test(host_object, a_program_without_sections_has_none) {
    struct seen seen = {.count = 0};
    unsigned char file[128] = {0x7f, 'E', 'L', 'F', 2, 1};
    put(file + 16, 2, 2);
    put(file + 18, 62, 2);
    put(file + 24, 0x401000, 8);
    put(file + 32, 64, 8);
    put(file + 56, 1, 2);
    cr_assert(soft_host_object_walk(file, sizeof file, note, &seen) == CUDA_SUCCESS);
    cr_assert(seen.count == 0);
}

Test(host_object, other_files_are_none) {
    static const char *const others[] = {"sm_86.cubin", "plain.fatbin", "twice.cu"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        size_t bytes = 0;
        char *file = read_file(others[i], &bytes);
        cr_assert(!soft_host_object_is(file, bytes), "%s", others[i]);
        cr_assert(soft_host_object_walk(file, bytes, note, NULL) == CUDA_ERROR_INVALID_IMAGE);
        free(file);
    }
}

/* A copy that ends where the file was cut, so that the sanitizers see a read past the end. */
static int walk_part(const char *file, size_t bytes) {
    struct seen seen = {.count = 0};
    char *part = malloc(bytes + 1);
    memcpy(part, file, bytes);
    char *exact = realloc(part, bytes > 0 ? bytes : 1);
    const int result = soft_host_object_walk(exact, bytes, note, &seen);
    free(exact);
    return result;
}

Test(host_object, what_is_cut_off_is_damaged) {
    static const char *const files[] = {"members.a", "lto.o"};
    for (size_t i = 0; i < 2; i++) {
        size_t bytes = 0;
        char *file = read_file(files[i], &bytes);
        for (size_t length = 0; length < bytes; length += length < 600 ? 1 : 37) {
            const int result = walk_part(file, length);
            /* An archive may end after its header or after a member. */
            cr_assert(result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_SUCCESS);
        }
        cr_assert(walk_part(file, bytes - 1) == CUDA_ERROR_INVALID_IMAGE, "%s", files[i]);
        cr_assert(walk_part(file, bytes / 2) == CUDA_ERROR_INVALID_IMAGE, "%s", files[i]);
        free(file);
    }
}

Test(host_object, no_byte_leads_astray) {
    size_t bytes = 0;
    char *file = read_file("lto.o", &bytes);
    for (size_t at = 0; at < bytes; at++) {
        const char was = file[at];
        file[at] = (char)(was ^ 0xff);
        (void)walk_part(file, bytes);
        file[at] = was;
    }
    free(file);
}

/*
 * Call sites by the line tables of this program and of one that nvcc built; and damaged tables.
 */
#include "call_site.h"
#include "line_table.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where its caller calls it. */
__attribute__((noinline)) static const void *site_here(void) {
    __asm__ volatile("");
    return __builtin_return_address(0);
}

Test(call_site, a_call_is_at_its_line) {
    char text[512], expected[64];
    const void *site = site_here();
    snprintf(expected, sizeof expected, "call_site_test.c:%d", __LINE__ - 1);
    soft_call_site_text(site, text, sizeof text);
    if (strstr(text, "+0x") != NULL) cr_skip_test("this program has no line tables");
    cr_assert(strstr(text, expected) != NULL, "%s is not %s", text, expected);
    cr_assert(soft_call_site_of(site) == site);
}

/* The last part of a loop is code after its body that belongs to an earlier line: further back than
 * one byte of a line table can express. */
Test(call_site, lines_may_go_back) {
    const void *site = NULL;
    unsigned line = 0;
    char text[512], expected[64];
    for (unsigned i = 0; i < 2; i++, line = __LINE__, site = site_here()) {
        /*
         * No
         * code
         * is
         * made
         * of
         * these
         * lines.
         */
        (void)site_here();
    }
    soft_call_site_text(site, text, sizeof text);
    snprintf(expected, sizeof expected, "call_site_test.c:%u", line);
    if (strstr(text, "+0x") != NULL) cr_skip_test("this program has no line tables");
    cr_assert(strstr(text, expected) != NULL, "%s is not %s", text, expected);
}

Test(call_site, what_is_no_code_has_no_place) {
    char text[64] = "before";
    int variable = 0;
    soft_call_site_text(NULL, text, sizeof text);
    cr_assert_str_eq(text, "");
    soft_call_site_text(&variable, text, sizeof text);
    cr_assert_str_eq(text, "");
    cr_assert_null(soft_call_site_of(NULL));
}

static char object_text[4096];

static int object_order(const void *left, const void *right) {
    (void)left, (void)right;
    soft_call_site_object(object_text, sizeof object_text);
    return 0;
}

/* This program contains the library, so it is the C library whose frame is the nearest. */
Test(call_site, the_nearest_object_outside_is_named) {
    int numbers[2] = {1, 2};
    qsort(numbers, 2, sizeof numbers[0], object_order);
    cr_assert(object_text[0] == '/' && strstr(object_text, "libc") != NULL, "%s", object_text);
}

/* A library without line tables is named with the offset. */
Test(call_site, without_a_table_it_is_an_offset) {
    char text[256];
    soft_call_site_text((const char *)(uintptr_t)&strtod + 1, text, sizeof text);
    if (strstr(text, ".c:") != NULL) cr_skip_test("the C library has line tables here");
    cr_assert(strstr(text, "+0x") != NULL, "%s", text);
}

/* ---- damaged files ---- */

static char path[] = "/tmp/tollens_lines_XXXXXX";

static void write_file(const unsigned char *bytes, size_t count) {
    FILE *file = fopen(path, "wb");
    cr_assert(file != NULL && fwrite(bytes, 1, count, file) == count);
    fclose(file);
}

/* The fixture, which is a program that nvcc built; NULL: it is not found from here. */
static unsigned char *read_program(size_t *count) {
    FILE *file = fopen("fixtures/cudart/program.elf", "rb");
    if (file == NULL) return NULL;
    unsigned char *bytes = malloc(1 << 20);
    cr_assert(bytes != NULL);
    *count = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

/* How many addresses of the program's code have a line. */
static unsigned count_lines(void) {
    struct soft_line line;
    unsigned found = 0;
    for (uint64_t address = 0x3000; address < 0xb000; address += 0x400) {
        if (!soft_line_find(path, address, address, &line)) continue;
        cr_assert(memchr(line.file, 0, sizeof line.file) != NULL);
        found++;
    }
    return found;
}

Test(call_site, damaged_tables_are_survived) {
    size_t count = 0;
    unsigned state = 12345;
    unsigned char *whole = read_program(&count), *bytes = malloc(1 << 20);
    if (whole == NULL) cr_skip_test("fixtures/cudart is not here");
    const int file = mkstemp(path);
    cr_assert(bytes != NULL && file >= 0);
    close(file);
    write_file(whole, count);
    cr_assert(count_lines() > 5, "%u", count_lines());
    for (int round = 0; round < 120; round++) {
        memcpy(bytes, whole, count);
        /* The tables are in the second half, the names of sections at the end. */
        for (int i = 0; i < 40; i++) {
            state = state * 1103515245 + 12345;
            bytes[count / 2 + state / 65536 % (count - count / 2)] = (unsigned char)(state >> 8);
        }
        state = state * 1103515245 + 12345;
        write_file(bytes, round % 3 == 0 ? state % count : count);
        (void)count_lines();
    }
    write_file((const unsigned char *)"no program", 10);
    cr_assert(count_lines() == 0);
    unlink(path);
    cr_assert(count_lines() == 0);
    free(bytes);
    free(whole);
}

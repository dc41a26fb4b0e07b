/*
 * Files of every size are read completely, also if one fills the allocated space.
 */
#include "file_text.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/tollens_file_text_XXXXXX";

static void begin(void) {
    int file = mkstemp(path);
    cr_assert(file >= 0);
    close(file);
}

static void end(void) {
    unlink(path);
}
TestSuite(file_text, .init = begin, .fini = end);

static char byte_at(size_t at) {
    return (char)(at * 2654435761u >> 13);
}

Test(file_text, is_read_whole_with_eight_nuls_behind_it) {
    static const size_t sizes[] = {0, 1, 65535, 65536, 65537, 131072, 500000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        FILE *file = fopen(path, "wb");
        for (size_t at = 0; at < sizes[i]; at++) fputc(byte_at(at), file);
        cr_assert_eq(fclose(file), 0);
        char *text = NULL;
        size_t bytes = 1;
        cr_assert_eq(soft_file_text(path, &text, &bytes), CUDA_SUCCESS, "%zu bytes", sizes[i]);
        cr_assert_eq(bytes, sizes[i]);
        for (size_t at = 0; at < sizes[i]; at++) {
            cr_assert_eq(text[at], byte_at(at), "byte %zu of %zu", at, sizes[i]);
        }
        cr_assert(memcmp(text + sizes[i], "\0\0\0\0\0\0\0", 8) == 0);
        free(text);
    }
}

Test(file_text, that_is_not_there_is_not_found) {
    char *text = path;
    cr_assert_eq(soft_file_text("/nonexistent/file", &text, NULL), CUDA_ERROR_FILE_NOT_FOUND);
    cr_assert_eq(soft_file_text("/tmp", &text, NULL), CUDA_ERROR_FILE_NOT_FOUND, "a folder");
    cr_assert_eq(text, path);
}

/*
 * Atomic files: a file is written completely or not at all.
 *
 * A file is written under a temporary name, flushed to the disk and renamed. If the disk is full or
 * read-only, or the process is killed during the write, the old file remains, or none; a partial
 * file never does. On failure a function returns false, and hyp_error() names the path.
 */
#ifndef HYP_ATOMIC_FILE_H
#define HYP_ATOMIC_FILE_H

#include <stdbool.h>
#include <stdio.h>

/* The last error of this thread; "" if there was none. */
const char *hyp_error(void);

/* Records an error; always returns false. */
bool hyp_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Makes a directory and its parents. A directory that exists is no error. */
bool hyp_directory_make(const char *path);

/* Removes a directory and its contents. A directory that does not exist is no error. */
bool hyp_directory_remove(const char *path);

/* Removes the temporary files that a process left in a directory when it was killed. */
void hyp_directory_sweep(const char *path);

/* A file being written. */
struct hyp_file {
    FILE *stream;
    char path[1024];
    char temporary[1040];
};

/* Begins a file. Then call keep or drop once, but neither if begin failed. */
bool hyp_file_begin(struct hyp_file *file, const char *path);
bool hyp_file_keep(struct hyp_file *file);
void hyp_file_drop(struct hyp_file *file);

/* Writes a whole text. */
bool hyp_file_write(const char *path, const char *text);

/* Reads a whole file, NUL-terminated, at most bytes_max of it; free it. NULL: an error. */
char *hyp_file_read(const char *path, size_t bytes_max, size_t *bytes);

#endif

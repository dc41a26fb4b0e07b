/*
 * Folder: files that are there whole or not at all.
 *
 * A file is written under another name, flushed to the disk, and renamed; a full disk, a read-only
 * one, or a process killed in the middle leaves the old file or none, never half of a new one.
 * All functions return false with a sentence in hyp_error() that names the path.
 */
#ifndef HYP_FOLDER_H
#define HYP_FOLDER_H

#include <stdbool.h>
#include <stdio.h>

/* What went wrong last on this thread; "" before. */
const char *hyp_error(void);

/* Notes an error; always false. */
bool hyp_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Makes a folder and those above it; one that is there is fine. */
bool hyp_folder_make(const char *path);

/* Removes a folder and all in it; one that is not there is fine. */
bool hyp_folder_remove(const char *path);

/* Removes what a process that was killed in the middle of a write left in a folder. */
void hyp_folder_sweep(const char *path);

/* A file being written. */
struct hyp_file {
    FILE *stream;
    char path[1024];
    char temporary[1040];
};

/* Begins a file; end either keeps or drops it. After begin failed, end must not be called. */
bool hyp_file_begin(struct hyp_file *file, const char *path);
bool hyp_file_keep(struct hyp_file *file);
void hyp_file_drop(struct hyp_file *file);

/* Writes a whole text. */
bool hyp_file_write(const char *path, const char *text);

/* Reads a whole file, NUL-terminated, at most bytes_max of it; free it. NULL: an error. */
char *hyp_file_read(const char *path, size_t bytes_max, size_t *bytes);

#endif

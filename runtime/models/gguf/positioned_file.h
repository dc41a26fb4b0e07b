/*
 * A positioned file: opened for reading, and read at given offsets by any number of threads. The
 * only file of this folder that makes system calls.
 */
#ifndef TOLLENS_POSITIONED_FILE_H
#define TOLLENS_POSITIONED_FILE_H

#include "tollens/status.h"

#include <stddef.h>
#include <stdint.h>

struct tol_file {
    int descriptor; /* -1: it is not open */
    uint64_t bytes; /* its size when it was opened */
};

/* Opens a regular file. TOL_UNREADABLE: there is none, or the system does not let us. */
tol_status tol_file_open(const char *path, struct tol_file *file);

/* A file that is not open is a no-op. */
void tol_file_close(struct tol_file *file);

/* Reads up to bytes from offset on. *got is less only at the end of the file. TOL_UNREADABLE. */
tol_status tol_file_read(const struct tol_file *file, uint64_t offset, void *to, size_t bytes,
                         size_t *got);

#endif

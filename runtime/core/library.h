/*
 * The platform's part of loading a driver: where it may lie, opening it, finding a name in it.
 *
 * This is all of the runtime that knows an operating system's loader; another platform is another
 * row in library.c. A library once opened stays open until the process ends: a driver starts
 * threads and registers exit handlers, and unloading it under them crashes (D-25).
 * Internal: not installed.
 */
#ifndef TOLLENS_LIBRARY_H
#define TOLLENS_LIBRARY_H

#include <stddef.h>

/* The file names a CUDA driver library goes by on this platform, best first; NULL ends the list. */
const char *const *tol_library_names(void);

/* Opens a library for the rest of the process's life. NULL on failure, with the loader's reason in
 * reason (cut to reason_bytes, always terminated). Thread-safe. */
void *tol_library_open(const char *path, char *reason, size_t reason_bytes);

/* Copies the address of an exported function into *function (function_bytes is the size of a
 * function pointer). Returns 0, leaving *function alone, when the library has no such name. */
int tol_library_find(void *library, const char *name, void *function, size_t function_bytes);

#endif

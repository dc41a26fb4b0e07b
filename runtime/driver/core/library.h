/*
 * Library: the platform's part of loading a driver: candidate names, opening, finding a symbol.
 *
 * This is the only part of the runtime that uses an operating system's loader; another platform is
 * another row in library.c. An opened library stays open until the process ends: a driver starts
 * threads and registers exit handlers, and unloading it would crash them (D-25).
 */
#ifndef TOLLENS_LIBRARY_H
#define TOLLENS_LIBRARY_H

#include <stddef.h>

/* The file names a CUDA driver library goes by on this platform, best first; NULL ends the list. */
const char *const *tol_library_names(void);

/* Opens a library until the process ends. NULL on failure, with the loader's reason in reason (cut
 * to reason_bytes, always terminated). Thread-safe. */
void *tol_library_open(const char *path, char *reason, size_t reason_bytes);

/* Writes the path of the file NAME in the folder of the library or program that this code is part
 * of, always terminated. Returns 0 if the folder cannot be found or bytes are too few. */
int tol_library_beside(const char *name, char *path, size_t bytes);

/* Whether the library exports the name, of a function or of data. */
int tol_library_has(void *library, const char *name);

/* Copies the address of an exported function into *function (function_bytes is the size of a
 * function pointer). Returns 0 and does not change *function if the library has no such name. */
int tol_library_find(void *library, const char *name, void *function, size_t function_bytes);

#endif

/*
 * Reads a whole file as text.
 */
#ifndef SOFT_FILE_TEXT_H
#define SOFT_FILE_TEXT_H

#include "abi.h"

/* Reads a whole file and appends eight NULs; the caller frees it. *bytes (if not NULL) is the
 * file's size. CUDA_ERROR_FILE_NOT_FOUND: it cannot be read. */
CUresult soft_file_text(const char *name, char **text, size_t *bytes);

#endif

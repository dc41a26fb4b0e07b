/*
 * Reads a whole file as text.
 */
#ifndef SOFT_FILE_TEXT_H
#define SOFT_FILE_TEXT_H

#include "abi.h"

/* Reads a whole file, with eight NULs behind it; free it. *bytes (if not NULL) is its size.
 * CUDA_ERROR_FILE_NOT_FOUND: there is none that can be read. */
CUresult soft_file_text(const char *name, char **text, size_t *bytes);

#endif

/*
 * The driver's log of errors. As in "Error Log Management Functions" of the CUDA Driver API 13.0.
 */
#include "export.h"
#include "base/report.h"

#include <stdio.h>
#include <stdlib.h>

EXPORT(cuLogsCurrent, (CUlogIterator * iterator, unsigned int flags)) {
    if (iterator == NULL || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *iterator = soft_log_end();
    return CUDA_SUCCESS;
}

EXPORT(cuLogsDumpToMemory,
       (CUlogIterator * iterator, char *buffer, size_t *size, unsigned int flags)) {
    CUlogIterator all = 0;
    if (buffer == NULL || size == NULL || *size == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *size = soft_log_dump(iterator != NULL ? iterator : &all, buffer, *size);
    return CUDA_SUCCESS;
}

EXPORT(cuLogsDumpToFile, (CUlogIterator * iterator, const char *path, unsigned int flags)) {
    CUlogIterator all = 0;
    enum { LOG_BYTES = 25600 }; /* what a driver's log holds */
    if (path == NULL || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    FILE *file = fopen(path, "a");
    if (file == NULL) return CUDA_ERROR_FILE_NOT_FOUND;
    char *text = malloc(LOG_BYTES);
    bool written = false;
    if (text != NULL) {
        size_t bytes = soft_log_dump(iterator != NULL ? iterator : &all, text, LOG_BYTES);
        written = fwrite(text, 1, bytes, file) == bytes;
    }
    free(text);
    return fclose(file) == 0 && written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

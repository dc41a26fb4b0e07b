/*
 * Reads a file.
 */
#include "file_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

CUresult soft_file_text(const char *name, char **result, size_t *bytes) {
    enum { STEP = 64 * 1024, NULS = 8 };
    size_t room = STEP, used = 0, got = 0;
    char *text = calloc(1, room + NULS);
    FILE *file = text != NULL ? fopen(name, "rb") : NULL;
    while (file != NULL && (got = fread(text + used, 1, room - used, file)) > 0) {
        used += got;
        if (used < room) continue;
        char *more = realloc(text, room * 2 + NULS);
        if (more == NULL) break;
        text = more;
        room *= 2;
    }
    bool out_of_memory = text == NULL || used == room;
    bool readable = file != NULL && !ferror(file);
    if (file != NULL) fclose(file);
    if (out_of_memory || !readable) {
        free(text);
        return out_of_memory ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_FILE_NOT_FOUND;
    }
    for (int i = 0; i < NULS; i++) text[used + (size_t)i] = '\0';
    *result = text;
    if (bytes != NULL) *bytes = used;
    return CUDA_SUCCESS;
}

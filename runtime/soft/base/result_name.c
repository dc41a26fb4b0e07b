/*
 * The names from their list, and texts made of them.
 */
#include "result_name.h"

#include "tollens/cuda_abi.h"

#include <ctype.h>
#include <pthread.h>
#include <string.h>

static const struct result_name {
    CUresult result;
    const char *name;
} result_names[] = {
#define CUDA_RESULT(name, value) {name, #name},
#include "tollens/cuda_result.def"
#undef CUDA_RESULT
};
enum { RESULTS = sizeof result_names / sizeof result_names[0], TEXT_BYTES = 64 };

static const struct result_name *find_result(int code) {
    for (size_t i = 0; i < RESULTS; i++) {
        if ((int)result_names[i].result == code) return &result_names[i];
    }
    return NULL;
}

const char *soft_result_name(int code) {
    const struct result_name *known = find_result(code);
    return known != NULL ? known->name : NULL;
}

static char result_texts[RESULTS][TEXT_BYTES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* CUDA_ERROR_OUT_OF_MEMORY is "out of memory". */
static void result_name_write_texts(void) {
    for (size_t i = 0; i < RESULTS; i++) {
        const char *name = result_names[i].name + strlen("CUDA_");
        if (strncmp(name, "ERROR_", 6) == 0) name += 6;
        for (size_t c = 0; name[c] != '\0' && c + 1 < TEXT_BYTES; c++) {
            result_texts[i][c] = name[c] == '_' ? ' ' : (char)tolower((unsigned char)name[c]);
        }
    }
}

const char *soft_result_text(int code) {
    pthread_once(&once, result_name_write_texts);
    const struct result_name *known = find_result(code);
    return known != NULL ? result_texts[known - result_names] : NULL;
}

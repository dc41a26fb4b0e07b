/*
 * Errors: their names, their texts, and the last one. As in "Error Handling" of the CUDA Runtime
 * API 13.0.
 *
 * The text of a code that the driver has is the driver's. The others are derived from their names.
 */
#include "cudart_export.h"

#include <ctype.h>
#include <pthread.h>
#include <string.h>

static const struct {
    cudaError_t error;
    const char *name;
} errors[] = {
#define CUDART_ERROR(name, value) {name, #name},
#include "cudart_errors.def"
#undef CUDART_ERROR
};

enum { ERRORS = sizeof errors / sizeof errors[0], TEXT_BYTES = 64 };

static char texts[ERRORS][TEXT_BYTES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* cudaErrorInvalidConfiguration is "invalid configuration". */
static void error_write_texts(void) {
    for (size_t i = 0; i < ERRORS; i++) {
        const char *name = errors[i].name + strlen("cuda");
        size_t at = 0;
        if (strncmp(name, "Error", 5) == 0) name += 5;
        for (size_t c = 0; name[c] != '\0' && at + 2 < TEXT_BYTES; c++) {
            if (c > 0 && isupper((unsigned char)name[c])) texts[i][at++] = ' ';
            texts[i][at++] = (char)tolower((unsigned char)name[c]);
        }
    }
    memcpy(texts[0], "no error", sizeof "no error");
}

static size_t error_find(cudaError_t error) {
    size_t i = 0;
    while (i < ERRORS && errors[i].error != error) i++;
    return i;
}

CUDART_VISIBLE const char *cudaGetErrorName(cudaError_t error);
CUDART_VISIBLE const char *cudaGetErrorString(cudaError_t error);
CUDART_VISIBLE cudaError_t cudaGetLastError(void);
CUDART_VISIBLE cudaError_t cudaPeekAtLastError(void);

const char *cudaGetErrorName(cudaError_t error) {
    const size_t i = error_find(error);
    return i < ERRORS ? errors[i].name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
    const char *text = NULL;
    const size_t i = error_find(error);
    if (i == ERRORS) return "unrecognized error code";
    if (error != cudaSuccess && cudart_driver_ready() == cudaSuccess &&
        cudart_driver.cuGetErrorString.plain((CUresult)error, &text) == CUDA_SUCCESS) {
        return text;
    }
    pthread_once(&once, error_write_texts);
    return texts[i];
}

cudaError_t cudaGetLastError(void) {
    return cudart_take_last();
}

cudaError_t cudaPeekAtLastError(void) {
    return cudart_thread.last;
}

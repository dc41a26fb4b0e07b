/*
 * What the fuzz targets share: a context, and loading a text that may be anything.
 */
#include "fuzz.h"

#include "lower/container.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUcontext context;

_Noreturn void fuzz_fail(const char *what, int result, const char *log) {
    fprintf(stderr, "fuzz: %s: %d %s\n", what, result, log);
    abort();
}

char *fuzz_text(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (text == NULL) exit(2);
    if (size > 0) memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

void fuzz_open(void) {
    if (context != NULL) return;
    setenv("TOLLENS_SOFT_MEMORY", "16M", 1);
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    setenv("TOLLENS_SOFT_BUDGET", "4000", 1); /* a race check costs up to a millisecond here */
    setenv("TOLLENS_SOFT_CHECK", "memory,init,sync,race", 1);
    setenv("TOLLENS_SOFT_REPORT", "/dev/null", 1);
    CUresult result = cuInit(0);
    if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&context, 0);
    if (result == CUDA_SUCCESS) result = cuCtxSetCurrent(context);
    if (result != CUDA_SUCCESS) fuzz_fail("no context", (int)result, "");
}

void fuzz_reopen(void) {
    cuDevicePrimaryCtxRelease_v2(0);
    context = NULL;
    fuzz_open();
}

CUmodule fuzz_load(const uint8_t *data, size_t size) {
    char log[512] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module = NULL;
    /* A container says itself how long it is, and is believed: fuzz_fatbin.c is for those. */
    if (size >= 16 && soft_container_is(data)) return NULL;
    /* The loader reads up to the first zero. */
    char *text = fuzz_text(data, size);
    CUresult result = cuModuleLoadDataEx(&module, text, 2, options, values);
    free(text);
    switch (result) {
    case CUDA_SUCCESS:
        if (module == NULL) fuzz_fail("loaded without a module", (int)result, log);
        return module;
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_IMAGE:
        if (memchr(log, '\0', sizeof log) == NULL || log[0] == '\0') {
            fuzz_fail("refused without a log", (int)result, "");
        }
        return NULL;
    default:
        fuzz_fail("no code of the loader's", (int)result, log);
    }
}

/*
 * Fuzz target: every kernel of whatever loads is launched, on two small blocks, with parameters
 * that are pointers to a buffer or small numbers. It ends: well, with a code of a launch's, or
 * because it took all its instructions. Nothing crashes, whatever the kernel does.
 */
#include "fuzz.h"

#include "lower/loaded_module.h"

#include <string.h>

enum { BUFFER_BYTES = 4096, PARAMETERS_MAX = 64, PARAMETER_BYTES = 4352, BLOCKS = 2, THREADS = 40 };

/* Pointers where they fit, and numbers else. */
static void run_fill(uint8_t *values, size_t bytes, CUdeviceptr buffer) {
    uint64_t pointer = buffer;
    uint32_t number = 7;
    if (bytes % sizeof pointer == 0) {
        for (size_t at = 0; at < bytes; at += sizeof pointer) {
            memcpy(values + at, &pointer, sizeof pointer);
        }
    } else {
        memset(values, 0, bytes);
        memcpy(values, &number, bytes < sizeof number ? bytes : sizeof number);
    }
}

/* false: the context is not to be used any more. */
static bool run_launch(const struct soft_function *function, CUdeviceptr buffer) {
    static uint8_t values[PARAMETERS_MAX][PARAMETER_BYTES];
    void *parameters[PARAMETERS_MAX] = {NULL};
    uint32_t count = function->ptx->parameter_count;
    if (count > PARAMETERS_MAX) return true;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = function->ptx->parameters[i]->bytes;
        if (bytes > PARAMETER_BYTES) return true;
        run_fill(values[i], (size_t)bytes, buffer);
        parameters[i] = values[i];
    }
    CUfunction handle = (CUfunction)(uintptr_t)function;
    CUresult result =
        cuLaunchKernel(handle, BLOCKS, 1, 1, THREADS, 1, 1, 256, NULL, parameters, NULL);
    if (result != CUDA_SUCCESS) return true; /* more threads or memory than it may have */
    return cuCtxSynchronize() == CUDA_SUCCESS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_open();
    CUmodule module = fuzz_load(data, size);
    if (module == NULL) return 0;
    CUdeviceptr buffer = 0;
    CUresult result = cuMemAlloc_v2(&buffer, BUFFER_BYTES);
    if (result == CUDA_SUCCESS) result = cuMemsetD8_v2(buffer, 1, BUFFER_BYTES);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) { /* the module has it all */
        cuModuleUnload(module);
        return 0;
    }
    if (result != CUDA_SUCCESS) fuzz_fail("no buffer", (int)result, "");
    const struct soft_module *loaded = (const struct soft_module *)(uintptr_t)module;
    bool usable = true;
    for (const struct soft_function *f = loaded->functions; f != NULL && usable; f = f->next) {
        usable = run_launch(f, buffer);
    }
    if (!usable) {
        fuzz_reopen(); /* takes module and buffer along */
        return 0;
    }
    result = cuMemFree_v2(buffer);
    if (result == CUDA_SUCCESS) result = cuModuleUnload(module);
    if (result != CUDA_SUCCESS) fuzz_fail("no end", (int)result, "");
    return 0;
}

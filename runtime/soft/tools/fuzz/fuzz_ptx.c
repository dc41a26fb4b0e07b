/*
 * Fuzz target: any bytes are a module, or are refused with a code and a log. Nothing crashes, hangs
 * or leaks.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_open();
    CUmodule module = fuzz_load(data, size);
    if (module == NULL) return 0;
    CUresult result = cuModuleUnload(module);
    if (result != CUDA_SUCCESS) fuzz_fail("no unloading", (int)result, "");
    return 0;
}

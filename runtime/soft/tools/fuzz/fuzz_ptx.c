/*
 * Fuzz target: any bytes are a module, or are refused with a code and a log. A module's functions
 * can be queried and found by their names; linked alone it has the same functions. An input with a
 * line "//====" is two texts, which are linked with each other. Nothing crashes, hangs or leaks.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { FUNCTIONS_MAX = 16, LOG = 512 };

static const char divider[] = "\n//====\n";

static void expect_ptx(CUresult result, const char *what) {
    if (result != CUDA_SUCCESS) fuzz_fail(what, (int)result, "");
}

/* Queries every attribute of a function. */
static void ptx_ask(CUmodule module, CUfunction function) {
    CUfunction again = NULL;
    const char *name = NULL;
    int value = 0;
    size_t offset = 0, bytes = 0;
    expect_ptx(cuFuncGetName(&name, function), "no name");
    expect_ptx(cuModuleGetFunction(&again, module, name), "not found by its name");
    if (again != function) fuzz_fail("another function has its name", 0, name);
    for (int i = CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK; i <= CU_FUNC_ATTRIBUTE_BINARY_VERSION;
         i++) {
        expect_ptx(cuFuncGetAttribute(&value, (CUfunction_attribute)i, function), "no attribute");
    }
    expect_ptx(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 32, 0),
               "no occupancy");
    size_t end = 0;
    for (size_t i = 0; cuFuncGetParamInfo(function, i, &offset, &bytes) == CUDA_SUCCESS; i++) {
        if (offset < end) fuzz_fail("a parameter overlaps the one before it", (int)i, name);
        end = offset + bytes;
    }
}

/* How many functions the module has, and each of them. */
static unsigned ask_all(CUmodule module) {
    CUfunction functions[FUNCTIONS_MAX];
    unsigned count = 0;
    expect_ptx(cuModuleGetFunctionCount(&count, module), "no count of functions");
    unsigned some = count < FUNCTIONS_MAX ? count : FUNCTIONS_MAX;
    if (some > 0) expect_ptx(cuModuleEnumerateFunctions(functions, some, module), "no functions");
    for (unsigned i = 0; i < some; i++) ptx_ask(module, functions[i]);
    return count;
}

static CUresult ptx_add(CUlinkState state, char *text) {
    return cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, text, strlen(text) + 1, "text", 0, NULL, NULL);
}

/* Links one or two texts and loads the image. NULL: they do not fit, and the log says why. */
static CUmodule link_texts(char *text, char *second, char log[LOG]) {
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(size_t)LOG};
    CUlinkState state = NULL;
    CUmodule module = NULL;
    void *image = NULL;
    size_t bytes = 0;
    log[0] = '\0';
    expect_ptx(cuLinkCreate_v2(2, options, values, &state), "no linker");
    if (ptx_add(state, text) == CUDA_SUCCESS &&
        (second == NULL || ptx_add(state, second) == CUDA_SUCCESS) &&
        cuLinkComplete(state, &image, &bytes) == CUDA_SUCCESS) {
        CUresult result = cuModuleLoadData(&module, image);
        if (result != CUDA_ERROR_OUT_OF_MEMORY) expect_ptx(result, "what was linked is not loaded");
    }
    expect_ptx(cuLinkDestroy(state), "the linker stays");
    return module;
}

/* Its memory may be all there is, so the first copy is gone before the second is made. A variable
 * that is declared with its size, and defined nowhere, is taken for defined by the loader alone.
 * The linker misses it. */
static void ptx_load(const uint8_t *data, size_t size, char *text) {
    char log[LOG];
    CUmodule module = fuzz_load(data, size);
    if (module == NULL) return;
    unsigned count = ask_all(module);
    expect_ptx(cuModuleUnload(module), "no unloading");
    module = link_texts(text, NULL, log);
    if (module == NULL && strstr(log, "declared but not defined") != NULL) return;
    if (module == NULL) fuzz_fail("it is loaded, and cannot be linked", 0, log);
    if (ask_all(module) != count) fuzz_fail("linking changes the number of functions", 0, "");
    expect_ptx(cuModuleUnload(module), "no unloading");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_open();
    char *text = fuzz_text(data, size);
    char *second = strstr(text, divider);
    if (second == NULL) {
        ptx_load(data, size, text);
    } else {
        second[0] = '\0';
        char log[LOG];
        CUmodule module = link_texts(text, second + strlen(divider), log);
        if (module != NULL) ask_all(module);
        if (module != NULL) expect_ptx(cuModuleUnload(module), "no unloading");
    }
    free(text);
    return 0;
}

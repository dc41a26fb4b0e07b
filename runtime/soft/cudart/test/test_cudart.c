/*
 * Opens the libraries that were built beside this program.
 */
#include "test_cudart.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cudart_library rt;
char test_kernel, test_variable;

/* The folder of this program, with a trailing "/". */
static void find_own(char *own, size_t bytes) {
    const ssize_t length = readlink("/proc/self/exe", own, bytes - 1);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    cr_assert(slash != NULL, "%s", own);
    slash[1] = '\0';
}

void *test_cudart_open(const char *name) {
    char own[PATH_MAX], path[PATH_MAX + 64];
    find_own(own, sizeof own);
    snprintf(path, sizeof path, "%slibtollens-soft.so", own);
    setenv("TOLLENS_LIBCUDA", path, 1);
    snprintf(path, sizeof path, "%s%s", own, name);
    void *library = dlopen(path, RTLD_NOW);
    cr_assert(library != NULL, "%s", dlerror());
    return library;
}

void *test_cudart_find(void *library, const char *name) {
    void *function = dlsym(library, name);
    cr_assert(function != NULL, "%s", dlerror());
    return function;
}

static void fill(void *library, const char *name, void *pointer) {
    void *function = test_cudart_find(library, name);
    memcpy(pointer, &function, sizeof function);
}

void test_cudart_begin(void) {
    void *library = test_cudart_open("libcudart.so.13");
#define CUDART_FN(versions, thread, name, parameters, names)                                       \
    TEST_IN_##versions(fill(library, #name, &rt.name);)
#define CUDART_AS(versions, thread, name, body, parameters, names)
#include "cudart/cudart_functions.def"
    fill(library, "cudaGetLastError", &rt.cudaGetLastError);
    fill(library, "cudaPeekAtLastError", &rt.cudaPeekAtLastError);
    fill(library, "cudaGetErrorName", &rt.cudaGetErrorName);
    fill(library, "cudaGetErrorString", &rt.cudaGetErrorString);
    fill(library, "__cudaRegisterFatBinary", &rt.__cudaRegisterFatBinary);
    fill(library, "__cudaRegisterFatBinaryEnd", &rt.__cudaRegisterFatBinaryEnd);
    fill(library, "__cudaUnregisterFatBinary", &rt.__cudaUnregisterFatBinary);
    fill(library, "__cudaRegisterFunction", &rt.__cudaRegisterFunction);
    fill(library, "__cudaRegisterVar", &rt.__cudaRegisterVar);
    fill(library, "__cudaPushCallConfiguration", &rt.__cudaPushCallConfiguration);
    fill(library, "__cudaPopCallConfiguration", &rt.__cudaPopCallConfiguration);
}

static const char ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                          ".visible .global .align 4 .u32 numbers[4] = {1, 2, 3, 4};\n"
                          ".visible .entry store(.param .u64 to, .param .u32 value) {\n"
                          "  .reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
                          "  ld.param.u64 %rd0, [to];\n"
                          "  ld.param.u32 %r0, [value];\n"
                          "  st.global.u32 [%rd0], %r0;\n"
                          "  ret;\n}\n";

void test_cudart_register(void) {
    static const struct {
        int magic, version;
        const void *data;
        void *parts;
    } wrapper = {0x466243b1, 1, ptx, NULL};
    char store[] = "store", numbers[] = "numbers";
    static char names[2][8];
    memcpy(names[0], store, sizeof store);
    memcpy(names[1], numbers, sizeof numbers);
    void **image = rt.__cudaRegisterFatBinary((void *)(uintptr_t)&wrapper);
    rt.__cudaRegisterFunction(image, &test_kernel, names[0], names[0], -1, NULL, NULL, NULL, NULL,
                              NULL);
    rt.__cudaRegisterVar(image, &test_variable, names[1], names[1], 0, 16, 0, 0);
    rt.__cudaRegisterFatBinaryEnd(image);
}

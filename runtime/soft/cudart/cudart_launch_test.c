/*
 * Registration, launches, symbols and their errors.
 */
#include "test/test_cudart.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(cudart_launch, .init = test_cudart_begin);

static const dim3 one = {1, 1, 1};

static void wait_for(void *data) {
    while (!atomic_load((atomic_bool *)data)) continue;
}

Test(cudart_launch, configurations_nest_and_are_counted) {
    dim3 grid, block;
    size_t shared = 0;
    cudaStream_t stream = NULL;
    IS(rt.__cudaPopCallConfiguration(&grid, &block, &shared, &stream),
       cudaErrorMissingConfiguration);
    cr_assert(rt.__cudaPushCallConfiguration((dim3){1, 2, 3}, (dim3){4, 5, 6}, 7,
                                             CU_STREAM_PER_THREAD) == 0);
    cr_assert(rt.__cudaPushCallConfiguration(one, one, 0, NULL) == 0);
    OK(rt.__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    cr_assert(block.z == 1 && shared == 0 && stream == NULL);
    OK(rt.__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    cr_assert(grid.y == 2 && block.z == 6 && shared == 7 && stream == CU_STREAM_PER_THREAD);
}

Test(cudart_launch, what_cannot_be_launched_is_told_apart) {
    void *address = NULL, *arguments[2];
    unsigned value = 1;
    test_cudart_register();
    OK(rt.cudaMalloc(&address, 4));
    arguments[0] = &address;
    arguments[1] = &value;
    IS(rt.cudaLaunchKernel(&value, one, one, arguments, 0, NULL), cudaErrorInvalidResourceHandle);
    IS(rt.cudaLaunchKernel(&test_variable, one, one, arguments, 0, NULL),
       cudaErrorInvalidResourceHandle);
    IS(rt.cudaLaunchKernel(NULL, one, one, arguments, 0, NULL), cudaErrorInvalidResourceHandle);
    IS(rt.cudaLaunchKernel(&test_kernel, (dim3){0, 1, 1}, one, arguments, 0, NULL),
       cudaErrorInvalidValue);
    IS(rt.cudaLaunchKernel(&test_kernel, one, (dim3){1025, 1, 1}, arguments, 0, NULL),
       cudaErrorInvalidValue);
    IS(rt.cudaLaunchKernel(&test_kernel, one, (dim3){1, 1, 65}, arguments, 0, NULL),
       cudaErrorInvalidValue);
    IS(rt.cudaLaunchKernel(&test_kernel, one, one, arguments, 1 << 20, NULL),
       cudaErrorInvalidValue);
    IS(rt.cudaLaunchKernelExC(NULL, &test_kernel, arguments), cudaErrorInvalidConfiguration);
    OK(rt.cudaLaunchKernel(&test_kernel, one, one, arguments, 0, NULL));
    OK(rt.cudaDeviceSynchronize());
    OK(rt.cudaFree(address));
}

/* The kind of what the launches of a kernel that stores to one word have found. */
static bool reports(const char *path, const char *kind) {
    static char text[4096];
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return strstr(text, kind) != NULL;
}

static void begin_with_a_report(void) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/tollens_cudart_%d", (int)getpid());
    setenv("TOLLENS_SOFT_REPORT", path, 1);
    test_cudart_begin();
}

Test(cudart_launch, attributes_reach_the_driver, .init = begin_with_a_report) {
    void *address = NULL, *arguments[2];
    unsigned value = 1;
    const char *path = getenv("TOLLENS_SOFT_REPORT");
    static const char kind[] = "missing griddepcontrol.wait";
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    cudaLaunchConfig_t config = {
        .gridDim = one, .blockDim = one, .attrs = &attribute, .numAttrs = 1};
    test_cudart_register();
    OK(rt.cudaMalloc(&address, 4));
    arguments[0] = &address;
    arguments[1] = &value;
    OK(rt.cudaStreamCreate(&config.stream));
    /* The kernels say nothing to each other, but the second one is queued before the first begins:
     * the host function holds both. Each stores to the same word. */
    for (int allowed = 0; allowed < 2; allowed++) {
        atomic_bool go = false;
        attribute.value.programmaticStreamSerializationAllowed = allowed;
        OK(rt.cudaLaunchHostFunc(config.stream, wait_for, &go));
        OK(rt.cudaLaunchKernelExC(&config, &test_kernel, arguments));
        OK(rt.cudaLaunchKernelExC(&config, &test_kernel, arguments));
        atomic_store(&go, true);
        OK(rt.cudaStreamSynchronize(config.stream));
        cr_assert_eq(reports(path, kind), allowed == 1, "%d", allowed);
    }
    unlink(path);
    OK(rt.cudaStreamDestroy(config.stream));
    OK(rt.cudaFree(address));
}

Test(cudart_launch, symbols_are_checked) {
    unsigned numbers[4] = {0}, nine = 9;
    size_t size = 0;
    void *address = NULL;
    test_cudart_register();
    OK(rt.cudaGetSymbolSize(&size, &test_variable));
    cr_assert(size == 16, "%zu", size);
    OK(rt.cudaGetSymbolAddress(&address, &test_variable));
    IS(rt.cudaGetSymbolAddress(&address, &test_kernel), cudaErrorInvalidSymbol);
    IS(rt.cudaGetSymbolAddress(&address, &size), cudaErrorInvalidSymbol);
    OK(rt.cudaMemcpyToSymbol(&test_variable, &nine, 4, 12, cudaMemcpyHostToDevice));
    IS(rt.cudaMemcpyToSymbol(&test_variable, &nine, 4, 13, cudaMemcpyHostToDevice),
       cudaErrorInvalidValue);
    IS(rt.cudaMemcpyToSymbol(&test_variable, &nine, 4, (size_t)-4, cudaMemcpyHostToDevice),
       cudaErrorInvalidValue);
    IS(rt.cudaMemcpyToSymbol(&test_variable, &nine, 4, 0, cudaMemcpyDeviceToHost),
       cudaErrorInvalidMemcpyDirection);
    IS(rt.cudaMemcpyFromSymbol(numbers, &test_variable, 16, 0, cudaMemcpyHostToDevice),
       cudaErrorInvalidMemcpyDirection);
    OK(rt.cudaMemcpyFromSymbol(numbers, &test_variable, 16, 0, cudaMemcpyDefault));
    cr_assert(numbers[0] == 1 && numbers[2] == 3 && numbers[3] == 9);
}

Test(cudart_launch, kernels_of_libraries_are_launched_by_their_handles) {
    static const char text[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                               ".visible .entry nothing() { ret; }\n";
    cudaLibrary_t library = NULL;
    cudaKernel_t kernel = NULL;
    unsigned count = 0;
    const char *name = NULL;
    OK(rt.cudaLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    OK(rt.cudaLibraryGetKernelCount(&count, library));
    cr_assert(count == 1, "%u", count);
    OK(rt.cudaLibraryGetKernel(&kernel, library, "nothing"));
    IS(rt.cudaLibraryGetKernel(&kernel, library, "none"), cudaErrorSymbolNotFound);
    OK(rt.cudaFuncGetName(&name, kernel));
    cr_assert_str_eq(name, "nothing");
    OK(rt.cudaLaunchKernel(kernel, one, one, NULL, 0, NULL));
    OK(rt.cudaDeviceSynchronize());
    OK(rt.cudaLibraryUnload(library));
    IS(rt.cudaLaunchKernel(kernel, one, one, NULL, 0, NULL), cudaErrorInvalidResourceHandle);
}

static void *read_fatbin(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) cr_skip_test("fixtures/fatbin is not here");
    char *bytes = calloc(1, 1 << 16);
    cr_assert(bytes != NULL && fread(bytes, 1, 1 << 16, file) > 0);
    fclose(file);
    return bytes;
}

/* Registers what nvcc -rdc=true makes, for the host address of test_kernel: parts to be linked. */
static void register_parts(void **parts) {
    static struct {
        int magic, version;
        const void *data;
        void *parts;
    } wrapper = {0x466243b1, 2, NULL, NULL};
    static char name[] = "twice";
    wrapper.parts = parts;
    void **image = rt.__cudaRegisterFatBinary(&wrapper);
    rt.__cudaRegisterFunction(image, &test_kernel, name, name, -1, NULL, NULL, NULL, NULL, NULL);
    rt.__cudaRegisterFatBinaryEnd(image);
}

Test(cudart_launch, parts_are_linked_and_those_of_other_devices_left_out) {
    int values[2] = {3, 4};
    void *address = NULL, *arguments[] = {&address};
    void *parts[] = {read_fatbin("fixtures/fatbin/machine.fatbin"),
                     read_fatbin("fixtures/fatbin/plain.fatbin"), NULL};
    register_parts(parts);
    OK(rt.cudaMalloc(&address, sizeof values));
    OK(rt.cudaMemcpy(address, values, sizeof values, cudaMemcpyHostToDevice));
    OK(rt.cudaLaunchKernel(&test_kernel, one, (dim3){2, 1, 1}, arguments, 0, NULL));
    OK(rt.cudaMemcpy(values, address, sizeof values, cudaMemcpyDeviceToHost));
    cr_assert(values[0] == 6 && values[1] == 8, "%d %d", values[0], values[1]);
    OK(rt.cudaFree(address));
    free(parts[0]);
    free(parts[1]);
}

Test(cudart_launch, parts_without_code_for_this_device_are_refused) {
    void *parts[] = {read_fatbin("fixtures/fatbin/machine.fatbin"), NULL};
    register_parts(parts);
    cr_assert(rt.cudaLaunchKernel(&test_kernel, one, one, NULL, 0, NULL) != cudaSuccess);
    free(parts[0]);
}

Test(cudart_launch, the_drivers_functions_are_found_by_name) {
    void *function = NULL;
    int status = -1;
    OK(rt.cudaGetDriverEntryPoint("cuMemAlloc", &function, 0, &status));
    cr_assert(function != NULL && status == 0, "%d", status);
    OK(rt.cudaGetDriverEntryPoint("cuNothing", &function, 0, &status));
    cr_assert(function == NULL && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, "%d", status);
    function = &status;
    OK(rt.cudaGetDriverEntryPoint("cuNothing", &function, 0, NULL));
    cr_assert_null(function);
    OK(rt.cudaGetDriverEntryPointByVersion("cuMemAdvise", &function, 4000, 0, &status));
    cr_assert(status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, "%d", status);
    IS(rt.cudaGetDriverEntryPoint("cuInit", &function, 77, &status), cudaErrorInvalidValue);
}

/* What a program's code does before it first looks at one of them. */
Test(cudart_launch, every_managed_variable_has_its_place) {
    static const char ptx[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                              ".visible .global .attribute(.managed) .align 4 .u32 first = 11;\n"
                              ".visible .global .attribute(.managed) .align 4 .u32 second = 22;\n"
                              ".visible .global .attribute(.managed) .align 4 .u32 third = 33;\n";
    static const struct {
        int magic, version;
        const void *data;
        void *parts;
    } wrapper = {0x466243b1, 1, ptx, NULL};
    static char names[3][8] = {"first", "second", "third"};
    static void *places[3];
    void (*add)(void **, void **, char *, const char *, int, size_t, int, int) = NULL;
    char (*begin)(void **) = NULL;
    void *library = test_cudart_open("libcudart.so.13");
    void *function = test_cudart_find(library, "__cudaRegisterManagedVar");
    memcpy(&add, &function, sizeof add);
    function = test_cudart_find(library, "__cudaInitModule");
    memcpy(&begin, &function, sizeof begin);
    void **image = rt.__cudaRegisterFatBinary((void *)(uintptr_t)&wrapper);
    for (int i = 0; i < 3; i++) add(image, &places[i], names[i], names[i], 0, 4, 0, 0);
    rt.__cudaRegisterFatBinaryEnd(image);
    cr_assert_eq(begin(image), 1);
    for (unsigned i = 0; i < 3; i++) {
        cr_assert(places[i] != NULL && *(const unsigned *)places[i] == 11 * (i + 1), "%u", i);
    }
}

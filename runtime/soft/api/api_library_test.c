/*
 * Libraries: loaded once, used in any context.
 */
#include "test/test_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static CUresult load(CUlibrary *library, const char *code) {
    return cuLibraryLoadData(library, code, NULL, NULL, 0, NULL, NULL, 0);
}

static const char *const counted = ".version 7.0\n.target sm_70\n.address_size 64\n"
                                   ".visible .global .u32 counter = 3;\n"
                                   ".visible .entry k(.param .u32 n) { ret; }\n";

Test(api_library, it_needs_no_context) {
    CUlibrary library = NULL, same = NULL;
    CUkernel kernel = NULL, all[3] = {NULL, NULL, NULL};
    CUfunction function = NULL;
    CUmodule module = NULL;
    CUdeviceptr address = 0;
    unsigned count = 0;
    const char *name = NULL;
    REFUSED(load(&library, api_kernels), CUDA_ERROR_NOT_INITIALIZED);
    OK(cuInit(0));
    OK(load(&library, api_kernels));
    OK(cuLibraryGetKernel(&kernel, library, "put"));
    OK(cuLibraryGetKernelCount(&count, library));
    cr_assert_eq(count, 2);
    OK(cuLibraryEnumerateKernels(all, 3, library));
    cr_assert(all[0] != NULL && all[1] != NULL && all[2] == NULL);
    OK(cuKernelGetName(&name, kernel));
    cr_assert_str_eq(name, "put");
    OK(cuKernelGetLibrary(&same, kernel));
    cr_assert(same == library);
    REFUSED(cuKernelGetFunction(&function, kernel), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuLibraryGetModule(&module, library), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuLibraryGetGlobal(&address, NULL, library, "x"), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuLibraryUnload(library));
}

Test(api_library, each_context_has_a_module_of_it) {
    CUlibrary library = NULL;
    CUkernel kernel = NULL;
    CUfunction functions[2];
    CUmodule modules[2], again = NULL;
    CUdeviceptr counters[2];
    CUcontext contexts[2];
    size_t bytes = 0;
    setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    OK(cuInit(0));
    OK(load(&library, counted));
    OK(cuLibraryGetKernel(&kernel, library, "k"));
    for (int i = 0; i < 2; i++) {
        contexts[i] = api_context(i);
        OK(cuKernelGetFunction(&functions[i], kernel));
        OK(cuLibraryGetModule(&modules[i], library));
        OK(cuLibraryGetGlobal(&counters[i], &bytes, library, "counter"));
        cr_assert(bytes == 4 && api_read(counters[i]) == 3);
    }
    cr_assert(modules[0] != modules[1] && functions[0] != functions[1]);
    cr_assert(counters[0] != counters[1]);
    OK(cuCtxSetCurrent(contexts[0]));
    OK(cuLibraryGetModule(&again, library));
    cr_assert(again == modules[0]);
    REFUSED(cuModuleUnload(modules[0]), CUDA_ERROR_NOT_PERMITTED);
    /* The kernel itself can be launched where a function can, in the stream's context. */
    unsigned value = 0;
    void *parameters[] = {&value};
    OK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    OK(cuCtxSetCurrent(contexts[1]));
    OK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    OK(cuCtxSynchronize());
    /* A function is of its own context alone. */
    REFUSED(cuLaunchKernel(functions[0], 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL),
            CUDA_ERROR_INVALID_HANDLE);
    OK(cuLibraryUnload(library));
    REFUSED(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuKernelGetFunction(&functions[1], kernel), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuModuleGetFunction(&functions[1], modules[1], "k"), CUDA_ERROR_INVALID_HANDLE);
}

Test(api_library, a_context_that_ends_takes_its_module_with_it) {
    CUlibrary library = NULL;
    CUmodule module = NULL;
    CUcontext context = NULL;
    OK(cuInit(0));
    OK(load(&library, counted));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuLibraryGetModule(&module, library));
    OK(cuCtxDestroy_v2(context));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuLibraryGetModule(&module, library));
    OK(cuLibraryUnload(library));
    OK(cuCtxDestroy_v2(context));
}

Test(api_library, attributes_are_set_for_a_device) {
    CUlibrary library = NULL;
    CUkernel kernel = NULL;
    CUfunction function = NULL;
    int value = 0;
    size_t offset = 9, size = 0;
    const CUfunction_attribute shared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    OK(cuInit(0));
    OK(load(&library, counted));
    OK(cuLibraryGetKernel(&kernel, library, "k"));
    OK(cuKernelGetParamInfo(kernel, 0, &offset, &size));
    cr_assert(offset == 0 && size == 4);
    OK(cuKernelGetAttribute(&value, shared, kernel, 0));
    cr_assert_eq(value, 49152);
    OK(cuKernelSetAttribute(shared, 100000, kernel, 0));
    OK(cuKernelGetAttribute(&value, shared, kernel, 0));
    cr_assert_eq(value, 100000);
    OK(cuKernelGetAttribute(&value, shared, kernel, 1));
    cr_assert_eq(value, 49152);
    api_context(0);
    OK(cuKernelGetFunction(&function, kernel));
    OK(cuFuncGetAttribute(&value, shared, function));
    cr_assert_eq(value, 100000);
    OK(cuKernelSetAttribute(shared, 60000, kernel, 0));
    OK(cuFuncGetAttribute(&value, shared, function));
    cr_assert_eq(value, 60000);
    /* What is set for the function itself stays. */
    OK(cuFuncSetAttribute(function, shared, 70000));
    OK(cuKernelSetAttribute(shared, 80000, kernel, 0));
    OK(cuFuncGetAttribute(&value, shared, function));
    cr_assert_eq(value, 70000);
    REFUSED(cuKernelSetAttribute(shared, 300000, kernel, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NUM_REGS, 3, kernel, 0),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuKernelSetAttribute(shared, 3, kernel, 2), CUDA_ERROR_INVALID_DEVICE);
    REFUSED(cuKernelGetAttribute(&value, shared, kernel, -1), CUDA_ERROR_INVALID_DEVICE);
    REFUSED(cuKernelGetAttribute(NULL, shared, kernel, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1, 0));
    REFUSED(cuKernelSetCacheConfig(kernel, 7, 0), CUDA_ERROR_INVALID_VALUE);
}

Test(api_library, it_is_loaded_from_a_file) {
    char file_name[] = "/tmp/api-library-XXXXXX";
    CUlibrary library = NULL;
    int file = mkstemp(file_name);
    cr_assert(file >= 0 && write(file, counted, strlen(counted)) == (ssize_t)strlen(counted));
    close(file);
    OK(cuInit(0));
    OK(cuLibraryLoadFromFile(&library, file_name, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryUnload(library));
    remove(file_name);
    REFUSED(cuLibraryLoadFromFile(&library, file_name, NULL, NULL, 0, NULL, NULL, 0),
            CUDA_ERROR_FILE_NOT_FOUND);
}

Test(api_library, bad_arguments_are_refused) {
    CUlibrary library = NULL;
    CUkernel kernel = NULL;
    CUdeviceptr address = 0;
    size_t bytes = 0;
    void *function = NULL, *value = NULL;
    unsigned count = 0;
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED, unknown = 7;
    static const unsigned char cubin[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0};
    api_context(0);
    REFUSED(load(NULL, counted), CUDA_ERROR_INVALID_VALUE);
    REFUSED(load(&library, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(load(&library, (const char *)cubin), CUDA_ERROR_NO_BINARY_FOR_GPU);
    REFUSED(load(&library, ".version 7.0\n.target sm_70\nnonsense\n"), CUDA_ERROR_INVALID_PTX);
    REFUSED(cuLibraryLoadData(&library, counted, NULL, NULL, 0, &unknown, &value, 1),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLibraryLoadData(&library, counted, NULL, NULL, 0, NULL, NULL, 1),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLibraryLoadData(&library, counted, NULL, NULL, 1, NULL, NULL, 0),
            CUDA_ERROR_INVALID_VALUE);
    OK(cuLibraryLoadData(&library, counted, NULL, NULL, 0, &option, &value, 1));
    REFUSED(cuLibraryGetKernel(&kernel, library, "none"), CUDA_ERROR_NOT_FOUND);
    REFUSED(cuLibraryGetKernel(&kernel, library, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLibraryGetKernel(NULL, library, "k"), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLibraryGetKernelCount(NULL, library), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLibraryEnumerateKernels(&kernel, 0, library), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLibraryGetGlobal(&address, &bytes, library, "none"), CUDA_ERROR_NOT_FOUND);
    REFUSED(cuLibraryGetManaged(&address, &bytes, library, "counter"), CUDA_ERROR_NOT_FOUND);
    REFUSED(cuLibraryGetUnifiedFunction(&function, library, "k"), CUDA_ERROR_NOT_FOUND);
    REFUSED(cuLibraryGetKernelCount(&count, (CUlibrary)&library), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuKernelGetName(NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuLibraryUnload(library));
}

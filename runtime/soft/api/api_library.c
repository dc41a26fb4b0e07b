/*
 * Libraries and their kernels. As in "Library Management" of the CUDA Driver API 13.0.
 */
#include "state/contexts.h"
#include "export.h"
#include "base/file_text.h"
#include "state/function_attribute.h"
#include "state/handle_set.h"
#include "state/kernel_library.h"

#include <stdlib.h>
#include <string.h>

/* Both options are about storing the code, which is always copied. */
static CUresult check_options(unsigned count, const CUlibraryOption *options, void **values) {
    if (count > 0 && (options == NULL || values == NULL)) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        bool known = options[i] == CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE ||
                     options[i] == CU_LIBRARY_BINARY_IS_PRESERVED;
        if (!known) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* bytes: of a file; SIZE_MAX if unknown. */
static CUresult library_load(CUlibrary *handle, const void *code, size_t bytes, unsigned jit_count,
                             const CUjit_option *jit_options, void **jit_values) {
    struct soft_library *library = NULL;
    struct soft_jit jit;
    CUresult result = soft_jit_read(jit_count, jit_options, jit_values, &jit);
    jit.image_bytes = bytes;
    if (result == CUDA_SUCCESS) result = soft_library_load(code, &jit, &library);
    if (result == CUDA_SUCCESS) *handle = (CUlibrary)library;
    return result;
}

EXPORT(cuLibraryLoadData,
       (CUlibrary * handle, const void *code, CUjit_option *jit_options, void **jit_values,
        unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL || code == NULL) return CUDA_ERROR_INVALID_VALUE;
    result = check_options(count, options, values);
    if (result != CUDA_SUCCESS) return result;
    return library_load(handle, code, SIZE_MAX, jit_count, jit_options, jit_values);
}

EXPORT(cuLibraryLoadFromFile,
       (CUlibrary * handle, const char *name, CUjit_option *jit_options, void **jit_values,
        unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count)) {
    char *code = NULL;
    size_t bytes = 0;
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL || name == NULL) return CUDA_ERROR_INVALID_VALUE;
    result = soft_file_text(name, &code, &bytes);
    if (result == CUDA_SUCCESS) result = check_options(count, options, values);
    if (result == CUDA_SUCCESS) {
        result = library_load(handle, code, bytes, jit_count, jit_options, jit_values);
    }
    free(code);
    return result;
}

static CUresult find_library(CUlibrary handle, struct soft_library **library) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    bool known = soft_handle_is(SOFT_HANDLE_LIBRARY, handle);
    pthread_mutex_unlock(&soft_lock);
    *library = (struct soft_library *)handle;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult library_find_kernel(CUkernel handle, struct soft_library_kernel **kernel) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    bool known = soft_handle_is(SOFT_HANDLE_KERNEL, handle);
    pthread_mutex_unlock(&soft_lock);
    *kernel = (struct soft_library_kernel *)handle;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT(cuLibraryUnload, (CUlibrary handle)) {
    struct soft_library *library = NULL;
    CUresult result = find_library(handle, &library);
    if (result == CUDA_SUCCESS) soft_library_unload(library);
    return result;
}

EXPORT(cuLibraryGetKernel, (CUkernel * handle, CUlibrary from, const char *name)) {
    struct soft_library *library = NULL;
    CUresult result = find_library(from, &library);
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL || name == NULL) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < library->kernel_count; i++) {
        if (strcmp(library->kernels[i].prototype->code->name, name) != 0) continue;
        *handle = (CUkernel)&library->kernels[i];
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

EXPORT(cuLibraryGetKernelCount, (unsigned int *count, CUlibrary from)) {
    struct soft_library *library = NULL;
    CUresult result = find_library(from, &library);
    if (result != CUDA_SUCCESS) return result;
    if (count == NULL) return CUDA_ERROR_INVALID_VALUE;
    *count = library->kernel_count;
    return CUDA_SUCCESS;
}

EXPORT(cuLibraryEnumerateKernels, (CUkernel * kernels, unsigned int count, CUlibrary from)) {
    struct soft_library *library = NULL;
    CUresult result = find_library(from, &library);
    if (result != CUDA_SUCCESS) return result;
    if (kernels == NULL || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < library->kernel_count && i < count; i++) {
        kernels[i] = (CUkernel)&library->kernels[i];
    }
    return CUDA_SUCCESS;
}

EXPORT(cuLibraryGetModule, (CUmodule * handle, CUlibrary from)) {
    struct soft_library *library = NULL;
    struct soft_context *context = NULL;
    struct soft_module *module = NULL;
    CUresult result = find_library(from, &library);
    if (result == CUDA_SUCCESS) result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL) return CUDA_ERROR_INVALID_VALUE;
    result = soft_library_module(library, context, &module);
    if (result == CUDA_SUCCESS) *handle = (CUmodule)module;
    return result;
}

static CUresult find_variable(CUlibrary from, const char *name, bool is_managed,
                              CUdeviceptr *address, size_t *bytes) {
    struct soft_library *library = NULL;
    struct soft_context *context = NULL;
    struct soft_module *module = NULL;
    CUresult result = find_library(from, &library);
    if (result == CUDA_SUCCESS) result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (name == NULL || (address == NULL && bytes == NULL)) return CUDA_ERROR_INVALID_VALUE;
    result = soft_library_module(library, context, &module);
    if (result != CUDA_SUCCESS) return result;
    const struct ptx_variable *variable = soft_module_variable(module, name);
    if (variable == NULL || variable->is_opaque || variable->is_managed != is_managed) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (address != NULL) *address = variable->address;
    if (bytes != NULL) *bytes = (size_t)variable->bytes;
    return CUDA_SUCCESS;
}

EXPORT(cuLibraryGetGlobal,
       (CUdeviceptr * address, size_t *bytes, CUlibrary from, const char *name)) {
    return find_variable(from, name, false, address, bytes);
}

/* Each context has its own variables of a library. */
EXPORT(cuLibraryGetManaged,
       (CUdeviceptr * address, size_t *bytes, CUlibrary from, const char *name)) {
    return find_variable(from, name, true, address, bytes);
}

/* Host and device share no functions. */
EXPORT(cuLibraryGetUnifiedFunction, (void **function, CUlibrary from, const char *name)) {
    struct soft_library *library = NULL;
    CUresult result = find_library(from, &library);
    if (result != CUDA_SUCCESS) return result;
    return function == NULL || name == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
}

EXPORT(cuKernelGetFunction, (CUfunction * function, CUkernel handle)) {
    struct soft_library_kernel *kernel = NULL;
    struct soft_context *context = NULL;
    struct soft_function *found = NULL;
    CUresult result = library_find_kernel(handle, &kernel);
    if (result == CUDA_SUCCESS) result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (function == NULL) return CUDA_ERROR_INVALID_VALUE;
    result = soft_library_function(kernel, context, &found);
    if (result == CUDA_SUCCESS) *function = (CUfunction)found;
    return result;
}

EXPORT(cuKernelGetLibrary, (CUlibrary * library, CUkernel handle)) {
    struct soft_library_kernel *kernel = NULL;
    CUresult result = library_find_kernel(handle, &kernel);
    if (result != CUDA_SUCCESS) return result;
    if (library == NULL) return CUDA_ERROR_INVALID_VALUE;
    *library = (CUlibrary)kernel->library;
    return CUDA_SUCCESS;
}

EXPORT(cuKernelGetName, (const char **name, CUkernel handle)) {
    struct soft_library_kernel *kernel = NULL;
    CUresult result = library_find_kernel(handle, &kernel);
    if (result != CUDA_SUCCESS) return result;
    if (name == NULL) return CUDA_ERROR_INVALID_VALUE;
    *name = kernel->prototype->code->name;
    return CUDA_SUCCESS;
}

EXPORT(cuKernelGetParamInfo, (CUkernel handle, size_t index, size_t *offset, size_t *bytes)) {
    struct soft_library_kernel *kernel = NULL;
    CUresult result = library_find_kernel(handle, &kernel);
    return result != CUDA_SUCCESS
               ? result
               : soft_function_parameter(kernel->prototype, index, offset, bytes);
}

EXPORT(cuKernelGetAttribute,
       (int *value, CUfunction_attribute attribute, CUkernel handle, CUdevice device)) {
    struct soft_library_kernel *kernel = NULL;
    CUresult result = library_find_kernel(handle, &kernel);
    if (result != CUDA_SUCCESS) return result;
    if (value == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (soft_device_of(device) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    struct soft_function as_on_device = *kernel->prototype;
    as_on_device.dynamic_shared_max = kernel->dynamic_shared_max[device];
    as_on_device.carveout = kernel->carveout[device];
    as_on_device.clusters = kernel->clusters[device];
    return soft_function_attribute(&as_on_device, (int)attribute, value);
}

EXPORT(cuKernelSetAttribute,
       (CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device)) {
    struct soft_library_kernel *kernel = NULL;
    CUresult result = library_find_kernel(handle, &kernel);
    if (result != CUDA_SUCCESS) return result;
    if (soft_device_of(device) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    struct soft_function changed = *kernel->prototype;
    changed.dynamic_shared_max = kernel->dynamic_shared_max[device];
    changed.carveout = kernel->carveout[device];
    changed.clusters = kernel->clusters[device];
    result = soft_function_set_attribute(&changed, (int)attribute, value);
    if (result != CUDA_SUCCESS) return result;
    kernel->carveout[device] = changed.carveout;
    soft_library_allow_shared(kernel, device, changed.dynamic_shared_max);
    soft_library_set_clusters(kernel, device, &changed.clusters);
    return CUDA_SUCCESS;
}

EXPORT(cuKernelSetCacheConfig, (CUkernel handle, CUfunc_cache config, CUdevice device)) {
    struct soft_library_kernel *kernel = NULL;
    CUresult result = library_find_kernel(handle, &kernel);
    if (result != CUDA_SUCCESS) return result;
    if (soft_device_of(device) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    bool known = config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

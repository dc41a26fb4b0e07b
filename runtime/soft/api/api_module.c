/*
 * Modules. As in "Module Management" of the CUDA Driver API 13.0.
 */
#include "state/contexts.h"
#include "export.h"
#include "base/file_text.h"
#include "state/handle_set.h"
#include "state/image.h"
#include "state/jit.h"

#include <stdlib.h>

/* bytes: of a file; SIZE_MAX if unknown. */
static CUresult module_load(CUmodule *handle, const void *image, const char *name, size_t bytes,
                            unsigned count, const CUjit_option *options, void **values) {
    struct soft_context *context = NULL;
    struct soft_module *module = NULL;
    struct soft_jit jit;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL || image == NULL) return CUDA_ERROR_INVALID_VALUE;
    result = soft_jit_read(count, options, values, &jit);
    jit.name = name;
    jit.image_bytes = bytes;
    if (result == CUDA_SUCCESS) result = soft_image_load(context, image, &jit, &module);
    if (result == CUDA_SUCCESS) *handle = (CUmodule)module;
    return result;
}

EXPORT(cuModuleLoadData, (CUmodule * module, const void *image)) {
    return module_load(module, image, NULL, SIZE_MAX, 0, NULL, NULL);
}

EXPORT(cuModuleLoadDataEx, (CUmodule * module, const void *image, unsigned int count,
                            CUjit_option *options, void **values)) {
    return module_load(module, image, NULL, SIZE_MAX, count, options, values);
}

EXPORT(cuModuleLoad, (CUmodule * module, const char *name)) {
    struct soft_context *context = NULL;
    char *image = NULL;
    size_t bytes = 0;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (module == NULL || name == NULL) return CUDA_ERROR_INVALID_VALUE;
    result = soft_file_text(name, &image, &bytes);
    if (result == CUDA_SUCCESS) result = module_load(module, image, name, bytes, 0, NULL, NULL);
    free(image);
    return result;
}

EXPORT(cuModuleLoadFatBinary, (CUmodule * module, const void *image)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (module == NULL || image == NULL) return CUDA_ERROR_INVALID_VALUE;
    const enum soft_image_kind kind = soft_image_kind(image);
    if (kind != SOFT_IMAGE_FATBIN && kind != SOFT_IMAGE_CUBIN && kind != SOFT_IMAGE_CONTAINER) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    return module_load(module, image, NULL, SIZE_MAX, 0, NULL, NULL);
}

/* The calling thread's context, and a live module. */
static CUresult module_find(CUmodule handle, struct soft_context **context,
                            struct soft_module **module) {
    CUresult result = soft_context_current(context);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    bool known = soft_handle_is(SOFT_HANDLE_MODULE, handle);
    pthread_mutex_unlock(&soft_lock);
    *module = (struct soft_module *)handle;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT(cuModuleUnload, (CUmodule handle)) {
    struct soft_context *context = NULL;
    struct soft_module *module = NULL;
    CUresult result = module_find(handle, &context, &module);
    if (result != CUDA_SUCCESS) return result;
    /* A library's modules end with it. */
    if (module->library != NULL) return CUDA_ERROR_NOT_PERMITTED;
    pthread_mutex_lock(&soft_lock);
    struct soft_context *home = soft_context_of(module->slot);
    pthread_mutex_unlock(&soft_lock);
    soft_image_unload(home, module);
    return CUDA_SUCCESS;
}

/* All is loaded at once. */
EXPORT(cuModuleGetLoadingMode, (CUmoduleLoadingMode * mode)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (mode == NULL) return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

EXPORT(cuModuleGetFunction, (CUfunction * function, CUmodule handle, const char *name)) {
    struct soft_context *context = NULL;
    struct soft_module *module = NULL;
    CUresult result = module_find(handle, &context, &module);
    if (result != CUDA_SUCCESS) return result;
    if (function == NULL || name == NULL || name[0] == '\0') return CUDA_ERROR_INVALID_VALUE;
    struct soft_function *found = soft_module_kernel(module, name);
    if (found == NULL) return CUDA_ERROR_NOT_FOUND;
    *function = (CUfunction)found;
    return CUDA_SUCCESS;
}

EXPORT(cuModuleGetFunctionCount, (unsigned int *count, CUmodule handle)) {
    struct soft_context *context = NULL;
    struct soft_module *module = NULL;
    CUresult result = module_find(handle, &context, &module);
    if (result != CUDA_SUCCESS) return result;
    if (count == NULL) return CUDA_ERROR_INVALID_VALUE;
    *count = 0;
    for (const struct soft_function *f = module->functions; f != NULL; f = f->next) (*count)++;
    return CUDA_SUCCESS;
}

EXPORT(cuModuleEnumerateFunctions, (CUfunction * functions, unsigned int count, CUmodule handle)) {
    struct soft_context *context = NULL;
    struct soft_module *module = NULL;
    CUresult result = module_find(handle, &context, &module);
    if (result != CUDA_SUCCESS) return result;
    if (functions == NULL || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (struct soft_function *f = module->functions; f != NULL && count > 0; f = f->next) {
        *functions++ = (CUfunction)f;
        count--;
    }
    return CUDA_SUCCESS;
}

EXPORT(cuModuleGetGlobal_v2,
       (CUdeviceptr * address, size_t *bytes, CUmodule handle, const char *name)) {
    struct soft_context *context = NULL;
    struct soft_module *module = NULL;
    CUresult result = module_find(handle, &context, &module);
    if (result != CUDA_SUCCESS) return result;
    if (name == NULL || name[0] == '\0' || (address == NULL && bytes == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const struct ptx_variable *variable = soft_module_variable(module, name);
    if (variable == NULL || variable->is_opaque) return CUDA_ERROR_NOT_FOUND;
    if (address != NULL) *address = variable->address;
    if (bytes != NULL) *bytes = (size_t)variable->bytes;
    return CUDA_SUCCESS;
}

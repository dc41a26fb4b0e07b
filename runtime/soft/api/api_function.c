/*
 * Kernels. As in "Execution Control" of the CUDA Driver API 13.0.
 */
#include "state/contexts.h"
#include "export.h"
#include "state/function_attribute.h"
#include "state/handle_set.h"

static CUresult api_function_find(CUfunction handle, struct soft_function **function) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    bool known = soft_handle_is(SOFT_HANDLE_FUNCTION, handle);
    pthread_mutex_unlock(&soft_lock);
    *function = (struct soft_function *)handle;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT(cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction handle)) {
    struct soft_function *function = NULL;
    int answer = 0;
    CUresult result = api_function_find(handle, &function);
    if (result != CUDA_SUCCESS) return result;
    if (value == NULL) return CUDA_ERROR_INVALID_VALUE;
    result = soft_function_attribute(function, (int)attribute, &answer);
    if (result == CUDA_SUCCESS) *value = answer;
    return result;
}

EXPORT(cuFuncSetAttribute, (CUfunction handle, CUfunction_attribute attribute, int value)) {
    struct soft_function *function = NULL;
    CUresult result = api_function_find(handle, &function);
    if (result != CUDA_SUCCESS) return result;
    result = soft_function_set_attribute(function, (int)attribute, value);
    if (result == CUDA_SUCCESS &&
        (int)attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        function->is_set = true;
    }
    return result;
}

EXPORT(cuFuncSetCacheConfig, (CUfunction handle, CUfunc_cache config)) {
    struct soft_function *function = NULL;
    CUresult result = api_function_find(handle, &function);
    if (result != CUDA_SUCCESS) return result;
    if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    function->cache_config = config;
    return CUDA_SUCCESS;
}

EXPORT(cuFuncSetSharedMemConfig, (CUfunction handle, CUsharedconfig config)) {
    struct soft_function *function = NULL;
    CUresult result = api_function_find(handle, &function);
    if (result != CUDA_SUCCESS) return result;
    bool known = config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE &&
                 config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT(cuFuncGetModule, (CUmodule * module, CUfunction handle)) {
    struct soft_function *function = NULL;
    CUresult result = api_function_find(handle, &function);
    if (result != CUDA_SUCCESS) return result;
    if (module == NULL) return CUDA_ERROR_INVALID_VALUE;
    *module = (CUmodule)function->module;
    return CUDA_SUCCESS;
}

EXPORT(cuFuncGetName, (const char **name, CUfunction handle)) {
    struct soft_function *function = NULL;
    CUresult result = api_function_find(handle, &function);
    if (result != CUDA_SUCCESS) return result;
    if (name == NULL) return CUDA_ERROR_INVALID_VALUE;
    *name = function->code->name;
    return CUDA_SUCCESS;
}

EXPORT(cuFuncGetParamInfo, (CUfunction handle, size_t index, size_t *offset, size_t *bytes)) {
    struct soft_function *function = NULL;
    CUresult result = api_function_find(handle, &function);
    return result != CUDA_SUCCESS ? result
                                  : soft_function_parameter(function, index, offset, bytes);
}

EXPORT(cuFuncIsLoaded, (CUfunctionLoadingState * state, CUfunction handle)) {
    struct soft_function *function = NULL;
    CUresult result = api_function_find(handle, &function);
    if (result != CUDA_SUCCESS) return result;
    if (state == NULL) return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

EXPORT(cuFuncLoad, (CUfunction handle)) {
    struct soft_function *function = NULL;
    return api_function_find(handle, &function);
}

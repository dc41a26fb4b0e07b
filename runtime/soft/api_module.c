/*
 * Modules, kernels and the error log. As in "Module Management", "Execution Control" and "Error Log
 * Management Functions" of the CUDA Driver API 13.0.
 */
#include "driver_state.h"
#include "export.h"
#include "image.h"
#include "options.h"
#include "queue.h"
#include "space.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* The JIT options that this device looks at, and where its answers go. */
struct jit {
    char *info, *errors;
    size_t info_bytes, error_bytes;
    void **info_size, **error_size, **wall_time;
};

static void read_options(unsigned count, const CUjit_option *options, void **values,
                         struct jit *jit) {
    for (unsigned i = 0; i < count; i++) {
        switch ((int)options[i]) {
        case CU_JIT_INFO_LOG_BUFFER:
            jit->info = values[i];
            break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            jit->info_bytes = (size_t)(uintptr_t)values[i];
            jit->info_size = &values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER:
            jit->errors = values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            jit->error_bytes = (size_t)(uintptr_t)values[i];
            jit->error_size = &values[i];
            break;
        case CU_JIT_WALL_TIME:
            jit->wall_time = &values[i];
            break;
        default:
            break;
        }
    }
}

static void answer(char *buffer, size_t bytes, void **size, const char *text) {
    size_t length = 0;
    if (buffer != NULL && bytes > 0) {
        snprintf(buffer, bytes, "%s", text);
        length = strlen(buffer) + (text[0] != '\0');
    }
    if (size != NULL) *size = (void *)(uintptr_t)length;
}

/* Cubins and fatbins hold machine code, which this device has none of. */
static bool is_binary(const void *image) {
    static const unsigned char elf[4] = {0x7f, 'E', 'L', 'F'};
    static const unsigned char fatbin[4] = {0x50, 0xed, 0x55, 0xba};
    static const unsigned char wrapper[4] = {0xb1, 0x43, 0x62, 0x46};
    const unsigned char *byte = image;
    /* Text shorter than four bytes ends before the comparison does. */
    for (int i = 0; i < 3; i++) {
        if (byte[i] == '\0') return false;
    }
    return memcmp(image, elf, 4) == 0 || memcmp(image, fatbin, 4) == 0 ||
           memcmp(image, wrapper, 4) == 0;
}

static CUresult load(CUmodule *handle, const void *image, struct jit *jit) {
    struct soft_context *context = NULL;
    struct soft_module *module = NULL;
    char log[2048] = "";
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL || image == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (is_binary(image)) {
        snprintf(log, sizeof log, "this device runs PTX; the image is machine code of a GPU\n");
        result = CUDA_ERROR_NO_BINARY_FOR_GPU;
    } else {
        result = (CUresult)soft_module_load(image, strlen(image), context->device->ordinal, &module,
                                            log, sizeof log);
    }
    if (result == CUDA_SUCCESS && (int)module->ptx.target > soft_options()->compute_capability) {
        snprintf(log, sizeof log, "PTX for sm_%u, and the device has compute capability %d.%d\n",
                 module->ptx.target, soft_options()->compute_capability / 10,
                 soft_options()->compute_capability % 10);
        soft_module_release(module);
        result = CUDA_ERROR_INVALID_PTX;
    }
    answer(jit->info, jit->info_bytes, jit->info_size, "");
    answer(jit->errors, jit->error_bytes, jit->error_size, log);
    if (result != CUDA_SUCCESS) {
        soft_log_add(log);
        return result;
    }
    pthread_mutex_lock(&soft_lock);
    module->next = context->modules;
    context->modules = module;
    soft_handle_add(SOFT_HANDLE_MODULE, module);
    for (struct soft_function *f = module->functions; f != NULL; f = f->next) {
        if (f->ptx->entry) soft_handle_add(SOFT_HANDLE_FUNCTION, f);
    }
    pthread_mutex_unlock(&soft_lock);
    *handle = (CUmodule)module;
    return CUDA_SUCCESS;
}

EXPORT(cuModuleLoadData, (CUmodule * module, const void *image)) {
    struct jit jit = {0};
    return load(module, image, &jit);
}

EXPORT(cuModuleLoadDataEx, (CUmodule * module, const void *image, unsigned int count,
                            CUjit_option *options, void **values)) {
    struct jit jit = {0};
    struct timespec begin, end;
    if (count > 0 && (options == NULL || values == NULL)) return CUDA_ERROR_INVALID_VALUE;
    read_options(count, options, values, &jit);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    CUresult result = load(module, image, &jit);
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (jit.wall_time != NULL) {
        float ms = (float)((double)(end.tv_sec - begin.tv_sec) * 1e3 +
                           (double)(end.tv_nsec - begin.tv_nsec) * 1e-6);
        memcpy((void *)jit.wall_time, &ms, sizeof ms);
    }
    return result;
}

EXPORT(cuModuleUnload, (CUmodule handle)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    struct soft_module *module = (struct soft_module *)handle;
    pthread_mutex_lock(&soft_lock);
    bool known = soft_handle_is(SOFT_HANDLE_MODULE, module);
    if (known) {
        struct soft_module **link = &context->modules;
        while (*link != NULL && *link != module) link = &(*link)->next;
        if (*link == module) *link = module->next;
        soft_handle_remove(SOFT_HANDLE_MODULE, module);
        for (struct soft_function *f = module->functions; f != NULL; f = f->next) {
            soft_handle_remove(SOFT_HANDLE_FUNCTION, f);
        }
    }
    pthread_mutex_unlock(&soft_lock);
    /* Launches that have not ended hold references of their own. */
    if (known) soft_module_release(module);
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Whether a handle is a live module. */
static CUresult check_module(CUmodule handle) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    bool known = soft_handle_is(SOFT_HANDLE_MODULE, handle);
    pthread_mutex_unlock(&soft_lock);
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT(cuModuleGetFunction, (CUfunction * function, CUmodule handle, const char *name)) {
    CUresult result = check_module(handle);
    if (result != CUDA_SUCCESS) return result;
    if (function == NULL || name == NULL) return CUDA_ERROR_INVALID_VALUE;
    struct soft_function *f = ((struct soft_module *)handle)->functions;
    while (f != NULL && (!f->ptx->entry || strcmp(f->code->name, name) != 0)) f = f->next;
    if (f == NULL) return CUDA_ERROR_NOT_FOUND;
    *function = (CUfunction)f;
    return CUDA_SUCCESS;
}

EXPORT(cuModuleGetGlobal_v2,
       (CUdeviceptr * address, size_t *bytes, CUmodule handle, const char *name)) {
    CUresult result = check_module(handle);
    if (result != CUDA_SUCCESS) return result;
    if (name == NULL) return CUDA_ERROR_INVALID_VALUE;
    const struct ptx_variable *v = ((struct soft_module *)handle)->ptx.variables;
    for (; v != NULL; v = v->next) {
        bool global = v->space == PTX_global || v->space == PTX_constant;
        if (global && v->placed && strlen(name) == v->symbol->length &&
            memcmp(name, v->symbol->name, v->symbol->length) == 0) {
            break;
        }
    }
    if (v == NULL) return CUDA_ERROR_NOT_FOUND;
    if (address != NULL) *address = v->address;
    if (bytes != NULL) *bytes = (size_t)v->bytes;
    return CUDA_SUCCESS;
}

static CUresult find_function(CUfunction handle, struct soft_function **function) {
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
    CUresult result = find_function(handle, &function);
    if (result != CUDA_SUCCESS) return result;
    if (value == NULL) return CUDA_ERROR_INVALID_VALUE;
    const struct soft_code *code = function->code;
    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)code->block_threads_max;
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)code->shared_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *value = 0;
        break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = (int)code->local_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = (int)code->registers;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        *value = (int)function->module->ptx.target;
        break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = soft_options()->compute_capability;
        break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
        *value = 0;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = (int)function->dynamic_shared_max;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = -1;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

EXPORT(cuFuncSetAttribute, (CUfunction handle, CUfunction_attribute attribute, int value)) {
    enum { SHARED_OPTIN_BYTES = 232448 };
    struct soft_function *function = NULL;
    CUresult result = find_function(handle, &function);
    if (result != CUDA_SUCCESS) return result;
    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || (uint32_t)value + function->code->shared_bytes > SHARED_OPTIN_BYTES) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        function->dynamic_shared_max = (uint32_t)value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT(cuFuncGetParamInfo, (CUfunction handle, size_t index, size_t *offset, size_t *bytes)) {
    struct soft_function *function = NULL;
    CUresult result = find_function(handle, &function);
    if (result != CUDA_SUCCESS) return result;
    if (offset == NULL || index >= function->code->parameter_count) return CUDA_ERROR_INVALID_VALUE;
    *offset = function->code->parameter_offsets[index];
    if (bytes != NULL) *bytes = function->code->parameter_sizes[index];
    return CUDA_SUCCESS;
}

EXPORT(cuLogsCurrent, (CUlogIterator * iterator, unsigned int flags)) {
    if (iterator == NULL || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *iterator = soft_log_end();
    return CUDA_SUCCESS;
}

EXPORT(cuLogsDumpToMemory,
       (CUlogIterator * iterator, char *buffer, size_t *size, unsigned int flags)) {
    CUlogIterator all = 0;
    if (buffer == NULL || size == NULL || *size == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *size = soft_log_dump(iterator != NULL ? iterator : &all, buffer, *size);
    return CUDA_SUCCESS;
}

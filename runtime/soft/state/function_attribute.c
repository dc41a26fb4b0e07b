/*
 * Attributes of kernels.
 */
#include "function_attribute.h"

#include "base/options.h"
#include "machine/machine_state.h"

enum { CLUSTER_POLICY_MAX = 2 };

/* The requirements of the kernel's text take precedence over the program's settings. */
static const uint32_t *function_attribute_required(const struct soft_function *function) {
    const uint32_t *own = function->code->cluster_required;
    return own[0] > 0 ? own : function->clusters.required;
}

/* A program may require what the text does not. */
static CUresult function_attribute_require(struct soft_function *function, int dimension,
                                           int value) {
    const uint32_t *own = function->code->cluster_required;
    if (value < 0 || value > SOFT_CLUSTER_MAX) return CUDA_ERROR_INVALID_VALUE;
    if (own[0] > 0 && own[dimension] != (uint32_t)value) return CUDA_ERROR_INVALID_VALUE;
    function->clusters.required[dimension] = (uint32_t)value;
    return CUDA_SUCCESS;
}

/* Of the kernel's text, whether it uses them or not. */
static int constant_bytes(const struct ptx_module *text) {
    uint64_t bytes = 0;
    for (const struct ptx_variable *v = text->variables; v != NULL; v = v->next) {
        if (v->space == PTX_constant) bytes += v->bytes;
    }
    return (int)bytes; /* at most 64 KiB, as checked by the loader */
}

CUresult soft_function_attribute(const struct soft_function *function, int attribute, int *value) {
    const struct soft_code *code = function->code;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)code->block_threads_max;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)code->shared_bytes;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *value = constant_bytes(&function->unit->ptx);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = (int)code->local_bytes;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        if (!soft_module_complete(function)) return CUDA_ERROR_OUT_OF_MEMORY;
        *value = (int)code->registers;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        *value = (int)function->unit->ptx.target;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = soft_options()->compute_capability;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = (int)function->dynamic_shared_max;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = function->carveout;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        *value = code->cluster_needed && code->cluster_required[0] == 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        *value = (int)function_attribute_required(
            function)[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *value = function->clusters.large;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *value = function->clusters.policy;
        return CUDA_SUCCESS;
    default:
        /* Of the rest there is none. */
        *value = 0;
        return attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX ? CUDA_SUCCESS
                                                                   : CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult soft_function_set_attribute(struct soft_function *function, int attribute, int value) {
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || (uint64_t)value + function->code->shared_bytes > SOFT_SHARED_OPTIN_BYTES) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        function->dynamic_shared_max = (uint32_t)value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
        function->carveout = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        return function_attribute_require(
            function, attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, value);
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        if (value != 0 && value != 1) return CUDA_ERROR_INVALID_VALUE;
        function->clusters.large = value != 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        if (value < 0 || value > CLUSTER_POLICY_MAX) return CUDA_ERROR_INVALID_VALUE;
        function->clusters.policy = value;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult soft_function_parameter(const struct soft_function *function, size_t index, size_t *offset,
                                 size_t *bytes) {
    if (offset == NULL || index >= function->code->parameter_count) return CUDA_ERROR_INVALID_VALUE;
    *offset = function->code->parameter_offsets[index];
    if (bytes != NULL) *bytes = function->code->parameter_sizes[index];
    return CUDA_SUCCESS;
}

/*
 * Settings of a context: flags, limits, preferences. As in "Context Management" and "Profiler
 * Control" of the CUDA Driver API 13.0.
 *
 * Most settings are hints that a driver may ignore, and this one does. Values can be read back, and
 * what a driver rejects is rejected.
 */
#include "base/context_flags.h"
#include "state/contexts.h"
#include "state/driver_state.h"
#include "export.h"
#include "base/options.h"

EXPORT(cuCtxGetFlags, (unsigned int *flags)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (flags == NULL) return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

EXPORT(cuCtxSetFlags, (unsigned int flags)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (!soft_context_flags_are(flags)) return CUDA_ERROR_INVALID_VALUE;
    context->flags = flags;
    return CUDA_SUCCESS;
}

/* Local memory of a thread: CUDA C++ Programming Guide 13.0, "Technical Specifications per Compute
 * Capability". */
enum { STACK_MAX_BYTES = 512 * 1024 };

/* Whether a device of this compute capability has the limit. */
static CUresult check_limit(CUlimit limit) {
    if (limit < 0 || limit > CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED) return CUDA_ERROR_INVALID_VALUE;
    bool gone =
        limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH && soft_options()->compute_capability >= 90;
    return gone || limit >= SOFT_LIMITS ? CUDA_ERROR_UNSUPPORTED_LIMIT : CUDA_SUCCESS;
}

EXPORT(cuCtxGetLimit, (size_t * value, CUlimit limit)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (value == NULL) return CUDA_ERROR_INVALID_VALUE;
    result = check_limit(limit);
    if (result == CUDA_SUCCESS) *value = context->limits[limit];
    return result;
}

EXPORT(cuCtxSetLimit, (CUlimit limit, size_t value)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result == CUDA_SUCCESS) result = check_limit(limit);
    if (result != CUDA_SUCCESS) return result;
    if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > 128) return CUDA_ERROR_INVALID_VALUE;
    if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE) value = 0; /* the most this device has */
    if (limit == CU_LIMIT_STACK_SIZE && value > STACK_MAX_BYTES) return CUDA_ERROR_INVALID_VALUE;
    if (limit == CU_LIMIT_STACK_SIZE) value = (value + 15) / 16 * 16;
    context->limits[limit] = value;
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) context->reach.heap_bytes = value;
    return CUDA_SUCCESS;
}

EXPORT(cuCtxGetCacheConfig, (CUfunc_cache * config)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (config == NULL) return CUDA_ERROR_INVALID_VALUE;
    *config = context->cache_config;
    return CUDA_SUCCESS;
}

EXPORT(cuCtxSetCacheConfig, (CUfunc_cache config)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    context->cache_config = config;
    return CUDA_SUCCESS;
}

/* Banks have had four bytes since Maxwell; the setting has no effect. */
EXPORT(cuCtxGetSharedMemConfig, (CUsharedconfig * config)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (config == NULL) return CUDA_ERROR_INVALID_VALUE;
    *config = context->shared_config;
    return CUDA_SUCCESS;
}

EXPORT(cuCtxSetSharedMemConfig, (CUsharedconfig config)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    bool known = config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE &&
                 config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT(cuCtxResetPersistingL2Cache, (void)) {
    struct soft_context *context = NULL;
    return soft_context_current(&context);
}

EXPORT(cuCtxGetExecAffinity, (CUexecAffinityParam * affinity, CUexecAffinityType type)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (affinity == NULL || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

EXPORT(cuProfilerStart, (void)) {
    struct soft_context *context = NULL;
    return soft_context_current(&context);
}

EXPORT(cuProfilerStop, (void)) {
    struct soft_context *context = NULL;
    return soft_context_current(&context);
}

/*
 * cuLaunchKernel. As in "Execution Control" of the CUDA Driver API 13.0.
 */
#include "driver_state.h"
#include "export.h"
#include "options.h"
#include "queue.h"

#include <stdlib.h>
#include <string.h>

/* The words of the "extra" list. */
enum { PARAM_END = 0, PARAM_BUFFER_POINTER = 1, PARAM_BUFFER_SIZE = 2 };

static bool shape_fits(const struct soft_function *function, const uint32_t grid[3],
                       const uint32_t block[3], uint32_t shared) {
    const struct soft_code *code = function->code;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    bool fits = grid[0] > 0 && grid[1] > 0 && grid[2] > 0 && grid[0] <= INT32_MAX &&
                grid[1] <= UINT16_MAX && grid[2] <= UINT16_MAX && block[0] > 0 &&
                block[0] <= 1024 && block[1] > 0 && block[1] <= 1024 && block[2] > 0 &&
                block[2] <= 64 && threads <= code->block_threads_max &&
                shared <= function->dynamic_shared_max;
    for (int i = 0; i < 3 && code->block_required[0] > 0; i++) {
        fits = fits && block[i] == code->block_required[i];
    }
    return fits;
}

/* Gathers the parameters into one buffer, as the kernel sees them. */
static CUresult gather(const struct soft_code *code, void **values, void **extra,
                       uint8_t *parameters) {
    if (extra != NULL) {
        const void *buffer = NULL;
        size_t bytes = 0;
        for (; extra[0] != (void *)PARAM_END; extra += 2) {
            if (extra[0] == (void *)PARAM_BUFFER_POINTER) buffer = extra[1];
            if (extra[0] == (void *)PARAM_BUFFER_SIZE) memcpy(&bytes, extra[1], sizeof bytes);
        }
        if (values != NULL || buffer == NULL || bytes < code->parameter_bytes) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        memcpy(parameters, buffer, code->parameter_bytes);
        return CUDA_SUCCESS;
    }
    if (code->parameter_count > 0 && values == NULL) return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < code->parameter_count; i++) {
        if (values[i] == NULL) return CUDA_ERROR_INVALID_VALUE;
        memcpy(parameters + code->parameter_offsets[i], values[i], code->parameter_sizes[i]);
    }
    return CUDA_SUCCESS;
}

static struct soft_operation *new_launch(const struct soft_code *code) {
    struct soft_operation *operation = calloc(1, sizeof *operation);
    struct soft_launch *launch = calloc(1, sizeof *launch);
    /* Loads of up to eight bytes may begin at the last parameter. */
    uint8_t *parameters = calloc(1, (size_t)code->parameter_bytes + 8);
    if (operation == NULL || launch == NULL || parameters == NULL) {
        free(operation);
        free(launch);
        free(parameters);
        return NULL;
    }
    operation->kind = SOFT_OPERATION_LAUNCH;
    operation->launch = launch;
    launch->parameters = parameters;
    pthread_mutex_init(&launch->lock, NULL);
    return operation;
}

static void drop(struct soft_operation *operation) {
    pthread_mutex_destroy(&operation->launch->lock);
    free(operation->launch->parameters);
    free(operation->launch);
    free(operation);
}

EXPORT(cuLaunchKernel,
       (CUfunction handle, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
        unsigned int sharedMemBytes, CUstream stream_handle, void **kernelParams, void **extra)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(stream_handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    bool known = soft_handle_is(SOFT_HANDLE_FUNCTION, handle);
    pthread_mutex_unlock(&soft_lock);
    if (!known) return CUDA_ERROR_INVALID_HANDLE;

    const struct soft_function *function = (const struct soft_function *)handle;
    const uint32_t grid[3] = {gridDimX, gridDimY, gridDimZ};
    const uint32_t block[3] = {blockDimX, blockDimY, blockDimZ};
    if (!shape_fits(function, grid, block, sharedMemBytes)) return CUDA_ERROR_INVALID_VALUE;
    struct soft_operation *operation = new_launch(function->code);
    if (operation == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    struct soft_launch *launch = operation->launch;
    result = gather(function->code, kernelParams, extra, launch->parameters);
    if (result != CUDA_SUCCESS) {
        drop(operation);
        return result;
    }
    launch->code = function->code;
    launch->module = function->module;
    atomic_fetch_add(&function->module->references, 1);
    memcpy(launch->grid, grid, sizeof grid);
    memcpy(launch->block, block, sizeof block);
    uint32_t fixed = function->code->shared_bytes;
    launch->dynamic_shared = sharedMemBytes;
    launch->shared_bytes = sharedMemBytes > 0 ? (fixed + 15) / 16 * 16 + sharedMemBytes : fixed;
    launch->ctas = (uint64_t)grid[0] * grid[1] * grid[2];
    launch->budget = soft_options()->budget;
    return soft_queue_add(stream, operation);
}

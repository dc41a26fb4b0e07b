/*
 * Checking a launch, and gathering its parameters.
 */
#include "kernel_call.h"

#include "state/occupancy.h"

#include <stdlib.h>
#include <string.h>

/* The cluster of a launch, as the kernel or the launch requires it; and the grid in blocks. */
struct launch_shape {
    uint32_t grid[3], cluster[3];
    bool explicit_clusters;
};

static CUresult find_shape(const struct soft_function *function,
                           const struct soft_kernel_call *call, struct launch_shape *shape) {
    const struct soft_code *code = function->code;
    memcpy(shape->cluster, call->cluster, sizeof shape->cluster);
    CUresult result = soft_occupancy_cluster(function, shape->cluster);
    if (result != CUDA_SUCCESS) return result;
    shape->explicit_clusters =
        call->cluster[0] > 0 || code->cluster_required[0] > 0 || function->clusters.required[0] > 0;
    for (int i = 0; i < 3; i++) {
        uint64_t along = call->grid[i];
        if (code->blocks_are_clusters) along *= shape->cluster[i];
        if (along > INT32_MAX || along % shape->cluster[i] != 0) return CUDA_ERROR_INVALID_VALUE;
        shape->grid[i] = (uint32_t)along;
    }
    return CUDA_SUCCESS;
}

static bool kernel_call_shape_fits(const struct soft_function *function,
                                   const struct soft_kernel_call *call, const uint32_t grid[3]) {
    const struct soft_code *code = function->code;
    const uint32_t *block = call->block;
    bool fits = grid[0] > 0 && grid[1] > 0 && grid[2] > 0 && grid[0] <= INT32_MAX &&
                grid[1] <= UINT16_MAX && grid[2] <= UINT16_MAX && block[0] > 0 &&
                block[0] <= 1024 && block[1] > 0 && block[1] <= 1024 && block[2] > 0 &&
                block[2] <= 64 && call->shared <= function->dynamic_shared_max;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    fits = fits && threads <= code->block_threads_max;
    for (int i = 0; i < 3 && code->block_required[0] > 0; i++) {
        fits = fits && block[i] == code->block_required[i];
    }
    return fits;
}

/* All blocks of a cooperative launch must be resident at the same time. */
static bool can_cooperate(const struct soft_function *function,
                          const struct soft_kernel_call *call) {
    uint32_t threads = call->block[0] * call->block[1] * call->block[2];
    uint64_t most = (uint64_t)soft_occupancy_blocks(function, threads, call->shared) *
                    soft_occupancy_processors();
    uint64_t layer = (uint64_t)call->grid[0] * call->grid[1];
    return layer <= most && layer * call->grid[2] <= most;
}

/* Copies the parameters from one buffer with the caller's layout. */
static CUresult copy_buffer(const struct soft_code *code, void **extra, uint8_t *parameters) {
    const void *buffer = NULL;
    size_t bytes = 0;
    for (; extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            buffer = extra[1];
        } else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1] != NULL) {
            memcpy(&bytes, extra[1], sizeof bytes);
        } else {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    if (code->parameter_bytes == 0) return CUDA_SUCCESS;
    if (buffer == NULL || bytes < code->parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
    memcpy(parameters, buffer, code->parameter_bytes);
    return CUDA_SUCCESS;
}

/* Gathers the parameters into one buffer, as the kernel sees them. */
static CUresult kernel_call_gather(const struct soft_code *code,
                                   const struct soft_kernel_call *call, uint8_t *parameters) {
    if (call->extra != NULL && call->parameters != NULL) return CUDA_ERROR_INVALID_VALUE;
    if (call->extra != NULL) return copy_buffer(code, call->extra, parameters);
    if (code->parameter_count > 0 && call->parameters == NULL) return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < code->parameter_count; i++) {
        if (call->parameters[i] == NULL) return CUDA_ERROR_INVALID_VALUE;
        memcpy(parameters + code->parameter_offsets[i], call->parameters[i],
               code->parameter_sizes[i]);
    }
    return CUDA_SUCCESS;
}

/* A first launch takes as long as lowering does. */
static bool kernel_call_complete(const struct soft_function *function) {
    if (atomic_load_explicit(&function->code->is_complete, memory_order_acquire)) return true;
    pthread_mutex_unlock(&soft_lock);
    bool ok = soft_module_complete(function);
    pthread_mutex_lock(&soft_lock);
    return ok;
}

CUresult soft_kernel_task(const struct soft_kernel_call *call, struct soft_context *context,
                          struct soft_task *task) {
    struct soft_function *function = NULL;
    CUresult result = soft_function_find_locked(call->function, context, &function);
    if (result != CUDA_SUCCESS) return result;
    /* A function belongs to one context, and runs only in its streams. */
    if (function->module->slot != context->reach.slot) return CUDA_ERROR_INVALID_HANDLE;
    struct launch_shape shape;
    result = find_shape(function, call, &shape);
    if (result != CUDA_SUCCESS) return result;
    if (!kernel_call_shape_fits(function, call, shape.grid)) return CUDA_ERROR_INVALID_VALUE;
    if (!kernel_call_complete(function)) return CUDA_ERROR_OUT_OF_MEMORY;
    if (call->cooperative && !can_cooperate(function, call)) {
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    }
    /* Loads of up to eight bytes may start at the last parameter. */
    uint8_t *parameters = calloc(1, (size_t)function->code->parameter_bytes + 8);
    if (parameters == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    result = kernel_call_gather(function->code, call, parameters);
    if (result != CUDA_SUCCESS) {
        free(parameters);
        return result;
    }
    task->kind = SOFT_TASK_KERNEL;
    task->is.kernel = (struct soft_kernel){.function = function,
                                           .shared = call->shared,
                                           .explicit_clusters = shape.explicit_clusters,
                                           .cooperative = call->cooperative,
                                           .programmatic = call->programmatic,
                                           .parameters = parameters};
    memcpy(task->is.kernel.grid, shape.grid, sizeof shape.grid);
    memcpy(task->is.kernel.cluster, shape.cluster, sizeof shape.cluster);
    memcpy(task->is.kernel.block, call->block, sizeof call->block);
    return CUDA_SUCCESS;
}

/*
 * Launching: four comparisons of handles, nine of sizes, one per argument, one driver call.
 *
 * H4 and H11 measure this path, and launch_bench.c breaks it down. Failures are reported by
 * separate functions that take addresses, so nothing has to be kept in registers across the
 * driver's call, and the path without failures stays short.
 */
#include "tollens/launch.h"

#include "core/check.h"
#include "core/nvtx.h"
#include "core/residence.h"
#include "core/stream_state.h"
#include "launch_check.h"
#include "core/module_state.h"

#include <string.h>

static unsigned blocks_for(unsigned long long threads, unsigned block) {
    if (block == 0) return 0;
    unsigned long long blocks = threads / block + (threads % block != 0);
    return blocks > UINT32_MAX ? UINT32_MAX : (unsigned)blocks;
}

struct tol_launch_shape tol_launch_linear(unsigned long long threads, unsigned block) {
    return (struct tol_launch_shape){blocks_for(threads, block), 1, 1, block, 1, 1, 0};
}

struct tol_launch_shape tol_launch_plane(unsigned threads_x, unsigned threads_y, unsigned block_x,
                                         unsigned block_y) {
    return (struct tol_launch_shape){
        blocks_for(threads_x, block_x), blocks_for(threads_y, block_y), 1, block_x, block_y, 1, 0};
}

struct tol_launch_shape tol_launch_volume(unsigned threads_x, unsigned threads_y,
                                          unsigned threads_z, unsigned block_x, unsigned block_y,
                                          unsigned block_z) {
    return (struct tol_launch_shape){blocks_for(threads_x, block_x),
                                     blocks_for(threads_y, block_y),
                                     blocks_for(threads_z, block_z),
                                     block_x,
                                     block_y,
                                     block_z,
                                     0};
}

static bool launch_shape_fits(const struct tol_kernel *kernel,
                              const struct tol_launch_shape *shape) {
    const struct tol_device *device = &kernel->context->device;
    unsigned long long threads =
        (unsigned long long)shape->block_x * shape->block_y * (unsigned long long)shape->block_z;
    /* One comparison rejects both zero and too much: zero minus one is the largest number. */
    return shape->grid_x - 1 < (unsigned)device->grid_max[0] &&
           shape->grid_y - 1 < (unsigned)device->grid_max[1] &&
           shape->grid_z - 1 < (unsigned)device->grid_max[2] &&
           shape->block_x - 1 < (unsigned)device->block_max[0] &&
           shape->block_y - 1 < (unsigned)device->block_max[1] &&
           shape->block_z - 1 < (unsigned)device->block_max[2] &&
           threads <= kernel->block_threads_max &&
           shape->shared_bytes <=
               atomic_load_explicit(&kernel->shared_dynamic_bytes_max, memory_order_relaxed);
}

TOL_COLD static tol_status refuse_shape(const struct tol_kernel *kernel,
                                        const struct tol_launch_shape *shape) {
    const struct tol_device *device = &kernel->context->device;
    return tol_fail(
        __FILE__, __LINE__, TOL_OVER_LIMIT,
        "the kernel \"%s\" cannot be launched as a grid of %u x %u x %u blocks of "
        "%u x %u x %u threads, %llu in all, with %u bytes of shared memory each: none may be 0, "
        "and "
        "the limits are a grid of %d x %d x %d, a block of %d x %d x %d and %u threads, "
        "and %u bytes",
        kernel->name, shape->grid_x, shape->grid_y, shape->grid_z, shape->block_x, shape->block_y,
        shape->block_z,
        (unsigned long long)shape->block_x * shape->block_y * (unsigned long long)shape->block_z,
        shape->shared_bytes, device->grid_max[0], device->grid_max[1], device->grid_max[2],
        device->block_max[0], device->block_max[1], device->block_max[2], kernel->block_threads_max,
        atomic_load(&kernel->shared_dynamic_bytes_max));
}

/* Compares two at a time, in place: the sizes are few, and memcmp takes longer than the rest of a
 * launch. */
static bool arguments_fit(const struct tol_kernel *kernel, const struct tol_arguments *arguments) {
    const int count = kernel->parameter_count;
    if (count < 0) return true;
    if (arguments->count != (unsigned)count) return false;
    int i = 0;
    uint64_t given = 0, wanted = 0, both = 0;
    for (; i + 2 <= count; i += 2) {
        memcpy(&given, arguments->bytes + i, sizeof given);
        memcpy(&wanted, kernel->parameter_bytes + i, sizeof wanted);
        both |= given ^ wanted;
    }
    if (i < count) both |= arguments->bytes[i] ^ kernel->parameter_bytes[i];
    return both == 0;
}

TOL_COLD static tol_status refuse_arguments(const struct tol_kernel *kernel,
                                            const struct tol_arguments *arguments) {
    if (arguments->count != (unsigned)kernel->parameter_count) {
        return tol_fail(__FILE__, __LINE__, TOL_WRONG_ARGUMENTS,
                        "the kernel \"%s\" has %d parameters, but was given %u arguments",
                        kernel->name, kernel->parameter_count, arguments->count);
    }
    unsigned i = 0;
    while (arguments->bytes[i] == kernel->parameter_bytes[i]) i++;
    return tol_fail(__FILE__, __LINE__, TOL_WRONG_ARGUMENTS,
                    "argument %u of the kernel \"%s\" must have %u bytes, but has %u "
                    "(arguments are counted from 0)",
                    i, kernel->name, kernel->parameter_bytes[i], arguments->bytes[i]);
}

/* For a context with device_memory_only. */
TOL_COLD static tol_status refuse_astray(const struct tol_kernel *kernel,
                                         const struct tol_arguments *arguments) {
    tol_status status = TOL_OK;
    for (unsigned i = 0; i < arguments->count && status == TOL_OK; i++) {
        CUdeviceptr value = 0;
        if (arguments->bytes[i] != sizeof value) continue;
        memcpy(&value, arguments->values[i], sizeof value);
        status = tol_context_refuse_argument(kernel->context, value, i, kernel->name);
    }
    return status;
}

tol_status tol_launch_check(const struct tol_kernel *kernel, const struct tol_launch_shape *shape,
                            const struct tol_arguments *arguments) {
    if (!launch_shape_fits(kernel, shape)) return refuse_shape(kernel, shape);
    if (!arguments_fit(kernel, arguments)) return refuse_arguments(kernel, arguments);
    return kernel->context->device_memory_only ? refuse_astray(kernel, arguments) : TOL_OK;
}

TOL_COLD static tol_status refuse_handles(const struct tol_stream *stream,
                                          const struct tol_kernel *kernel) {
    if (stream == NULL || kernel == NULL) {
        return tol_fail(__FILE__, __LINE__, TOL_INVALID_ARGUMENT, "tol_launch: %s is NULL",
                        stream == NULL ? "stream" : "kernel");
    }
    return tol_fail(__FILE__, __LINE__, TOL_WRONG_CONTEXT,
                    "the stream belongs to device %d, the kernel \"%s\" to device %d",
                    stream->context->device.ordinal, kernel->name, kernel->context->device.ordinal);
}

TOL_COLD static tol_status launch_fail(const struct tol_stream *stream,
                                       const struct tol_kernel *kernel,
                                       const struct tol_launch_shape *shape, const char *call,
                                       CUresult result) {
    return tol_context_fail(
        stream->context, __FILE__, __LINE__, call, (int)result,
        "launching \"%s\" on stream %u as %u x %u x %u blocks of %u x %u x %u threads",
        kernel->name, stream->number, shape->grid_x, shape->grid_y, shape->grid_z, shape->block_x,
        shape->block_y, shape->block_z);
}

/* In both of its callers. By address, so that nothing is copied. */
TOL_INLINE static tol_status launch(struct tol_stream *stream, const struct tol_kernel *kernel,
                                    const struct tol_launch_shape *shape,
                                    const struct tol_arguments *arguments) {
    if (TOL_UNLIKELY(stream == NULL || kernel == NULL || stream->context != kernel->context)) {
        return refuse_handles(stream, kernel);
    }
    tol_status status = tol_context_enter(kernel->context);
    if (TOL_UNLIKELY(status != TOL_OK)) return status;
    if (TOL_UNLIKELY(!launch_shape_fits(kernel, shape))) return refuse_shape(kernel, shape);
    if (TOL_UNLIKELY(!arguments_fit(kernel, arguments))) return refuse_arguments(kernel, arguments);
    if (TOL_UNLIKELY(kernel->context->device_memory_only)) {
        status = refuse_astray(kernel, arguments);
        if (status != TOL_OK) return status;
    }
    atomic_store_explicit(&stream->last_kernel, kernel->name, memory_order_relaxed);
    CUresult result = kernel->functions->cuLaunchKernel(
        kernel->handle, shape->grid_x, shape->grid_y, shape->grid_z, shape->block_x, shape->block_y,
        shape->block_z, shape->shared_bytes, stream->handle, arguments->values, NULL);
    if (TOL_UNLIKELY(result != CUDA_SUCCESS))
        return launch_fail(stream, kernel, shape, "cuLaunchKernel", result);
    return TOL_OK;
}

TOL_COLD static tol_status launch_in_range(struct tol_stream *stream,
                                           const struct tol_kernel *kernel,
                                           const struct tol_launch_shape *shape,
                                           const struct tol_arguments *arguments) {
    TOL_RANGE("tol_launch", 0);
    return launch(stream, kernel, shape, arguments);
}

tol_status tol_launch(struct tol_stream *stream, const struct tol_kernel *kernel,
                      struct tol_launch_shape shape, struct tol_arguments arguments) {
    if (TOL_UNLIKELY(tol_nvtx_listens)) return launch_in_range(stream, kernel, &shape, &arguments);
    return launch(stream, kernel, &shape, &arguments);
}

bool tol_launch_has_programmatic(const struct tol_context *context) {
    enum { HOPPER = 90 };
    return tol_driver_has(context->driver, TOL_FEATURE_LAUNCH_EX) &&
           context->device.compute_capability >= HOPPER;
}

tol_status tol_launch_programmatic(struct tol_stream *stream, const struct tol_kernel *kernel,
                                   struct tol_launch_shape shape, struct tol_arguments arguments) {
    TOL_RANGE("tol_launch_programmatic", 0);
    if (stream == NULL || kernel == NULL || stream->context != kernel->context) {
        return refuse_handles(stream, kernel);
    }
    if (!tol_launch_has_programmatic(kernel->context)) {
        return tol_launch(stream, kernel, shape, arguments);
    }
    tol_status status = tol_context_enter(kernel->context);
    if (status == TOL_OK) status = tol_launch_check(kernel, &shape, &arguments);
    if (status != TOL_OK) return status;
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                   .value.programmaticStreamSerializationAllowed = 1};
    const CUlaunchConfig config = {.gridDimX = shape.grid_x,
                                   .gridDimY = shape.grid_y,
                                   .gridDimZ = shape.grid_z,
                                   .blockDimX = shape.block_x,
                                   .blockDimY = shape.block_y,
                                   .blockDimZ = shape.block_z,
                                   .sharedMemBytes = shape.shared_bytes,
                                   .hStream = stream->handle,
                                   .attrs = &attribute,
                                   .numAttrs = 1};
    atomic_store_explicit(&stream->last_kernel, kernel->name, memory_order_relaxed);
    CUresult result =
        kernel->functions->cuLaunchKernelEx(&config, kernel->handle, arguments.values, NULL);
    return result == CUDA_SUCCESS ? TOL_OK
                                  : launch_fail(stream, kernel, &shape, "cuLaunchKernelEx", result);
}

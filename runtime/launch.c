/*
 * Launching: four comparisons of handles, nine of sizes, one of the argument list, one driver call.
 *
 * This is the path that H4 and H11 measure. What goes wrong is told by functions of their own, so
 * that the straight way through stays short.
 */
#include "launch.h"

#include "check.h"
#include "handles.h"

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

static bool shape_fits(const struct tol_kernel *kernel, const struct tol_launch_shape *shape) {
    const struct tol_device *device = &kernel->context->device;
    unsigned long long threads =
        (unsigned long long)shape->block_x * shape->block_y * (unsigned long long)shape->block_z;
    /* One comparison refuses both zero and too much: zero minus one is the largest number. */
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

static tol_status refuse_shape(const struct tol_kernel *kernel,
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

static bool arguments_fit(const struct tol_kernel *kernel, const struct tol_arguments *arguments) {
    if (kernel->parameter_count < 0) return true;
    return arguments->count == (unsigned)kernel->parameter_count &&
           (arguments->count == 0 ||
            memcmp(arguments->bytes, kernel->parameter_bytes,
                   arguments->count * sizeof kernel->parameter_bytes[0]) == 0);
}

static tol_status refuse_arguments(const struct tol_kernel *kernel,
                                   const struct tol_arguments *arguments) {
    if (arguments->count != (unsigned)kernel->parameter_count) {
        return tol_fail(__FILE__, __LINE__, TOL_WRONG_ARGUMENTS,
                        "the kernel \"%s\" takes %d arguments and was given %u", kernel->name,
                        kernel->parameter_count, arguments->count);
    }
    unsigned i = 0;
    while (arguments->bytes[i] == kernel->parameter_bytes[i]) i++;
    return tol_fail(__FILE__, __LINE__, TOL_WRONG_ARGUMENTS,
                    "argument %u of the kernel \"%s\" has %u bytes and was given %u (arguments are "
                    "counted from 0)",
                    i, kernel->name, kernel->parameter_bytes[i], arguments->bytes[i]);
}

static tol_status refuse_handles(const struct tol_stream *stream, const struct tol_kernel *kernel) {
    if (stream == NULL || kernel == NULL) {
        return tol_fail(__FILE__, __LINE__, TOL_INVALID_ARGUMENT, "tol_launch: %s is NULL",
                        stream == NULL ? "stream" : "kernel");
    }
    return tol_fail(__FILE__, __LINE__, TOL_WRONG_CONTEXT,
                    "the stream belongs to device %d, the kernel \"%s\" to device %d",
                    stream->context->device.ordinal, kernel->name, kernel->context->device.ordinal);
}

tol_status tol_launch(struct tol_stream *stream, const struct tol_kernel *kernel,
                      struct tol_launch_shape shape, struct tol_arguments arguments) {
    tol_status status = TOL_OK;
    if (TOL_UNLIKELY(stream == NULL || kernel == NULL || stream->context != kernel->context)) {
        return refuse_handles(stream, kernel);
    }
    TOL_TRY(tol_context_enter(kernel->context));
    if (TOL_UNLIKELY(!shape_fits(kernel, &shape))) return refuse_shape(kernel, &shape);
    if (TOL_UNLIKELY(!arguments_fit(kernel, &arguments))) {
        return refuse_arguments(kernel, &arguments);
    }
    atomic_store_explicit(&stream->last_kernel, kernel->name, memory_order_relaxed);
    TOL_CONTEXT_CU(kernel->context, cuLaunchKernel,
                   (kernel->handle, shape.grid_x, shape.grid_y, shape.grid_z, shape.block_x,
                    shape.block_y, shape.block_z, shape.shared_bytes, stream->handle,
                    arguments.values, NULL),
                   "launching \"%s\" on stream %u as %u x %u x %u blocks of %u x %u x %u threads",
                   kernel->name, stream->number, shape.grid_x, shape.grid_y, shape.grid_z,
                   shape.block_x, shape.block_y, shape.block_z);
out:
    return status;
}

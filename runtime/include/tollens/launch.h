/*
 * Launch: runs a kernel on a stream, with a grid shape and typed arguments.
 *
 * A launch checks its arguments before it calls the driver: empty or too large shapes, more shared
 * memory than allowed, and, if the driver reports a kernel's parameters (CUDA 12.4), the number and
 * sizes of the arguments. A launch takes no lock, makes no lookup and allocates nothing.
 *
 * Threads: several threads may launch a kernel at the same time, also on one stream.
 * Source: spec 004 CRT-006, section 2.2 critique 1 (overhead), D-04.
 */
#ifndef TOLLENS_LAUNCH_H
#define TOLLENS_LAUNCH_H

#include "each.h"
#include "module.h"
#include "stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The shape of one launch. */
struct tol_launch_shape {
    unsigned grid_x, grid_y, grid_z;    /* in blocks */
    unsigned block_x, block_y, block_z; /* in threads */
    unsigned shared_bytes;              /* dynamic shared memory per block */
};

/* Shapes of one, two and three dimensions with at least the given number of threads in each. The
 * number of blocks is rounded up, so the last block may have threads beyond the number given: the
 * kernel must check its index. Zero threads give an empty shape, which a launch refuses. */
TOL_API struct tol_launch_shape tol_launch_linear(unsigned long long threads, unsigned block);
TOL_API struct tol_launch_shape tol_launch_plane(unsigned threads_x, unsigned threads_y,
                                                 unsigned block_x, unsigned block_y);
TOL_API struct tol_launch_shape tol_launch_volume(unsigned threads_x, unsigned threads_y,
                                                  unsigned threads_z, unsigned block_x,
                                                  unsigned block_y, unsigned block_z);

/* The arguments of one launch. The launch copies the values before it returns. */
struct tol_arguments {
    unsigned count;
    void **values;         /* the address of each value */
    const unsigned *bytes; /* the size of each value */
};

/*
 * Queues one run of the kernel on the stream and returns without waiting for it.
 *
 *     tol_launch(stream, kernel, tol_launch_linear(n, 256), TOL_ARGUMENTS(address, n));
 *
 * TOL_OVER_LIMIT: the shape is empty, or exceeds a limit of the device or the kernel; the message
 * names the shape and the limits. TOL_WRONG_ARGUMENTS: the number or the size of an argument
 * differs from the kernel's parameters. TOL_WRONG_CONTEXT: stream and kernel belong to different
 * contexts. TOL_NOT_RESIDENT: an argument is the address of memory that the context does not allow
 * (struct tol_context_options). TOL_INVALID_ARGUMENT: NULL. TOL_POISONED, TOL_DRIVER_ERROR.
 * An error inside the kernel is returned by the next call that waits for the stream.
 */
TOL_API tol_status tol_launch(struct tol_stream *stream, const struct tol_kernel *kernel,
                              struct tol_launch_shape shape, struct tol_arguments arguments);

/*
 * Like tol_launch, but the kernel may begin before the preceding kernel on the stream has ended
 * (programmatic dependent launch). The kernel must execute griddepcontrol.wait before it uses
 * results of the preceding kernel. Behaves as tol_launch if the driver or the device does not
 * support this (it needs compute capability 9.0).
 */
TOL_API tol_status tol_launch_programmatic(struct tol_stream *stream,
                                           const struct tol_kernel *kernel,
                                           struct tol_launch_shape shape,
                                           struct tol_arguments arguments);

/* Whether the driver and the device of the context support programmatic launches. */
TOL_API bool tol_launch_has_programmatic(const struct tol_context *context);

/* TOL_ARGUMENTS(a, b, ...) makes a struct tol_arguments from 1 to 16 expressions. Each is passed
 * with its own type: write (float)x if the parameter is a float. The values live until the end of
 * the enclosing block. Use TOL_NO_ARGUMENTS for a kernel without parameters. For more than 16
 * arguments fill in the struct. C only: the macros need compound literals. */
#define TOL_NO_ARGUMENTS ((struct tol_arguments){0, NULL, NULL})
#define TOL_ARGUMENTS(...)                                                                         \
    ((struct tol_arguments){TOL_EACH_COUNT(__VA_ARGS__),                                           \
                            (void *[]){TOL_EACH(TOL_ARGUMENT_ADDRESS, __VA_ARGS__)},               \
                            TOL_ARGUMENTS_BYTES(__VA_ARGS__)})
/* The sizes are compile-time constants, so a launch does not write them. */
#define TOL_ARGUMENTS_BYTES(...)                                                                   \
    __extension__({                                                                                \
        static const unsigned tol_bytes[] = {TOL_EACH(TOL_ARGUMENT_BYTES, __VA_ARGS__)};           \
        tol_bytes;                                                                                 \
    })
#define TOL_ARGUMENT_ADDRESS(x)                                                                    \
    (void *)&(__typeof__(x)) {                                                                     \
        x                                                                                          \
    }
#define TOL_ARGUMENT_BYTES(x) (unsigned)sizeof(x)

#ifdef __cplusplus
}
#endif
#endif

/*
 * Launch: a resolved kernel, a shape and typed arguments become work on a stream.
 *
 * Everything that can be known to be wrong is refused before the driver sees it: empty or too large
 * shapes, more shared memory than allowed, and, where the driver can tell a kernel's parameters
 * (CUDA 12.4), a wrong number or size of arguments. A launch takes no lock, no hash and no memory.
 *
 * Threads: a kernel may be launched from several at once, also on one stream.
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

struct tol_launch_shape {
    unsigned grid_x, grid_y, grid_z;    /* in blocks */
    unsigned block_x, block_y, block_z; /* in threads */
    unsigned shared_bytes;              /* dynamic shared memory a block */
};

/* At least this many threads in each direction, in blocks of the given size: the last block of a
 * direction may stand out. Zero threads give an empty shape, which a launch refuses. */
TOL_API struct tol_launch_shape tol_launch_linear(unsigned long long threads, unsigned block);
TOL_API struct tol_launch_shape tol_launch_plane(unsigned threads_x, unsigned threads_y,
                                                 unsigned block_x, unsigned block_y);
TOL_API struct tol_launch_shape tol_launch_volume(unsigned threads_x, unsigned threads_y,
                                                  unsigned threads_z, unsigned block_x,
                                                  unsigned block_y, unsigned block_z);

/* The arguments of one launch: the address and the size of each. Copied by the launch. */
struct tol_arguments {
    unsigned count;
    void **values;
    const unsigned *bytes;
};

/*
 * Queues one run of the kernel on the stream.
 *
 *     tol_launch(stream, kernel, tol_launch_linear(n, 256), TOL_ARGUMENTS(address, n));
 *
 * TOL_OVER_LIMIT: the shape is empty or exceeds the device or the kernel; the message has both
 * numbers. TOL_WRONG_ARGUMENTS: the count or a size does not fit. TOL_WRONG_CONTEXT: stream and
 * kernel belong to different contexts. TOL_POISONED, TOL_DRIVER_ERROR.
 * An error of the kernel itself is reported by whoever waits for it.
 */
TOL_API tol_status tol_launch(struct tol_stream *stream, const struct tol_kernel *kernel,
                              struct tol_launch_shape shape, struct tol_arguments arguments);

/*
 * The same, but the kernel may begin before the one in front of it on the stream has ended: it must
 * wait for that by griddepcontrol.wait before it uses anything of it. Where driver or device cannot
 * do that (below compute capability 9.0), it begins after it, as tol_launch has it.
 */
TOL_API tol_status tol_launch_programmatic(struct tol_stream *stream,
                                           const struct tol_kernel *kernel,
                                           struct tol_launch_shape shape,
                                           struct tol_arguments arguments);

/* Whether they can. */
TOL_API bool tol_launch_has_programmatic(const struct tol_context *context);

/* TOL_ARGUMENTS(a, b, ...) makes a struct tol_arguments of up to 16 expressions, each passed with
 * its own type: write (float)x where the kernel takes a float. The values live to the end of the
 * enclosing block. TOL_NO_ARGUMENTS is for kernels without parameters; for more than 16, fill in
 * the struct. C only: it needs compound literals. */
#define TOL_NO_ARGUMENTS ((struct tol_arguments){0, NULL, NULL})
#define TOL_ARGUMENTS(...)                                                                         \
    ((struct tol_arguments){TOL_EACH_COUNT(__VA_ARGS__),                                           \
                            (void *[]){TOL_EACH(TOL_ARGUMENT_ADDRESS, __VA_ARGS__)},               \
                            TOL_ARGUMENTS_BYTES(__VA_ARGS__)})
/* The sizes are known when compiling, so they are not written for each launch. */
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

/*
 * Batch: many small kernels in one launch.
 *
 * Add kernels to a batch, then launch them together as one graph. On a GPU this takes a fifth of
 * the time of separate launches, or less. The first launch creates the graph. To launch a new set,
 * clear the batch and add kernels again: a kernel that equals the earlier one at its position costs
 * nothing, a different kernel, shape or argument is updated in place, and only a different number
 * of kernels creates a new graph.
 *
 * Threads: all functions may be called from any thread at the same time. The caller orders the adds
 * of one thread against the clear and launch of another.
 * Errors of all functions: TOL_UNSUPPORTED: the driver has no graphs. TOL_OUT_OF_HOST_MEMORY.
 * Source: CUDA Driver API, "Graph management".
 */
#ifndef TOLLENS_BATCH_H
#define TOLLENS_BATCH_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_batch;

struct tol_batch_options {
    bool unordered; /* true: the kernels are independent and may run concurrently; false: each runs
                     * after the one before it, as on a stream */
};

/* Creates an empty batch. options may be NULL, which means ordered. */
TOL_API tol_status tol_batch_create(struct tol_context *context,
                                    const struct tol_batch_options *options,
                                    struct tol_batch **batch);

/* Destroys the batch. A launch that is running still completes. NULL is a no-op. */
TOL_API void tol_batch_destroy(struct tol_batch *batch);

/* Adds a kernel at the end. Arguments are copied. The kernel's module must stay loaded until the
 * batch is cleared or destroyed. Checks shape and arguments as tol_launch does, with the same
 * errors. */
TOL_API tol_status tol_batch_add(struct tol_batch *batch, const struct tol_kernel *kernel,
                                 struct tol_launch_shape shape, struct tol_arguments arguments);

/* Removes all kernels. Earlier launches are not affected. */
TOL_API tol_status tol_batch_clear(struct tol_batch *batch);

/* Queues one run of all kernels on the stream, as one graph launch. An empty batch queues nothing.
 * A batch may be launched any number of times. */
TOL_API tol_status tol_batch_launch(struct tol_batch *batch, struct tol_stream *stream);

/* Counts since the batch was created, except kernels. */
struct tol_batch_stats {
    unsigned kernels; /* in the batch now */
    uint64_t launches;
    uint64_t graphs;  /* graph instances created */
    uint64_t changes; /* kernels updated in place */
};
TOL_API tol_status tol_batch_stats(struct tol_batch *batch, struct tol_batch_stats *stats);

#ifdef __cplusplus
}
#endif
#endif

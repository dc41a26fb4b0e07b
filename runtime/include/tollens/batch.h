/*
 * Batch: many small kernels as one launch.
 *
 * Kernels are added in a row and then launched together, as one graph: on a GPU that takes a fifth
 * of the time of as many launches, or less. The first launch makes the graph. To go round again,
 * clear the batch and add anew: what is the same as before costs nothing then, another kernel,
 * shape or argument is changed in place, and only another number of kernels makes another graph.
 *
 * Threads: any, also at once; what one adds between another's clear and launch is its own affair.
 * All functions: TOL_UNSUPPORTED where the driver has no graphs, TOL_OUT_OF_HOST_MEMORY.
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
    bool unordered; /* the kernels do not depend on each other and may run at once; otherwise each
                     * runs behind the one before it, as on a stream */
};

/* Makes an empty batch. options may be NULL: ordered. */
TOL_API tol_status tol_batch_create(struct tol_context *context,
                                    const struct tol_batch_options *options,
                                    struct tol_batch **batch);

/* Ends it; a launch that runs is finished by the driver. NULL is a no-op. */
TOL_API void tol_batch_destroy(struct tol_batch *batch);

/* Adds a kernel behind those that are there. Arguments are copied. The kernel's module must stay
 * until the batch is cleared or destroyed. What tol_launch refuses is refused here. */
TOL_API tol_status tol_batch_add(struct tol_batch *batch, const struct tol_kernel *kernel,
                                 struct tol_launch_shape shape, struct tol_arguments arguments);

/* Takes all kernels out. What was launched before is not touched. */
TOL_API tol_status tol_batch_clear(struct tol_batch *batch);

/* Queues one run of all kernels on the stream, as one piece of work. An empty batch is no work. It
 * may be launched again without being cleared. */
TOL_API tol_status tol_batch_launch(struct tol_batch *batch, struct tol_stream *stream);

struct tol_batch_stats {
    unsigned kernels;  /* in it now */
    uint64_t launches; /* counts, since it was made */
    uint64_t graphs;   /* instances made */
    uint64_t changes;  /* kernels changed in place */
};
TOL_API tol_status tol_batch_stats(struct tol_batch *batch, struct tol_batch_stats *stats);

#ifdef __cplusplus
}
#endif
#endif

/*
 * Graph: work that is described once and launched as a whole, many times.
 *
 * A graph comes from nodes that are added, or from a stream whose work is captured instead of run.
 * It is instantiated, and the instance is launched: a node then costs the driver a fifth of a
 * launch or less. The arguments of an instance's nodes can be changed in place, or all of it
 * updated from another graph of the same form. A batch (batch.h) does all that for a row of
 * kernels.
 *
 * Capturing: from tol_graph_capture_begin on, what the calling thread queues on the stream, and on
 * streams that wait for an event recorded there, is noted and not run; they must be joined by
 * events before the end. Until then this thread must not allocate, load modules, synchronize, or
 * query. A pinned block that a captured copy uses must outlive the graph and its instances; each
 * launch marks it as in use. Copies from ordinary memory are refused. Host functions run at each
 * launch; a failure is delivered to those that wait for the stream of the launch.
 *
 * Kernels must outlive graphs and instances that use them: keep their modules.
 * Threads: any, also at once; the driver demands locks around graphs, and they are taken here.
 * All functions: TOL_UNSUPPORTED where the driver has no graphs, TOL_POISONED, TOL_DRIVER_ERROR.
 * Source: CUDA Driver API, "Graph management"; spec 004 CRT-004.
 */
#ifndef TOLLENS_GRAPH_H
#define TOLLENS_GRAPH_H

#include "host_function.h"
#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_graph;
struct tol_graph_exec;

/* Makes an empty graph. */
TOL_API tol_status tol_graph_create(struct tol_context *context, struct tol_graph **graph);

/* Ends the handle; instances made of it stay. NULL is a no-op. */
TOL_API void tol_graph_destroy(struct tol_graph *graph);

/*
 * Adds a kernel that runs behind the after_count nodes of after, and gives its number. Arguments
 * are copied. after may be NULL with a count of 0: it depends on nothing.
 * TOL_INVALID_ARGUMENT: a number that is no node's. What tol_launch refuses.
 */
TOL_API tol_status tol_graph_add_kernel(struct tol_graph *graph, const struct tol_kernel *kernel,
                                        struct tol_launch_shape shape,
                                        struct tol_arguments arguments, const unsigned *after,
                                        unsigned after_count, unsigned *node);

/* How many nodes there are; of a captured graph, those that were noted. */
TOL_API unsigned tol_graph_nodes(const struct tol_graph *graph);

/* Makes another graph of the same nodes, with the same numbers, to be changed independently. */
TOL_API tol_status tol_graph_clone(struct tol_graph *graph, struct tol_graph **clone);

/* Changes a node that was added as a kernel: for instances made, and updated, from now on. */
TOL_API tol_status tol_graph_set_kernel(struct tol_graph *graph, unsigned node,
                                        const struct tol_kernel *kernel,
                                        struct tol_launch_shape shape,
                                        struct tol_arguments arguments);

/* Begins to capture. TOL_INVALID_ARGUMENT: the stream is captured already. */
TOL_API tol_status tol_graph_capture_begin(struct tol_stream *stream);

/* Ends it, in any thread, and gives the graph. The capture has ended also when this
 * fails: a call that may not be captured came in between, or a stream was not joined. */
TOL_API tol_status tol_graph_capture_end(struct tol_stream *stream, struct tol_graph **graph);

/* Makes what can be launched. */
TOL_API tol_status tol_graph_instantiate(struct tol_graph *graph, struct tol_graph_exec **exec);

/* Ends the instance; a launch that runs is finished by the driver, and waited for where it has host
 * functions. NULL is a no-op. */
TOL_API void tol_graph_exec_destroy(struct tol_graph_exec *exec);

/* Changes the arguments, the shape or the kernel of one node in place, for launches from now on;
 * the numbers are those of the graph it was made of. A launch that is queued keeps its own. */
TOL_API tol_status tol_graph_exec_set_kernel(struct tol_graph_exec *exec, unsigned node,
                                             const struct tol_kernel *kernel,
                                             struct tol_launch_shape shape,
                                             struct tol_arguments arguments);

/* Takes over all parameters of another graph, for launches from now on. TOL_INVALID_ARGUMENT: it
 * has another form; the instance is as it was, and a new one must be made. */
TOL_API tol_status tol_graph_exec_update(struct tol_graph_exec *exec, struct tol_graph *graph);

/* Queues all of it on a stream: as one piece of work, behind what is queued there. Launches of one
 * instance run one after the other. TOL_WRONG_CONTEXT; TOL_INVALID_ARGUMENT: the stream is
 * captured, or a pinned block of the graph has been destroyed. */
TOL_API tol_status tol_graph_launch(struct tol_graph_exec *exec, struct tol_stream *stream);

#ifdef __cplusplus
}
#endif
#endif

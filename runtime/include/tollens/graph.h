/*
 * Graph: work that is described once and launched as a whole, many times.
 *
 * Build a graph by adding nodes, or by capturing the work of a stream. Instantiate it, then launch
 * the instance: a node then costs the driver a fifth of a launch or less. The arguments of an
 * instance's nodes can be changed in place, or the whole instance can be updated from another graph
 * of the same form. A batch (batch.h) does all of this for a sequence of kernels.
 *
 * Capture: after tol_graph_capture_begin, work that the calling thread queues on the stream, and on
 * streams that wait for an event recorded there, is recorded and not run. Join those streams by
 * events before the capture ends. Until then the thread must not allocate, load modules,
 * synchronize or query. A pinned block used by a captured copy must outlive the graph and its
 * instances; each launch marks it as in use. Captured copies from pageable memory are refused. Host
 * functions run at each launch; a failure is returned to callers that wait for the stream of the
 * launch.
 *
 * The kernels' modules must stay loaded as long as graphs and instances use the kernels.
 * Threads: all functions may be called from any thread at the same time; they take the locks that
 * the driver requires around graphs.
 * Errors of all functions: TOL_UNSUPPORTED: the driver has no graphs. TOL_POISONED,
 * TOL_DRIVER_ERROR.
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
struct tol_graph_exec; /* an instance of a graph, which can be launched */

/* Creates an empty graph. */
TOL_API tol_status tol_graph_create(struct tol_context *context, struct tol_graph **graph);

/* Destroys the handle. Instances of the graph stay valid. NULL is a no-op. */
TOL_API void tol_graph_destroy(struct tol_graph *graph);

/*
 * Adds a kernel node that runs after the after_count nodes listed in after, and sets *node to its
 * number. after may be NULL if after_count is 0: then it depends on no node. Arguments are copied.
 * TOL_INVALID_ARGUMENT: after names a node that does not exist. Shape and arguments are checked as
 * by tol_launch, with the same errors.
 */
TOL_API tol_status tol_graph_add_kernel(struct tol_graph *graph, const struct tol_kernel *kernel,
                                        struct tol_launch_shape shape,
                                        struct tol_arguments arguments, const unsigned *after,
                                        unsigned after_count, unsigned *node);

/* The number of nodes. For a captured graph: the nodes that were recorded. */
TOL_API unsigned tol_graph_nodes(const struct tol_graph *graph);

/* Copies a graph. The copy has the same node numbers and can be changed independently. */
TOL_API tol_status tol_graph_clone(struct tol_graph *graph, struct tol_graph **clone);

/* Changes a node that tol_graph_add_kernel added. Affects instances that are created or updated
 * after this call. */
TOL_API tol_status tol_graph_set_kernel(struct tol_graph *graph, unsigned node,
                                        const struct tol_kernel *kernel,
                                        struct tol_launch_shape shape,
                                        struct tol_arguments arguments);

/* Begins a capture. TOL_INVALID_ARGUMENT: the stream is being captured already. */
TOL_API tol_status tol_graph_capture_begin(struct tol_stream *stream);

/* Ends the capture, from any thread, and creates the graph. If this fails the capture has ended
 * too: a call was made that cannot be captured, or a stream was not joined. */
TOL_API tol_status tol_graph_capture_end(struct tol_stream *stream, struct tol_graph **graph);

/* Creates an instance of the graph. The caller destroys it with tol_graph_exec_destroy. */
TOL_API tol_status tol_graph_instantiate(struct tol_graph *graph, struct tol_graph_exec **exec);

/* Destroys the instance. A launch that is running still completes; this call waits for it if it has
 * host functions. NULL is a no-op. */
TOL_API void tol_graph_exec_destroy(struct tol_graph_exec *exec);

/* Changes the kernel, the shape and the arguments of one node in place, for later launches. node is
 * the number in the graph that the instance was created from. Queued launches are not affected. */
TOL_API tol_status tol_graph_exec_set_kernel(struct tol_graph_exec *exec, unsigned node,
                                             const struct tol_kernel *kernel,
                                             struct tol_launch_shape shape,
                                             struct tol_arguments arguments);

/* Sets all parameters of the instance to those of another graph, for later launches.
 * TOL_INVALID_ARGUMENT: the graph has a different form; the instance is unchanged, and the caller
 * must create a new one. */
TOL_API tol_status tol_graph_exec_update(struct tol_graph_exec *exec, struct tol_graph *graph);

/* Queues one run of the instance on the stream, after the work queued there. Launches of one
 * instance run one after the other. TOL_WRONG_CONTEXT. TOL_INVALID_ARGUMENT: the stream is being
 * captured, or a pinned block of the graph has been destroyed. */
TOL_API tol_status tol_graph_launch(struct tol_graph_exec *exec, struct tol_stream *stream);

#ifdef __cplusplus
}
#endif
#endif

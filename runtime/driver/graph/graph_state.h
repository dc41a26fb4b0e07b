/*
 * The insides of graphs.
 */
#ifndef TOLLENS_GRAPH_STATE_H
#define TOLLENS_GRAPH_STATE_H

#include "core/event_state.h"
#include "core/outcome.h"
#include "objects/capture_state.h"
#include "objects/launch_check.h"
#include "core/module_state.h"
#include "objects/outcome_relay.h"
#include "objects/pinned_state.h"
#include "tollens/graph.h"

struct tol_graph {
    struct tol_context *context;
    CUgraph handle;
    atomic_int references;       /* instances hold one, for the nodes' handles */
    struct tol_capture *capture; /* what it was made of; NULL: of added nodes alone */
    const char *last_kernel;     /* the context's; for the message of a timeout */
    pthread_mutex_t lock;        /* the driver's graphs are not for several threads at once */
    CUgraphNode *nodes;          /* those that were added, by number */
    unsigned count, room, captured;
};

/* A capture that an instance keeps, because its launches may still use it. */
struct tol_held_capture {
    struct tol_capture *capture;
    struct tol_held_capture *next;
};

struct tol_graph_exec {
    struct tol_context *context;
    CUgraphExec handle;
    struct tol_graph *graph;       /* that it was made of */
    const char *label;             /* the context's: the last launch, for messages of timeouts */
    pthread_mutex_t lock;          /* guards all below, and the driver's instance */
    struct tol_held_capture *held; /* the latest first: the others may still be running */
    struct tol_event *done;        /* after the last launch; NULL without host functions */
};

/* What the driver takes for a node. */
CUDA_KERNEL_NODE_PARAMS tol_graph_parameters(const struct tol_kernel *kernel,
                                             const struct tol_launch_shape *shape,
                                             const struct tol_arguments *arguments);

/* Rejects what must not become a node of an object in this context. */
tol_status tol_graph_check(const struct tol_context *context, const struct tol_kernel *kernel,
                           const struct tol_launch_shape *shape,
                           const struct tol_arguments *arguments);

void tol_capture_release(struct tol_capture *capture);

/* Creates the graph of a handle; on success it owns the handle. */
tol_status tol_graph_wrap(struct tol_context *context, CUgraph handle, struct tol_capture *capture,
                          struct tol_graph **graph);

#endif

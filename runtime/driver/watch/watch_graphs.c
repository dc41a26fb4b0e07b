/*
 * Executable graphs: what each launch of one does. The driver is queried for the nodes when the
 * graph is instantiated and updated; a node's parameters may be changed one by one. The effect on
 * the watched blocks is computed at a launch, and kept until the blocks or the kernels change.
 */
#include "watch_state.h"

#include <stdlib.h>
#include <string.h>

#define ARGUMENT(type, place) (*(type const *)call->arguments[place])

enum { DEPTH_MAX = 64 }; /* of graphs in graphs */

/* A copy, a fill or a launch of a graph. */
struct watch_part {
    CUgraphNode top; /* the node of the graph itself: its own, or that of the graph it is in */
    bool is_launch;
    struct watch_use uses[2];
    unsigned use_count;
    CUfunction function;
    bool is_read; /* whether the words are known */
    size_t word_count;
    uint64_t *words;
};

struct watch_exec {
    CUgraphExec handle;
    const struct tol_driver_table *driver;
    struct watch_part *parts;
    size_t count, room;
    bool is_whole;        /* the driver told all nodes */
    pthread_mutex_t lock; /* of what follows */
    uint64_t generation;  /* of the watch when found was made; UINT64_MAX: none was */
    size_t unread;        /* launches whose words are not known */
    struct watch_visit visit;
};

/* ---- reading a graph ------------------------------------------------------------------------- */

static struct watch_part *new_part(struct watch_exec *exec, CUgraphNode top) {
    if (exec->count == exec->room) {
        const size_t room = exec->room == 0 ? 16 : 2 * exec->room;
        struct watch_part *more = realloc(exec->parts, room * sizeof *more);
        if (more == NULL) {
            exec->is_whole = false;
            return NULL;
        }
        exec->parts = more;
        exec->room = room;
    }
    struct watch_part *part = &exec->parts[exec->count++];
    memset(part, 0, sizeof *part);
    part->top = top;
    return part;
}

static void watch_graphs_keep_word(uint64_t word, void *user) {
    struct watch_part *part = user;
    if ((part->word_count & (part->word_count - 1)) == 0) { /* the room is a power of two */
        const size_t room = part->word_count == 0 ? 1 : 2 * part->word_count;
        uint64_t *more = realloc(part->words, room * sizeof *more);
        if (more == NULL) return;
        part->words = more;
    }
    part->words[part->word_count++] = word;
}

static void add_launch(struct tol_watch *watch, struct watch_exec *exec, CUgraphNode top,
                       const CUDA_KERNEL_NODE_PARAMS *node) {
    struct watch_part *part = new_part(exec, top);
    const struct watch_launch launch = {node->func, NULL, node->kernelParams, node->extra};
    if (part == NULL) return;
    part->is_launch = true;
    part->function = node->func;
    watch_lock_read(&watch->lock);
    part->is_read = watch_kernel_words(watch_kernel_find(watch, node->func), &launch,
                                       watch_graphs_keep_word, part);
    watch_lock_read_end(&watch->lock);
}

static void watch_graphs_add_copy(struct watch_exec *exec, CUgraphNode top,
                                  const CUDA_MEMCPY3D *copy) {
    struct watch_part *part = new_part(exec, top);
    if (part != NULL) part->use_count = watch_copy_of_node(copy, part->uses);
}

static void watch_graphs_add_fill(struct watch_exec *exec, CUgraphNode top,
                                  const CUDA_MEMSET_NODE_PARAMS *fill) {
    struct watch_part *part = new_part(exec, top);
    if (part != NULL) part->use_count = watch_fill_of_node(fill, part->uses);
}

/* A graph in the graph that is read, and how far in. */
struct inner {
    CUgraph graph;
    CUgraphNode top; /* NULL: the nodes are the graph's own */
    unsigned depth;
};

static void read_graph(struct tol_watch *watch, struct watch_exec *exec, struct inner inner);

static bool read_node(struct tol_watch *watch, struct watch_exec *exec, CUgraphNode node,
                      const struct inner *inner) {
    const struct tol_driver_table *driver = exec->driver;
    const CUgraphNode top = inner->top != NULL ? inner->top : node;
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMCPY3D copy;
    CUDA_MEMSET_NODE_PARAMS fill;
    CUgraph child = NULL;
    CUgraphNodeType type = 0;
    if (driver->cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return false;
    switch ((int)type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        if (driver->cuGraphKernelNodeGetParams_v2(node, &kernel) != CUDA_SUCCESS) return false;
        add_launch(watch, exec, top, &kernel);
        return true;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        if (driver->cuGraphMemcpyNodeGetParams(node, &copy) != CUDA_SUCCESS) return false;
        watch_graphs_add_copy(exec, top, &copy);
        return true;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        if (driver->cuGraphMemsetNodeGetParams(node, &fill) != CUDA_SUCCESS) return false;
        watch_graphs_add_fill(exec, top, &fill);
        return true;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        if (driver->cuGraphChildGraphNodeGetGraph(node, &child) != CUDA_SUCCESS) return false;
        read_graph(watch, exec, (struct inner){child, top, inner->depth + 1});
        return true;
    default:
        return true; /* events, allocations; the bodies of conditions are not seen */
    }
}

static void read_graph(struct tol_watch *watch, struct watch_exec *exec, struct inner inner) {
    const struct tol_driver_table *driver = exec->driver;
    size_t count = 0;
    CUgraphNode *nodes = NULL;
    if (driver->cuGraphGetNodes(inner.graph, NULL, &count) == CUDA_SUCCESS &&
        inner.depth < DEPTH_MAX && driver->cuGraphChildGraphNodeGetGraph != NULL &&
        driver->cuGraphMemsetNodeGetParams != NULL) {
        nodes = calloc(count > 0 ? count : 1, sizeof *nodes);
    }
    bool is_whole =
        nodes != NULL &&
        (count == 0 || driver->cuGraphGetNodes(inner.graph, nodes, &count) == CUDA_SUCCESS);
    for (size_t i = 0; is_whole && i < count; i++) {
        is_whole = read_node(watch, exec, nodes[i], &inner);
    }
    if (!is_whole) exec->is_whole = false;
    free(nodes);
}

static void watch_graphs_clear(struct watch_exec *exec) {
    for (size_t i = 0; i < exec->count; i++) free(exec->parts[i].words);
    free(exec->parts);
    exec->parts = NULL;
    exec->count = exec->room = 0;
}

static void free_exec(struct watch_exec *exec) {
    if (exec == NULL) return;
    watch_graphs_clear(exec);
    watch_visit_end(&exec->visit);
    pthread_mutex_destroy(&exec->lock);
    free(exec);
}

static struct watch_exec *new_exec(CUgraphExec handle, const struct tol_driver_table *driver) {
    struct watch_exec *exec = calloc(1, sizeof *exec);
    if (exec == NULL) return NULL;
    exec->handle = handle;
    exec->driver = driver;
    exec->is_whole = true;
    exec->generation = UINT64_MAX;
    pthread_mutex_init(&exec->lock, NULL);
    watch_visit_begin(&exec->visit, NULL, driver);
    return exec;
}

/* ---- the graphs of a watch ------------------------------------------------------------------- */

static struct watch_exec **watch_graphs_find(const struct tol_watch *watch, CUgraphExec handle) {
    for (size_t i = watch->exec_count; i > 0; i--) {
        if (watch->execs[i - 1]->handle == handle) return &watch->execs[i - 1];
    }
    return NULL;
}

/* The caller has the lock for writing. The driver may give an old handle again. */
static void watch_graphs_put(struct tol_watch *watch, struct watch_exec *exec) {
    struct watch_exec **old = watch_graphs_find(watch, exec->handle);
    if (old != NULL) {
        free_exec(*old);
        *old = exec;
        return;
    }
    if (watch->exec_count == watch->exec_room) {
        const size_t room = watch->exec_room == 0 ? 16 : 2 * watch->exec_room;
        struct watch_exec **more = realloc(watch->execs, room * sizeof(*more));
        if (more == NULL) { /* its launches are not known then, and are counted so */
            free_exec(exec);
            return;
        }
        watch->execs = more;
        watch->exec_room = room;
    }
    watch->execs[watch->exec_count++] = exec;
}

static void watch_graphs_drop(struct tol_watch *watch, CUgraphExec handle) {
    struct watch_exec **at = watch_graphs_find(watch, handle);
    if (at == NULL) return;
    free_exec(*at);
    *at = watch->execs[--watch->exec_count];
}

/* Later changes name the nodes that it was made of, so those stay. */
static void keep_tops(const struct watch_exec *old, struct watch_exec *exec) {
    if (old->count != exec->count) return;
    for (size_t i = 0; i < exec->count; i++) exec->parts[i].top = old->parts[i].top;
}

/* Replaces what a node had. The caller has the lock for writing. */
static void watch_graphs_replace(struct watch_exec *exec, CUgraphNode top,
                                 struct watch_exec *changed) {
    size_t kept = 0;
    for (size_t i = 0; i < exec->count; i++) {
        if (exec->parts[i].top == top) {
            free(exec->parts[i].words);
        } else {
            exec->parts[kept++] = exec->parts[i];
        }
    }
    exec->count = kept;
    for (size_t i = 0; i < changed->count; i++) {
        struct watch_part *part = new_part(exec, top);
        if (part == NULL) break;
        *part = changed->parts[i];
        changed->parts[i].words = NULL;
    }
    exec->is_whole = exec->is_whole && changed->is_whole;
    exec->generation = UINT64_MAX;
}

/* What a call says of the graph or node that it gives to an executable graph. false: nothing. */
static bool watch_graphs_read_call(struct tol_watch *watch, struct watch_exec *exec,
                                   const struct tol_interpose_call *call) {
    const CUgraphNode node =
        call->argument_count > 1 ? ARGUMENT(CUgraphNode, 1) : NULL; /* if it is one */
    switch (call->index) {
    case TOL_DRIVER_INDEX_cuGraphInstantiateWithFlags:
    case TOL_DRIVER_INDEX_cuGraphExecUpdate_v2:
        read_graph(watch, exec, (struct inner){.graph = ARGUMENT(CUgraph, 1)});
        return true;
    case TOL_DRIVER_INDEX_cuGraphExecKernelNodeSetParams_v2:
        add_launch(watch, exec, node, ARGUMENT(const CUDA_KERNEL_NODE_PARAMS *, 2));
        return true;
    case TOL_DRIVER_INDEX_cuGraphExecMemcpyNodeSetParams:
        watch_graphs_add_copy(exec, node, ARGUMENT(const CUDA_MEMCPY3D *, 2));
        return true;
    case TOL_DRIVER_INDEX_cuGraphExecMemsetNodeSetParams:
        watch_graphs_add_fill(exec, node, ARGUMENT(const CUDA_MEMSET_NODE_PARAMS *, 2));
        return true;
    case TOL_DRIVER_INDEX_cuGraphExecChildGraphNodeSetParams:
        read_graph(watch, exec, (struct inner){ARGUMENT(CUgraph, 2), node, 1});
        return true;
    default:
        return false;
    }
}

static void note_exec(struct tol_watch *watch, const struct tol_interpose_call *call) {
    const bool is_new = call->index == TOL_DRIVER_INDEX_cuGraphInstantiateWithFlags;
    const CUgraphExec handle = is_new ? *ARGUMENT(CUgraphExec *, 0) : ARGUMENT(CUgraphExec, 0);
    struct watch_exec *exec = new_exec(handle, call->driver);
    if (exec != NULL && watch_graphs_read_call(watch, exec, call)) {
        watch_lock_write(&watch->lock);
        struct watch_exec **old = watch_graphs_find(watch, handle);
        if (!is_new && old == NULL) exec->is_whole = false;
        if (is_new || old == NULL || call->index == TOL_DRIVER_INDEX_cuGraphExecUpdate_v2) {
            if (!is_new && old != NULL) keep_tops(*old, exec);
            watch_graphs_put(watch, exec);
            exec = NULL;
        } else {
            watch_graphs_replace(*old, ARGUMENT(CUgraphNode, 1), exec);
        }
        watch_lock_write_end(&watch->lock);
    }
    free_exec(exec);
}

void watch_graph_note(struct tol_watch *watch, const struct tol_interpose_call *call) {
    switch (call->index) {
    case TOL_DRIVER_INDEX_cuStreamBeginCapture_v2:
        atomic_fetch_add(&watch->captures, 1);
        break;
    case TOL_DRIVER_INDEX_cuStreamEndCapture: /* also if it fails: the capture has ended */
        if (call->result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD &&
            atomic_load(&watch->captures) > 0) {
            atomic_fetch_sub(&watch->captures, 1);
        }
        break;
    case TOL_DRIVER_INDEX_cuGraphExecDestroy:
        watch_lock_write(&watch->lock);
        watch_graphs_drop(watch, ARGUMENT(CUgraphExec, 0));
        watch_lock_write_end(&watch->lock);
        break;
    case TOL_DRIVER_INDEX_cuGraphInstantiateWithFlags:
    case TOL_DRIVER_INDEX_cuGraphExecUpdate_v2:
    case TOL_DRIVER_INDEX_cuGraphExecKernelNodeSetParams_v2:
    case TOL_DRIVER_INDEX_cuGraphExecMemcpyNodeSetParams:
    case TOL_DRIVER_INDEX_cuGraphExecMemsetNodeSetParams:
    case TOL_DRIVER_INDEX_cuGraphExecChildGraphNodeSetParams:
        note_exec(watch, call);
        break;
    default:
        break;
    }
}

void watch_graphs_free(struct tol_watch *watch) {
    for (size_t i = 0; i < watch->exec_count; i++) free_exec(watch->execs[i]);
    free(watch->execs);
}

/* ---- launches -------------------------------------------------------------------------------- */

static void find_again(struct tol_watch *watch, struct watch_exec *exec) {
    exec->visit.watch = watch;
    exec->visit.count = 0;
    exec->unread = 0;
    for (size_t i = 0; i < exec->count; i++) {
        const struct watch_part *part = &exec->parts[i];
        for (unsigned u = 0; u < part->use_count; u++) {
            watch_visit_use(&exec->visit, &part->uses[u]);
        }
        if (!part->is_launch) continue;
        struct watch_kernel *kernel = watch_kernel_find(watch, part->function);
        watch_visit_launch(&exec->visit, kernel, part->words, part->word_count);
        exec->unread += !part->is_read;
    }
}

bool watch_graph_visit(struct watch_visit *visit, CUgraphExec handle) {
    struct tol_watch *watch = visit->watch;
    struct watch_exec **at = watch_graphs_find(watch, handle);
    if (at == NULL) return false;
    struct watch_exec *exec = *at;
    const uint64_t generation = atomic_load(&watch->generation);
    pthread_mutex_lock(&exec->lock);
    if (exec->generation != generation) find_again(watch, exec);
    exec->generation = generation;
    for (size_t i = 0; i < exec->visit.count; i++) {
        watch_visit_add(visit, &exec->visit.found[i], false);
    }
    if (exec->unread > 0) atomic_fetch_add(&watch->unread, exec->unread);
    pthread_mutex_unlock(&exec->lock);
    return exec->is_whole;
}

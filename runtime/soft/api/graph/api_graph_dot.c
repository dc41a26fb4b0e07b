/*
 * A graph as a drawing for Graphviz. As in "Graph Management" of the CUDA Driver API 13.0.
 */
#include "api/export.h"
#include "graph/graph_call.h"

#include <stdio.h>

static const char *const type_names[] = {"kernel",
                                         "memcpy",
                                         "memset",
                                         "host",
                                         "graph",
                                         "empty",
                                         "event wait",
                                         "event record",
                                         "semaphore signal",
                                         "semaphore wait",
                                         "memory allocation",
                                         "memory free",
                                         "batch of memory operations",
                                         "conditional"};

/* The details of a node besides its type. */
static void print_detail(FILE *file, const struct soft_node_content *content, bool verbose) {
    const struct soft_task *task = &content->task;
    switch (task->kind) {
    case SOFT_TASK_KERNEL: {
        const struct soft_kernel *k = &task->is.kernel;
        fprintf(file, "\\n%s", k->function->code->name);
        if (!verbose) return;
        fprintf(file, "\\n<<<(%u,%u,%u),(%u,%u,%u),%u>>>", k->grid[0], k->grid[1], k->grid[2],
                k->block[0], k->block[1], k->block[2], k->shared);
        return;
    }
    case SOFT_TASK_COPY:
        if (!verbose) return;
        fprintf(file, "\\n%llu bytes of %llu rows, %llu layers",
                (unsigned long long)task->is.copy.width, (unsigned long long)task->is.copy.height,
                (unsigned long long)task->is.copy.depth);
        return;
    case SOFT_TASK_FILL:
        if (!verbose) return;
        fprintf(file, "\\n%llu elements of %u bytes, %llu rows",
                (unsigned long long)task->is.fill.width, task->is.fill.element_bytes,
                (unsigned long long)task->is.fill.height);
        return;
    case SOFT_TASK_ALLOC:
    case SOFT_TASK_FREE:
        if (verbose) fprintf(file, "\\n0x%llx", (unsigned long long)task->is.address);
        return;
    default:
        return;
    }
}

/* Nodes are named by their position; those of children have their parents' positions as a
 * prefix. */
static void print_graph(FILE *file, const struct soft_graph *graph, const char *prefix,
                        unsigned flags) {
    unsigned index = 0;
    bool verbose = flags != 0;
    for (const struct soft_node *n = graph->first; n != NULL; n = n->next, index++) {
        const int type = n->content.params.type;
        fprintf(file, "\"%s%u\" [label=\"%u: %s", prefix, index, index, type_names[type]);
        print_detail(file, &n->content, verbose);
        fprintf(file, "\"];\n");
        for (unsigned e = 0; e < n->edge_count; e++) {
            unsigned from = 0;
            for (const struct soft_node *m = graph->first; m != n->edges[e].from; m = m->next) {
                from++;
            }
            fprintf(file, "\"%s%u\" -> \"%s%u\";\n", prefix, from, prefix, index);
        }
        if (n->content.child == NULL) continue;
        char inner[64];
        snprintf(inner, sizeof inner, "%.40s%u.", prefix, index);
        fprintf(file, "subgraph \"cluster_%s\" {\nlabel=\"child of %u\";\n", inner, index);
        print_graph(file, n->content.child, inner, flags);
        fprintf(file, "}\n");
    }
}

EXPORT(cuGraphDebugDotPrint, (CUgraph handle, const char *path, unsigned int flags)) {
    struct soft_graph *graph = NULL;
    const unsigned known = CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS * 2u - 1;
    CUresult result = soft_graph_enter(handle, &graph);
    if (result != CUDA_SUCCESS) return result;
    if (path == NULL || (flags & ~known) != 0) {
        soft_graph_leave();
        return CUDA_ERROR_INVALID_VALUE;
    }
    FILE *file = fopen(path, "w");
    if (file != NULL) {
        fprintf(file, "digraph \"graph\" {\n");
        print_graph(file, graph, "", flags);
        fprintf(file, "}\n");
        if (ferror(file)) result = CUDA_ERROR_OPERATING_SYSTEM;
        if (fclose(file) != 0) result = CUDA_ERROR_OPERATING_SYSTEM;
    }
    soft_graph_leave();
    return file != NULL ? result : CUDA_ERROR_OPERATING_SYSTEM;
}

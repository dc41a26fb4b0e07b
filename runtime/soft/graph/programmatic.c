/*
 * Which edges are programmatic.
 */
#include "programmatic.h"

static bool programmatic_is_kernel(const struct soft_node_content *content) {
    return content->task.kind == SOFT_TASK_KERNEL;
}

static bool programmatic_is_programmatic(const struct soft_edge *edge) {
    return edge->data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
}

bool soft_edge_is_sound(const struct soft_edge *edge, const struct soft_node_content *to) {
    const CUgraphEdgeData *data = &edge->data;
    bool from_kernel = programmatic_is_kernel(&edge->from->content);
    if (data->to_port != 0 || data->type > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC ||
        data->from_port > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER) {
        return false;
    }
    if (data->from_port != CU_GRAPH_KERNEL_NODE_PORT_DEFAULT && !from_kernel) return false;
    if (!programmatic_is_programmatic(edge)) return true;
    return from_kernel && programmatic_is_kernel(to) &&
           data->from_port != CU_GRAPH_KERNEL_NODE_PORT_DEFAULT;
}

CUgraphEdgeData soft_edge_data_behind(const struct soft_node *from, bool early) {
    CUgraphEdgeData data = {0};
    if (!early || !programmatic_is_kernel(&from->content)) return data;
    data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    return data;
}

void soft_front_shape(struct soft_edge *edges, unsigned count, const struct soft_node_content *to) {
    if (!programmatic_is_kernel(to)) {
        for (unsigned i = 0; i < count; i++) edges[i].data = (CUgraphEdgeData){0};
    } else if (to->task.is.kernel.programmatic && count == 1) {
        edges[0].data = soft_edge_data_behind(edges[0].from, true);
    }
}

/* Whether the source of an edge of the order's last node is also reached by another path, which
 * begins with another of its edges. */
static bool is_redundant(const struct soft_edge *edge, struct soft_node **order, unsigned last) {
    const struct soft_node *to = order[last];
    for (unsigned i = 0; i < last; i++) order[i]->mark = 0;
    for (unsigned i = 0; i < to->edge_count; i++) {
        to->edges[i].from->mark = to->edges[i].from != edge->from;
    }
    for (unsigned i = last; i > 0; i--) {
        const struct soft_node *node = order[i - 1];
        for (unsigned e = 0; node->mark != 0 && e < node->edge_count; e++) {
            node->edges[e].from->mark = 1;
        }
    }
    return edge->from->mark != 0;
}

void soft_graph_settle_edges(struct soft_graph *graph, struct soft_node **order) {
    for (unsigned n = 0; n < graph->node_count; n++) {
        struct soft_node *node = order[n];
        for (unsigned e = 0; e < node->edge_count && node->edge_count > 1; e++) {
            struct soft_edge *edge = &node->edges[e];
            if (!programmatic_is_programmatic(edge) || !is_redundant(edge, order, n)) continue;
            edge->data = (CUgraphEdgeData){0};
        }
    }
}

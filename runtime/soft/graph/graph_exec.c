/*
 * Creates and launches executable graphs.
 */
#include "graph_exec.h"

#include "queue/dependence.h"
#include "state/graph_memory.h"
#include "state/handle_set.h"
#include "machine/prior.h"
#include "programmatic.h"
#include "queue/stream_order.h"

#include <stdlib.h>

static struct soft_exec *all;

/* The number of nodes in a graph and its children. */
static unsigned graph_exec_count_nodes(const struct soft_graph *graph) {
    unsigned count = graph->node_count;
    for (const struct soft_node *n = graph->first; n != NULL; n = n->next) {
        if (n->content.child != NULL) count += graph_exec_count_nodes(n->content.child);
    }
    return count;
}

/* Appends a graph's nodes to an order, each child's in the place of its node. */
static CUresult graph_exec_flatten(struct soft_graph *graph, struct soft_exec *exec,
                                   struct soft_node **culprit) {
    struct soft_node **order = soft_graph_order(graph, culprit);
    if (order == NULL)
        return *culprit != NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = CUDA_SUCCESS;
    soft_graph_settle_edges(graph, order);
    for (unsigned i = 0; i < graph->node_count && result == CUDA_SUCCESS; i++) {
        exec->order[exec->count++] = order[i];
        if (order[i]->content.child != NULL) {
            result = graph_exec_flatten(order[i]->content.child, exec, culprit);
        }
    }
    free((void *)order);
    return result;
}

/* A node that can no longer be executed: its kernel's module is unloaded. */
static struct soft_node *find_stale(const struct soft_exec *exec) {
    for (unsigned i = 0; i < exec->count; i++) {
        const struct soft_task *task = &exec->order[i]->content.task;
        if (task->kind == SOFT_TASK_KERNEL &&
            !soft_handle_is(SOFT_HANDLE_FUNCTION, task->is.kernel.function)) {
            return exec->order[i];
        }
    }
    return NULL;
}

static CUresult graph_exec_build(struct soft_exec *exec, const struct soft_graph *graph,
                                 struct soft_node **culprit, CUgraphInstantiateResult *why) {
    CUresult result = soft_graph_copy(graph, &exec->graph);
    if (result != CUDA_SUCCESS) return result;
    exec->order = calloc(graph_exec_count_nodes(exec->graph) + 1, sizeof *exec->order);
    if (exec->order == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    result = graph_exec_flatten(exec->graph, exec, culprit);
    if (*culprit != NULL) *why = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    if (result != CUDA_SUCCESS) return result;
    *culprit = find_stale(exec);
    return *culprit == NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult soft_exec_new(struct soft_graph *graph, unsigned long long flags,
                       struct soft_exec **result, struct soft_node **culprit,
                       CUgraphInstantiateResult *why) {
    *culprit = NULL;
    *why = CUDA_GRAPH_INSTANTIATE_ERROR;
    /* Allocation nodes have addresses that only one executable graph can use. */
    if (graph->capturing || (graph->executables > 0 && soft_graph_has_memory(graph))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct soft_exec *exec = calloc(1, sizeof *exec);
    if (exec == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult built = graph_exec_build(exec, graph, culprit, why);
    if (built == CUDA_SUCCESS && !soft_handle_add(SOFT_HANDLE_EXEC, exec)) {
        built = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (built != CUDA_SUCCESS) {
        /* The program knows its own node, not the copy. */
        if (*culprit != NULL) *culprit = (struct soft_node *)(uintptr_t)(*culprit)->origin;
        soft_graph_free(exec->graph);
        free((void *)exec->order);
        free(exec);
        return built;
    }
    exec->references = 1;
    exec->source = graph;
    exec->flags = flags;
    graph->executables++;
    exec->next = all;
    exec->link = &all;
    if (all != NULL) all->link = &exec->next;
    all = exec;
    *why = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    *result = exec;
    return CUDA_SUCCESS;
}

void soft_exec_drop(struct soft_exec *exec) {
    soft_handle_remove(SOFT_HANDLE_EXEC, exec);
    *exec->link = exec->next;
    if (exec->next != NULL) exec->next->link = exec->link;
    if (exec->source != NULL) exec->source->executables--;
    soft_exec_release(exec);
}

void soft_exec_release(struct soft_exec *exec) {
    if (exec == NULL || --exec->references > 0) return;
    soft_event_point_release(exec->last);
    soft_graph_free(exec->graph);
    free((void *)exec->order);
    free(exec);
}

void soft_execs_forget(const struct soft_graph *graph) {
    for (struct soft_exec *exec = all; exec != NULL; exec = exec->next) {
        if (exec->source == graph) exec->source = NULL;
    }
}

/* ---- launching ---- */

/* A list of operations, not yet in a stream. */
struct train {
    struct soft_operation *first, **last;
};

/* The end of a launch, which keeps the launched graph alive until then. */
static struct soft_operation *new_end(struct soft_exec *exec, struct soft_event_point *point) {
    struct soft_operation *operation =
        point != NULL ? soft_operation_point(SOFT_OPERATION_RECORD, point) : NULL;
    if (operation == NULL) {
        soft_event_point_release(point);
        return NULL;
    }
    operation->exec = exec;
    operation->release = soft_exec_release;
    exec->references++;
    return operation;
}

static bool graph_exec_couple(struct train *train, struct soft_operation *operation) {
    if (operation == NULL) return false;
    *train->last = operation;
    train->last = &operation->next;
    return true;
}

static void free_train(struct train *train) {
    while (train->first != NULL) {
        struct soft_operation *operation = train->first;
        train->first = operation->next;
        soft_operation_free(operation);
    }
}

static bool couple_point(struct train *train, enum soft_operation_kind kind,
                         struct soft_event_point *point) {
    struct soft_operation *operation = soft_operation_point(kind, point);
    if (operation == NULL) soft_event_point_release(point);
    return graph_exec_couple(train, operation);
}

static bool couple_record(struct train *train, CUevent handle) {
    struct soft_event *event = (struct soft_event *)handle;
    if (!soft_handle_is(SOFT_HANDLE_EVENT, event)) return true;
    struct soft_event_point *point = soft_event_point_new(2);
    if (point == NULL) return false;
    point->of_event = true;
    soft_event_point_release(event->point);
    event->point = point;
    return couple_point(train, SOFT_OPERATION_RECORD, point);
}

static bool couple_wait(struct train *train, CUevent handle) {
    const struct soft_event *event = (const struct soft_event *)handle;
    if (!soft_handle_is(SOFT_HANDLE_EVENT, event) || event->point == NULL) return true;
    event->point->references++;
    return couple_point(train, SOFT_OPERATION_WAIT, event->point);
}

/* A kernel may begin before the sources of its programmatic edges have ended. */
static void graph_exec_depend(const struct soft_node *node, struct soft_launch *launch) {
    for (unsigned i = 0; i < node->edge_count; i++) {
        struct soft_launch *before = node->edges[i].from->launched;
        bool early = node->edges[i].data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
        if (!early || before == NULL || !soft_dependence_on()) continue;
        soft_prior_keep(before);
        soft_prior_add(launch, before->prior);
    }
}

static bool couple_task(struct train *train, struct soft_node *node) {
    const struct soft_node_content *content = &node->content;
    struct soft_task task;
    if (!soft_task_copy(&task, &content->task)) return false;
    if (task.kind == SOFT_TASK_KERNEL) task.is.kernel.programmatic = false; /* the edges say so */
    struct soft_operation *operation = soft_operation_new(&task);
    if (operation == NULL) soft_task_clear(&task);
    if (!graph_exec_couple(train, operation)) return false;
    if (operation->launch == NULL) return true;
    operation->launch->reach = &content->context->reach;
    node->launched = operation->launch;
    graph_exec_depend(node, operation->launch);
    return true;
}

static bool couple_node(struct train *train, struct soft_node *node) {
    const struct soft_node_content *content = &node->content;
    const int type = content->params.type;
    node->launched = NULL;
    if (node->disabled) return true;
    switch (type) {
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return couple_record(train, content->params.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return couple_wait(train, content->params.eventWait.event);
    default:
        return content->task.kind == SOFT_TASK_EMPTY || couple_task(train, node);
    }
}

/* Memory that the previous launch allocated must have been freed, or the launch fails. */
static CUresult free_left_over(const struct soft_exec *exec, struct train *train) {
    bool frees = (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
    for (unsigned i = 0; i < exec->count; i++) {
        struct soft_graph_memory *memory = exec->order[i]->content.memory;
        if (memory == NULL || !memory->out) continue;
        if (!frees) return CUDA_ERROR_INVALID_VALUE;
        struct soft_task task = {.kind = SOFT_TASK_FREE, .is.address = memory->address};
        if (!graph_exec_couple(train, soft_operation_new(&task))) return CUDA_ERROR_OUT_OF_MEMORY;
        memory->out = false;
    }
    return CUDA_SUCCESS;
}

/* The memory that is allocated once this launch is in its stream. */
static void note_memory(const struct soft_exec *exec) {
    for (unsigned i = 0; i < exec->count; i++) {
        const struct soft_task *task = &exec->order[i]->content.task;
        if (task->kind != SOFT_TASK_ALLOC && task->kind != SOFT_TASK_FREE) continue;
        struct soft_graph_memory *memory = soft_graph_memory_at(task->is.address);
        if (memory != NULL) memory->out = task->kind == SOFT_TASK_ALLOC;
    }
}

/* Nodes of a destroyed context cannot run. */
static bool contexts_live(const struct soft_exec *exec) {
    for (unsigned i = 0; i < exec->count; i++) {
        const struct soft_context *context = exec->order[i]->content.context;
        if (context != NULL && !context->alive) return false;
    }
    return true;
}

CUresult soft_exec_launch(struct soft_exec *exec, struct soft_stream *stream) {
    struct train train = {.last = &train.first};
    struct soft_event_point *last = NULL;
    if (!contexts_live(exec)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    CUresult result = free_left_over(exec, &train);
    /* One launch of a graph at a time, in any stream. */
    bool ok = result == CUDA_SUCCESS;
    if (ok && exec->last != NULL && (!exec->last->reached || soft_order_on())) {
        exec->last->references++;
        ok = couple_point(&train, SOFT_OPERATION_WAIT, exec->last);
    }
    for (unsigned i = 0; ok && i < exec->count; i++) ok = couple_node(&train, exec->order[i]);
    if (ok) {
        last = soft_event_point_new(2);
        ok = graph_exec_couple(&train, new_end(exec, last));
    }
    if (result == CUDA_SUCCESS && !ok) result = CUDA_ERROR_OUT_OF_MEMORY;
    soft_dependence_forget(stream);
    if (result == CUDA_SUCCESS) result = soft_queue_add_all(stream, train.first);
    if (result != CUDA_SUCCESS) {
        free_train(&train);
        soft_event_point_release(last);
        return result;
    }
    note_memory(exec);
    soft_event_point_release(exec->last);
    exec->last = last;
    return CUDA_SUCCESS;
}

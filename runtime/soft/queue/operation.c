/*
 * Creates and destroys operations and event points.
 */
#include "grid/grid.h"
#include "machine/prior.h"
#include "base/dice.h"
#include "base/options.h"
#include "perform.h"
#include "queue.h"
#include "stream_order.h"
#include "memory/touch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct soft_event_point *soft_event_point_new(int references) {
    struct soft_event_point *point = calloc(1, sizeof *point);
    if (point != NULL) point->references = references;
    return point;
}

void soft_event_point_release(struct soft_event_point *point) {
    if (point == NULL || --point->references > 0) return;
    soft_stream_clock_free(point->clock);
    soft_prior_drop(point->prior);
    free(point);
}

/* A cooperative launch has a zeroed workspace in which its blocks count arrivals at barriers of the
 * whole grid. The registers %envreg1 and %envreg2 have its address, the upper half first, as nvcc's
 * code expects. 0: out of memory. */
static uint64_t take_workspace(const struct soft_module *module) {
    const struct soft_allocation wanted = {.bytes = SOFT_WORKSPACE_BYTES,
                                           .kind = SOFT_KIND_MODULE,
                                           .device = module->device,
                                           .slot = module->slot,
                                           .name = "the workspace of a cooperative launch"};
    struct soft_allocation *workspace = soft_space_alloc(&wanted, SOFT_WORKSPACE_BYTES);
    const uint8_t zero = 0;
    if (workspace == NULL) return 0;
    uint64_t address = workspace->address;
    soft_space_fill(address, &zero, sizeof zero, SOFT_WORKSPACE_BYTES);
    return address;
}

static void give_workspace(uint64_t address) {
    struct soft_allocation was;
    if (address != 0) soft_space_free(address, 1u << SOFT_KIND_MODULE, &was);
}

static struct soft_launch *new_launch(struct soft_kernel *kernel) {
    if (!soft_module_complete(kernel->function)) return NULL;
    struct soft_launch *launch = calloc(1, sizeof *launch);
    if (launch == NULL) return NULL;
    if (kernel->cooperative) launch->workspace = take_workspace(kernel->function->module);
    if (kernel->cooperative && launch->workspace == 0) {
        free(launch);
        return NULL;
    }
    uint32_t fixed = kernel->function->code->shared_bytes, dynamic = kernel->shared;
    pthread_mutex_init(&launch->lock, NULL);
    launch->code = kernel->function->code;
    launch->module = kernel->function->module;
    atomic_fetch_add(&launch->module->references, 1);
    memcpy(launch->grid, kernel->grid, sizeof launch->grid);
    memcpy(launch->block, kernel->block, sizeof launch->block);
    launch->dynamic_shared = dynamic;
    launch->shared_bytes = dynamic > 0 ? (fixed + 15) / 16 * 16 + dynamic : fixed;
    memcpy(launch->cluster, kernel->cluster, sizeof launch->cluster);
    launch->cluster_ctas = kernel->cluster[0] * kernel->cluster[1] * kernel->cluster[2];
    launch->explicit_clusters = kernel->explicit_clusters;
    launch->ctas = (uint64_t)kernel->grid[0] * kernel->grid[1] * kernel->grid[2];
    launch->clusters = launch->ctas / launch->cluster_ctas;
    launch->budget = soft_fault_instructions(soft_options()->budget);
    launch->parameters = kernel->parameters;
    kernel->parameters = NULL;
    return launch;
}

struct soft_operation *soft_operation_new(struct soft_task *task) {
    struct soft_operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL) return NULL;
    operation->kind = SOFT_OPERATION_TASK;
    if (task->kind == SOFT_TASK_KERNEL) {
        operation->launch = new_launch(&task->is.kernel);
        if (operation->launch == NULL) {
            free(operation);
            return NULL;
        }
    }
    operation->task = *task;
    task->kind = SOFT_TASK_EMPTY;
    return operation;
}

struct soft_operation *soft_operation_point(enum soft_operation_kind kind,
                                            struct soft_event_point *point) {
    struct soft_operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL) return NULL;
    operation->kind = kind;
    operation->point = point;
    return operation;
}

void soft_operation_free(struct soft_operation *operation) {
    struct soft_launch *launch = operation->launch;
    if (launch != NULL) {
        soft_launch_end(launch);
        soft_prior_clear(launch);
        give_workspace(launch->workspace);
        soft_module_release(launch->module);
        pthread_mutex_destroy(&launch->lock);
        free(launch->parameters);
        soft_touched_free(launch->touched);
        free(launch);
    }
    /* No thread must wait for an operation that was never executed. */
    if (operation->kind == SOFT_OPERATION_RECORD) operation->point->reached = true;
    soft_task_clear(&operation->task);
    soft_event_point_release(operation->point);
    if (operation->exec != NULL) operation->release(operation->exec);
    free(operation->staged);
    soft_stream_clock_free(operation->clock);
    free(operation);
}

bool soft_operation_is_polled(const struct soft_operation *operation) {
    return operation->kind == SOFT_OPERATION_TASK && operation->task.kind == SOFT_TASK_VALUES;
}

bool soft_operation_calls(const struct soft_operation *operation) {
    return operation->kind == SOFT_OPERATION_TASK &&
           (operation->task.kind == SOFT_TASK_HOST || operation->task.kind == SOFT_TASK_CALLBACK);
}

#ifndef NDEBUG

bool soft_operation_is_valid(const struct soft_operation *operation) {
    const struct soft_event_point *point = operation->point;
    switch (operation->kind) {
    case SOFT_OPERATION_TASK:
        return (operation->launch != NULL) == (operation->task.kind == SOFT_TASK_KERNEL);
    case SOFT_OPERATION_RECORD:
        return point != NULL && point->references > 0 && !point->reached;
    case SOFT_OPERATION_WAIT:
        return point != NULL && point->references > 0;
    case SOFT_OPERATION_FAULT:
        return operation->launch == NULL;
    }
    return false;
}

#endif

static _Atomic uint64_t operation_launches;

void soft_operation_number(struct soft_launch *launch, const struct soft_stream *stream) {
    launch->id = atomic_fetch_add(&operation_launches, 1) + 1;
    if (soft_options()->seed != 0) launch->dice = soft_dice(soft_options()->seed, launch->id);
    if (launch->reach == NULL) launch->reach = &stream->context->reach;
}

uint64_t soft_operation_last(void) {
    return atomic_load(&operation_launches);
}

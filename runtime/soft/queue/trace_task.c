/*
 * Describes operations for the trace.
 */
#include "trace_task.h"

#include "base/soft_clock.h"
#include "base/trace_line.h"
#include "grid/grid.h"
#include "memory/space.h"

#include <stdio.h>

enum { PLACE_BYTES = 64 };

void soft_trace_begin(struct soft_operation *operation) {
    if (operation->begun_ns == 0 && soft_trace_is_on()) operation->begun_ns = soft_now_ns();
}

static char side_of(const struct soft_copy_end *end) {
    struct soft_allocation found;
    if (!end->in_space || !soft_space_find(end->address, &found)) return 'H';
    switch (found.kind) {
    case SOFT_KIND_PINNED:
    case SOFT_KIND_REGISTERED:
        return 'H';
    case SOFT_KIND_ARRAY:
        return 'A';
    default:
        return 'D';
    }
}

static void trace_task_add_kernel(struct soft_trace_event *event, const struct soft_launch *launch,
                                  const char *place) {
    const uint32_t *grid = launch->grid, *block = launch->block;
    event->name = launch->code->name;
    event->category = "kernel";
    soft_trace_add(event, "%s,\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"shared\":%u,\"error\":%d",
                   place, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                   launch->shared_bytes, atomic_load(&launch->failed) ? launch->report.result : 0);
}

static void trace_task_add_copy(struct soft_trace_event *event, const struct soft_copy *copy,
                                const char *place) {
    char copy_name[16];
    snprintf(copy_name, sizeof copy_name, "copy %cto%c", side_of(&copy->from), side_of(&copy->to));
    event->name = copy_name;
    event->category = "copy";
    soft_trace_add(event, "%s,\"bytes\":%llu", place,
                   (unsigned long long)(copy->width * copy->height * copy->depth));
}

static void trace_task_add_fill(struct soft_trace_event *event, const struct soft_fill_rows *fill,
                                const char *place) {
    event->name = event->category = "fill";
    soft_trace_add(event, "%s,\"bytes\":%llu,\"value\":%u", place,
                   (unsigned long long)(fill->width * fill->height * fill->element_bytes),
                   fill->value);
}

static void add_memory(struct soft_trace_event *event, const struct soft_task *task,
                       const char *place) {
    event->name = task->kind == SOFT_TASK_ALLOC ? "allocation" : "free";
    event->category = "memory";
    soft_trace_add(event, "%s,\"address\":\"0x%llx\"", place, (unsigned long long)task->is.address);
}

static void trace_task_add_task(struct soft_trace_event *event,
                                const struct soft_operation *operation, const char *place) {
    const struct soft_task *task = &operation->task;
    switch (task->kind) {
    case SOFT_TASK_KERNEL:
        trace_task_add_kernel(event, operation->launch, place);
        break;
    case SOFT_TASK_COPY:
        trace_task_add_copy(event, &task->is.copy, place);
        break;
    case SOFT_TASK_FILL:
        trace_task_add_fill(event, &task->is.fill, place);
        break;
    case SOFT_TASK_ALLOC:
    case SOFT_TASK_FREE:
        add_memory(event, task, place);
        break;
    case SOFT_TASK_HOST:
    case SOFT_TASK_CALLBACK:
        event->name = "host function";
        event->category = "host";
        soft_trace_add(event, "%s", place);
        break;
    case SOFT_TASK_VALUES:
        event->name = "values";
        event->category = "value";
        soft_trace_add(event, "%s,\"count\":%u", place, task->is.values.count);
        break;
    default:
        break;
    }
}

void soft_trace_end(struct soft_stream *stream, const struct soft_operation *operation) {
    char place[PLACE_BYTES];
    if (operation->begun_ns == 0) return;
    struct soft_trace_event event = {.row = SOFT_TRACE_STREAMS + (unsigned)stream->id,
                                     .begin_ns = operation->begun_ns,
                                     .end_ns = soft_now_ns()};
    const bool is_event = operation->kind == SOFT_OPERATION_RECORD && operation->point->of_event;
    if (operation->kind != SOFT_OPERATION_TASK && !is_event) return;
    if (!stream->is_traced) soft_trace_name_row(event.row, "stream", stream->id);
    stream->is_traced = true;
    snprintf(place, sizeof place, "\"device\":%d", stream->context->reach.device);
    if (!is_event) {
        trace_task_add_task(&event, operation, place);
        return;
    }
    event.name = event.category = "event";
    soft_trace_add(&event, "%s", place);
}

/*
 * Finds the memory that a task could not access, row by row.
 */
#include "task_fault.h"

#include "base/report.h"

#include <inttypes.h>
#include <stdio.h>

struct loss {
    uint64_t address, bytes; /* the row */
    enum soft_access_kind kind;
};

static bool task_fault_find_row(const struct soft_copy_end *end, const struct soft_copy *copy,
                                enum soft_access_kind kind, struct loss *loss) {
    for (uint64_t layer = 0; layer < copy->depth && end->in_space; layer++) {
        for (uint64_t row = 0; row < copy->height; row++) {
            uint64_t address = end->address + row * end->pitch + layer * end->slice;
            if (soft_space_is_live(address, copy->width, kind)) continue;
            *loss = (struct loss){address, copy->width, kind};
            return true;
        }
    }
    return false;
}

/* The first invalid byte of a row, whose begin may be valid. */
static uint64_t first_byte(const struct loss *loss) {
    struct soft_allocation found;
    uint64_t byte = loss->address;
    while (byte - loss->address < loss->bytes && soft_space_is_live(byte, 1, loss->kind) &&
           soft_space_find(byte, &found)) {
        byte = found.address + found.bytes;
    }
    return byte;
}

static bool find_loss(const struct soft_task *task, unsigned at, struct loss *loss, char *name,
                      size_t bytes) {
    const struct soft_copy *copy = &task->is.copy;
    const struct soft_fill_rows *fill = &task->is.fill;
    if (task->kind == SOFT_TASK_COPY) {
        snprintf(name, bytes, "a copy of %" PRIu64 " bytes",
                 copy->width * copy->height * copy->depth);
        return task_fault_find_row(&copy->to, copy, SOFT_ACCESS_WRITE, loss) ||
               task_fault_find_row(&copy->from, copy, SOFT_ACCESS_READ, loss);
    }
    if (task->kind == SOFT_TASK_FILL) {
        const struct soft_copy shape = {
            .width = fill->width * fill->element_bytes, .height = fill->height, .depth = 1};
        const struct soft_copy_end end = {
            .address = fill->address, .pitch = fill->pitch, .in_space = true};
        snprintf(name, bytes, "a memset of %" PRIu64 " bytes", shape.width * shape.height);
        return task_fault_find_row(&end, &shape, SOFT_ACCESS_WRITE, loss);
    }
    if (task->kind == SOFT_TASK_VALUES && at < task->is.values.count) {
        const struct soft_stream_value *value = &task->is.values.items[at];
        *loss = (struct loss){value->address, value->wide ? 8 : 4,
                              value->write ? SOFT_ACCESS_WRITE : SOFT_ACCESS_READ};
        snprintf(name, bytes, "%s",
                 value->write ? "a stream memory operation" : "a wait for a value");
        return true;
    }
    return false;
}

void soft_task_fault_report(const struct soft_task *task, unsigned at,
                            const struct soft_reach *reach) {
    struct soft_report report = {.result = CUDA_ERROR_ILLEGAL_ADDRESS,
                                 .kind = soft_report_kind(CUDA_ERROR_ILLEGAL_ADDRESS)};
    struct loss loss;
    char name[64], where[256];
    if (!find_loss(task, at, &loss, name, sizeof name)) return;
    report.address = first_byte(&loss);
    soft_space_describe(report.address, reach, loss.kind, where, sizeof where);
    snprintf(report.detail, sizeof report.detail,
             "%s %s 0x%" PRIx64 ", which was allocated when the operation was queued: %s", name,
             loss.kind == SOFT_ACCESS_WRITE ? "writes at" : "reads at", report.address, where);
    soft_report_print(&report);
}

/*
 * The memory that tasks own, and the execution of copies, fills and stream memory operations.
 */
#include "task.h"

#include "state/graph_memory.h"

#include <stdlib.h>
#include <string.h>

void soft_task_clear(struct soft_task *task) {
    if (task->kind == SOFT_TASK_KERNEL) free(task->is.kernel.parameters);
    if (task->kind == SOFT_TASK_VALUES) free(task->is.values.items);
    task->kind = SOFT_TASK_EMPTY;
}

static void *task_copy_bytes(const void *bytes, size_t count) {
    void *copy = malloc(count > 0 ? count : 1);
    if (copy != NULL && count > 0) memcpy(copy, bytes, count);
    return copy;
}

bool soft_task_copy(struct soft_task *to, const struct soft_task *from) {
    *to = *from;
    if (from->kind == SOFT_TASK_KERNEL) {
        const struct soft_kernel *kernel = &from->is.kernel;
        size_t bytes = (size_t)kernel->function->code->parameter_bytes + 8;
        to->is.kernel.parameters = task_copy_bytes(kernel->parameters, bytes);
        return to->is.kernel.parameters != NULL;
    }
    if (from->kind == SOFT_TASK_VALUES) {
        size_t bytes = from->is.values.count * sizeof *from->is.values.items;
        to->is.values.items = task_copy_bytes(from->is.values.items, bytes);
        return to->is.values.items != NULL;
    }
    return true;
}

/* The address of a row's first byte. */
static uint64_t row_at(const struct soft_copy_end *end, uint64_t row, uint64_t layer) {
    return end->address + row * end->pitch + layer * end->slice;
}

/* Whether all rows are in the address space: no sum may overflow. */
static bool task_fits(const struct soft_copy_end *end, const struct soft_copy *copy) {
    uint64_t rows = 0, layers = 0, last = 0;
    return !__builtin_mul_overflow(copy->height - 1, end->pitch, &rows) &&
           !__builtin_mul_overflow(copy->depth - 1, end->slice, &layers) &&
           !__builtin_add_overflow(end->address, rows, &last) &&
           !__builtin_add_overflow(last, layers, &last) &&
           !__builtin_add_overflow(last, copy->width, &last);
}

/* Whether a row is live; or, if a promise is enough, will be when a graph executes it. */
static bool has_row(uint64_t address, uint64_t bytes, enum soft_access_kind kind, bool promised) {
    if (soft_space_is_live(address, bytes, kind)) return true;
    if (!promised) return false;
    pthread_mutex_lock(&soft_lock);
    bool holds = soft_graph_memory_holds(address, bytes);
    pthread_mutex_unlock(&soft_lock);
    return holds;
}

static bool has_rows(const struct soft_copy_end *end, const struct soft_copy *copy,
                     enum soft_access_kind kind, bool promised) {
    if (!end->in_space) {
        uint64_t last = row_at(end, copy->height - 1, copy->depth - 1);
        return !soft_space_holds(end->address, last - end->address + copy->width);
    }
    if (copy->height == 1 && copy->depth == 1) {
        return has_row(end->address, copy->width, kind, promised);
    }
    for (uint64_t layer = 0; layer < copy->depth; layer++) {
        for (uint64_t row = 0; row < copy->height; row++) {
            if (!has_row(row_at(end, row, layer), copy->width, kind, promised)) return false;
        }
    }
    return true;
}

bool soft_range_is_sound(uint64_t address, uint64_t bytes, enum soft_access_kind kind) {
    return has_row(address, bytes, kind, true);
}

bool soft_copy_is_sound(const struct soft_copy *copy) {
    const struct soft_copy_end *to = &copy->to, *from = &copy->from;
    return to->address != 0 && from->address != 0 && task_fits(to, copy) && task_fits(from, copy) &&
           has_rows(to, copy, SOFT_ACCESS_WRITE, true) &&
           has_rows(from, copy, SOFT_ACCESS_READ, true);
}

static bool copy_row(const struct soft_copy *copy, uint64_t to, uint64_t from, uint64_t bytes,
                     const uint8_t *staged) {
    const void *host = staged != NULL ? staged : (const void *)(uintptr_t)from;
    if (copy->to.in_space && (staged != NULL || !copy->from.in_space)) {
        return soft_space_write(to, host, bytes);
    }
    if (copy->to.in_space) return soft_space_copy(to, from, bytes);
    if (copy->from.in_space) {
        return soft_space_read(from, (void *)(uintptr_t)to, bytes);
    }
    memmove((void *)(uintptr_t)to, host, (size_t)bytes);
    return true;
}

bool soft_copy_do(const struct soft_copy *copy, const uint8_t *staged) {
    if (!has_rows(&copy->to, copy, SOFT_ACCESS_WRITE, false) ||
        !has_rows(&copy->from, copy, SOFT_ACCESS_READ, false)) {
        return false;
    }
    uint64_t left = copy->width * copy->height * copy->depth - copy->lost;
    for (uint64_t layer = 0; layer < copy->depth; layer++) {
        for (uint64_t row = 0; row < copy->height && left > 0; row++) {
            uint64_t to = row_at(&copy->to, row, layer), from = row_at(&copy->from, row, layer);
            uint64_t bytes = copy->width < left ? copy->width : left;
            if (!copy_row(copy, to, from, bytes, staged)) return false;
            left -= bytes;
            if (staged != NULL) staged += copy->width;
        }
    }
    return true;
}

uint8_t *soft_copy_stage(const struct soft_copy *copy) {
    uint8_t *staged = malloc((size_t)(copy->width * copy->height * copy->depth)), *at = staged;
    if (staged == NULL) return NULL;
    for (uint64_t layer = 0; layer < copy->depth; layer++) {
        for (uint64_t row = 0; row < copy->height; row++) {
            uint64_t from = row_at(&copy->from, row, layer);
            memcpy(at, (const void *)(uintptr_t)from, (size_t)copy->width);
            at += copy->width;
        }
    }
    return staged;
}

static struct soft_copy task_shape_of(const struct soft_fill_rows *fill) {
    return (struct soft_copy){
        .to = {.address = fill->address, .pitch = fill->pitch, .in_space = true},
        .width = fill->width * fill->element_bytes,
        .height = fill->height,
        .depth = 1};
}

bool soft_fill_is_sound(const struct soft_fill_rows *fill) {
    if (fill->width > UINT64_MAX / fill->element_bytes) return false;
    struct soft_copy shape = task_shape_of(fill);
    bool apart =
        fill->height == 1 || (fill->pitch >= shape.width && fill->pitch % fill->element_bytes == 0);
    return apart && fill->address % fill->element_bytes == 0 && task_fits(&shape.to, &shape) &&
           has_rows(&shape.to, &shape, SOFT_ACCESS_WRITE, true);
}

bool soft_fill_do(const struct soft_fill_rows *fill) {
    struct soft_copy shape = task_shape_of(fill);
    if (!has_rows(&shape.to, &shape, SOFT_ACCESS_WRITE, false)) return false;
    for (uint64_t row = 0; row < fill->height; row++) {
        uint64_t address = fill->address + row * fill->pitch;
        if (!soft_space_fill(address, &fill->value, fill->element_bytes, fill->width)) {
            return false;
        }
    }
    return true;
}

static bool has_come(const struct soft_stream_value *value, uint64_t now) {
    switch (value->flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ: /* cyclic: the difference is not negative */
        return value->wide ? (int64_t)(now - value->value) >= 0
                           : (int32_t)((uint32_t)now - (uint32_t)value->value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == value->value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & value->value) != 0;
    default:
        return (~(now | value->value) & (value->wide ? UINT64_MAX : UINT32_MAX)) != 0;
    }
}

bool soft_stream_value_do(const struct soft_stream_value *value, bool *ok) {
    uint64_t bytes = value->wide ? 8 : 4, now = 0;
    if (value->nothing) return true;
    if (value->write) {
        *ok = !value->raises || soft_space_read(value->address, &now, bytes);
        if (!*ok || (value->raises && now >= value->value)) return true;
        *ok = soft_space_write(value->address, &value->value, bytes);
        return true;
    }
    *ok = soft_space_read(value->address, &now, bytes);
    return !*ok || has_come(value, now);
}

/*
 * Task: one unit of work for a device: a launch, a copy, a fill, a host function and so on.
 *
 * A task is a description and can be executed any number of times. A call creates one and submits
 * it to a stream. A stream in capture keeps it as a node of a graph instead, and a graph launch
 * submits the tasks of its nodes.
 */
#ifndef SOFT_TASK_H
#define SOFT_TASK_H

#include "state/driver_state.h"

enum soft_task_kind {
    SOFT_TASK_EMPTY,
    SOFT_TASK_KERNEL,
    SOFT_TASK_COPY,
    SOFT_TASK_FILL,
    SOFT_TASK_HOST,
    SOFT_TASK_CALLBACK,
    SOFT_TASK_VALUES,
    SOFT_TASK_ALLOC, /* of graphs alone */
    SOFT_TASK_FREE
};

struct soft_kernel {
    struct soft_function *function;
    uint32_t grid[3], block[3];
    uint32_t cluster[3]; /* at least one each */
    bool explicit_clusters;
    uint32_t shared; /* dynamic bytes */
    bool cooperative;
    bool programmatic;   /* it may begin before the preceding kernel in its stream has ended */
    uint8_t *parameters; /* as the kernel sees them, and eight bytes more; the task's own */
};

/* One end of a copy: rows of bytes, one pitch apart, and layers of rows. */
struct soft_copy_end {
    uint64_t address; /* of the first byte to copy, of the host or the device */
    uint64_t pitch, slice;
    bool in_space; /* checked against live allocations; else pageable host memory */
};

struct soft_copy {
    struct soft_copy_end to, from;
    uint64_t width, height, depth; /* bytes, rows, layers */
    uint64_t lost;                 /* bytes at the end that a fault truncates */
};

struct soft_fill_rows {
    uint64_t address, pitch;
    uint32_t value;
    unsigned element_bytes;
    uint64_t width, height; /* elements, rows */
};

/* Waiting for a value in memory, and writing one. */
struct soft_stream_value {
    bool write, wide, nothing; /* nothing: a barrier, which stream order already implies */
    bool raises;               /* a write that only ever makes the value larger */
    unsigned flags;
    uint64_t address, value;
};

struct soft_task {
    enum soft_task_kind kind;
    union {
        struct soft_kernel kernel;
        struct soft_copy copy;
        struct soft_fill_rows fill;
        struct {
            CUhostFn function;
            void *data;
        } host;
        struct {
            CUstreamCallback function;
            CUstream stream;
            void *data;
        } callback;
        struct {
            struct soft_stream_value *items; /* the task's own */
            unsigned count;
        } values;
        uint64_t address; /* to allocate at, or to free */
    } is;
};

/* Frees what a task owns, not the task itself. */
void soft_task_clear(struct soft_task *task);

/* Copies a task with everything it owns. false: the host is out of memory. */
bool soft_task_copy(struct soft_task *to, const struct soft_task *from);

/* Whether a range, or those of a copy or a fill, are valid: within the address space, and live or
 * promised by a graph. */
bool soft_range_is_sound(uint64_t address, uint64_t bytes, enum soft_access_kind kind);
bool soft_copy_is_sound(const struct soft_copy *copy);
bool soft_fill_is_sound(const struct soft_fill_rows *fill);

/* Executes a copy or a fill; staged is the copy of the source, or NULL. false: a range is not
 * live. */
bool soft_copy_do(const struct soft_copy *copy, const uint8_t *staged);
bool soft_fill_do(const struct soft_fill_rows *fill);

/* The rows of a pageable source, without gaps; NULL without memory. */
uint8_t *soft_copy_stage(const struct soft_copy *copy);

/* Executes an operation on a value; false: it waits for another value. ok becomes false if the
 * memory is not live. */
bool soft_stream_value_do(const struct soft_stream_value *value, bool *ok);

#endif

/*
 * Touch: the bytes that an operation read and wrote, and those of earlier operations.
 *
 * Stored in pages, one bit per byte and kind. The pages of an operation are compared with the marks
 * of earlier operations there, and become a mark themselves. A mark replaces the marks of
 * operations that are ordered before it, so a page has about one mark per stream that uses it.
 */
#ifndef SOFT_TOUCH_H
#define SOFT_TOUCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Strong accesses, which may overlap each other: atomics, volatile, relaxed, acquire and release
 * accesses, and values that streams wait for and write. */
enum soft_touch {
    SOFT_TOUCH_READ,
    SOFT_TOUCH_WRITE,
    SOFT_TOUCH_STRONG_READ,
    SOFT_TOUCH_STRONG_WRITE,
    SOFT_TOUCHES
};

struct soft_touched;

/* What one operation touches; NULL without memory. */
struct soft_touched *soft_touched_new(void);
void soft_touched_free(struct soft_touched *touched);

/* Adds bytes of the allocation that begins at base. Thread-safe. */
void soft_touched_add(struct soft_touched *touched, enum soft_touch touch, uint64_t base,
                      uint64_t address, uint64_t bytes);

/* Whether any of these bytes was touched in this way. Not while others add bytes. */
bool soft_touched_has(const struct soft_touched *touched, enum soft_touch touch, uint64_t base,
                      uint64_t address, uint64_t bytes);

/* Calls visit for each run of read bytes and each run of written bytes, of at most a page. Not
 * while others add bytes. */
void soft_touched_each(const struct soft_touched *touched,
                       void (*visit)(uint64_t address, uint64_t bytes, bool is_write, void *data),
                       void *data);

/* Whether host memory was written, or was read by strong accesses: the host and the operation may
 * have synchronised through it. Thread-safe. */
bool soft_touched_told_host(struct soft_touched *touched);
bool soft_touched_asked_host(struct soft_touched *touched);

/* An operation of marks; an order says whether it precedes the current one. */
struct soft_deed;

struct soft_conflict {
    const struct soft_deed *earlier;
    uint64_t base, bytes, serial; /* of the allocation */
    uint64_t low, high;           /* the first byte of the conflict, and the last */
    bool wrote, writes;           /* what the earlier one did there, and what this one does */
};

/* The functions of operations that touches need. */
struct soft_touch_order {
    bool (*comes_before)(const struct soft_deed *earlier, const void *self);
    void (*conflict)(const struct soft_conflict *conflict, void *self);
    struct soft_deed *(*hold)(void *self); /* a reference for a mark; NULL: no mark */
    void (*release)(struct soft_deed *deed);
};

/* Compares the bytes that an operation has touched with those of others, and records them.
 * Conflicts with one operation in one allocation are reported together. One thread at a time. */
void soft_touched_settle(struct soft_touched *touched, const struct soft_touch_order *order,
                         void *self);

/* Calls visit for each operation whose mark has written some of these bytes. */
void soft_touched_writers(uint64_t address, uint64_t bytes,
                          void (*visit)(const struct soft_deed *deed, void *data), void *data);

/* Forgets all marks. */
void soft_touched_forget(const struct soft_touch_order *order);

#endif

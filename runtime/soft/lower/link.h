/*
 * Linking: assigns addresses that all parts of a module share, before any of them is lowered.
 *
 * Functions get addresses, because kernels may store these in registers and tables. Shared
 * variables get offsets. A variable that only one kernel uses takes space in that kernel only. A
 * variable that a function uses, which several kernels may call, has the same offset in all of
 * them.
 */
#ifndef SOFT_LINK_H
#define SOFT_LINK_H

#include "base/arena.h"
#include "ptx/diagnostic.h"
#include "ptx/unit.h"

struct soft_linked {
    struct ptx_function **functions; /* those with a body; an address is base and 16 for each */
    uint32_t count;
    uint64_t base;
};

/* Gives every function with a body its code, empty except for shared_bytes, and its address.
 * shared_bytes includes the padding that aligns dynamic shared memory beyond 16. The units have
 * been united. */
bool soft_link(struct soft_diagnostic *diagnostic, struct soft_arena *arena,
               const struct soft_unit *units, unsigned count, struct soft_linked *linked);

/* The function at an address; NULL if none begins there. */
struct ptx_function *soft_linked_function(const struct soft_linked *linked, uint64_t address);

#endif

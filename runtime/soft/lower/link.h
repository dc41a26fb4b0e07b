/*
 * Linking: what a module's parts know of each other, before any of them is lowered.
 *
 * Functions get addresses, which kernels may keep in registers and tables. Shared variables get
 * offsets: those that only one kernel names lie in that kernel's memory alone, as if the others'
 * did not exist; those of functions, which several kernels may call, lie at one place in all.
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

/* Gives every function with a body its code, still empty but for shared_bytes, and its address.
 * The units have been united. */
bool soft_link(struct soft_diagnostic *diagnostic, struct soft_arena *arena,
               const struct soft_unit *units, unsigned count, struct soft_linked *linked);

/* The function at an address; NULL if none begins there. */
struct ptx_function *soft_linked_function(const struct soft_linked *linked, uint64_t address);

#endif

/*
 * Taint: values that a warp has loaded from memory that was never written.
 *
 * Compilers load a value before they know whether it will be used, so the load alone is no mistake.
 * A tainted value is one when it decides something: a branch or a guard, an address, a store, what
 * other lanes or another function get. Then the load is reported. While a warp has tainted values,
 * it runs instruction by instruction, and each passes the taint on from what it reads to what it
 * writes; a select, from the operand that it selects.
 */
#ifndef SOFT_TAINT_H
#define SOFT_TAINT_H

#include "taint_list.h"

/* Taints what a lane has loaded, of a vector the components from first on, or reports it if that is
 * not possible. */
void soft_taint_add(struct soft_warp *warp, const struct soft_tainted_load *load, uint32_t lane,
                    unsigned first);

/* Reports a read of unwritten memory by lanes, and the instruction that depends on its value; NULL:
 * none is known. */
void soft_taint_tell(struct soft_warp *warp, const struct soft_tainted_load *load, uint32_t lanes,
                     const struct soft_instruction *use);

/* What a load returns to its caller: the next instruction, or NULL for the warp to run on in
 * soft_taint_run. */
const struct soft_instruction *soft_taint_next(struct soft_warp *warp,
                                               const struct soft_instruction *instruction);

/* Runs the current split while the warp has tainted values. Returns the next instruction, or NULL
 * when the warp must stop, as a handler does. */
const struct soft_instruction *soft_taint_run(struct soft_warp *warp,
                                              const struct soft_instruction *next);

#endif

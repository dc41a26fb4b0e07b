/*
 * Heap: malloc and free in kernels.
 *
 * The heap belongs to the context, not to the launch: one kernel may use and free what another one
 * allocated. The host cannot free it. Each block is an allocation of its own, so accesses outside
 * it and after its free are detected like any other.
 */
#ifndef SOFT_HEAP_H
#define SOFT_HEAP_H

#include "machine_state.h"

/* malloc: more[0] is the slot of the bytes wanted, d that of the addresses; 0 where the context's
 * limit leaves no room. */
const struct soft_instruction *soft_heap_malloc(struct soft_warp *warp,
                                                const struct soft_instruction *in);

/* free: more[0] is the slot of the addresses; 0 is nothing to free. */
const struct soft_instruction *soft_heap_free(struct soft_warp *warp,
                                              const struct soft_instruction *in);

/* A context has ended, and its memory is freed: its number may be another's. */
void soft_heap_forget(unsigned slot);

#endif

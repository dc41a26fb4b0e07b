/*
 * Heap: malloc and free in kernels.
 *
 * The heap belongs to the context, not to the launch: one kernel may use and free what another one
 * allocated. The host cannot free it. Each block is a separate allocation, so accesses outside it
 * and after its free are detected like any other.
 */
#ifndef SOFT_HEAP_H
#define SOFT_HEAP_H

#include "machine_state.h"

/* malloc: more[0] is the slot of the requested bytes, d that of the addresses; 0 if the context's
 * limit is reached. */
const struct soft_instruction *soft_heap_malloc(struct soft_warp *warp,
                                                const struct soft_instruction *in);

/* free: more[0] is the slot of the addresses; 0 frees nothing. */
const struct soft_instruction *soft_heap_free(struct soft_warp *warp,
                                              const struct soft_instruction *in);

/* A context has ended, and its memory is freed: its number may be reused. */
void soft_heap_forget(unsigned slot);

#endif

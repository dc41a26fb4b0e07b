/*
 * Registers: the register counts of warpgroups, as set by setmaxnreg.
 */
#ifndef SOFT_REGISTERS_H
#define SOFT_REGISTERS_H

#include "machine/machine_state.h"

/* A block begins. */
static inline void soft_registers_begin(struct soft_cta *cta) {
    for (uint32_t g = 0; g * SOFT_WARPGROUP < cta->warp_count; g++) {
        cta->warpgroups[g] = (struct soft_warpgroup){0};
    }
}

/* setmaxnreg, by a whole warp. in->mode: see SOFT_REGISTERS. */
const struct soft_instruction *soft_registers_set(struct soft_warp *warp,
                                                  const struct soft_instruction *in);

/* A block has ended: reports warpgroups of which only some warps have executed one. */
void soft_registers_end(struct soft_cta *cta);

#endif

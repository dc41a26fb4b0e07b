/*
 * Surface: the instructions suld, sust and sured, lane by lane.
 */
#ifndef SOFT_SURFACE_H
#define SOFT_SURFACE_H

#include "machine/machine_state.h"

const struct soft_instruction *soft_surface_load(struct soft_warp *warp,
                                                 const struct soft_instruction *instruction);
const struct soft_instruction *soft_surface_store(struct soft_warp *warp,
                                                  const struct soft_instruction *instruction);
const struct soft_instruction *soft_surface_reduce(struct soft_warp *warp,
                                                   const struct soft_instruction *instruction);

#endif

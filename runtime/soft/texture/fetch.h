/*
 * Fetch: the instructions tex, tld4, txq and suq, lane by lane.
 */
#ifndef SOFT_FETCH_H
#define SOFT_FETCH_H

#include "machine/machine_state.h"

const struct soft_instruction *soft_texture_fetch(struct soft_warp *warp,
                                                  const struct soft_instruction *instruction);
const struct soft_instruction *soft_texture_gather(struct soft_warp *warp,
                                                   const struct soft_instruction *instruction);
const struct soft_instruction *soft_texture_ask(struct soft_warp *warp,
                                                const struct soft_instruction *instruction);

#endif

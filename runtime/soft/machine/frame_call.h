/*
 * Calls: the instruction bodies of call, ret, alloca and similar. Each handler returns the next
 * instruction, or NULL if the warp must wait or the launch has failed.
 */
#ifndef SOFT_FRAME_CALL_H
#define SOFT_FRAME_CALL_H

#include "frame.h"

/* more: the number of arguments, their bytes and slots; the number of results, their bytes and
 * slots. Directly: to u.callee. Indirectly: each lane to the function whose address is in slot a;
 * they reconverge at target, the next instruction. */
const struct soft_instruction *soft_call(struct soft_warp *warp, const struct soft_instruction *in);
const struct soft_instruction *soft_call_indirect(struct soft_warp *warp,
                                                  const struct soft_instruction *in);

/* All lanes of the split are at the function's end. */
const struct soft_instruction *soft_return(struct soft_warp *warp,
                                           const struct soft_instruction *in);

/* d: a local address of slot a bytes, at a multiple of the immediate. */
const struct soft_instruction *soft_alloca_take(struct soft_warp *warp,
                                                const struct soft_instruction *in);
const struct soft_instruction *soft_alloca_save(struct soft_warp *warp,
                                                const struct soft_instruction *in);
const struct soft_instruction *soft_alloca_restore(struct soft_warp *warp,
                                                   const struct soft_instruction *in);

#endif

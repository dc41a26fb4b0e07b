/*
 * Stall: a cooperative launch whose blocks wait at the grid's barrier for blocks that have ended.
 *
 * The barrier is code of CUDA's headers, or of lower/device_runtime.c: a loop that reads a counter
 * in the launch's workspace. Nobody but the blocks of the launch changes the workspace, so the
 * launch never ends if each block that is left does nothing but read it, in turns that began after
 * the last turn of any block that did more, and the workspace has not changed since. Loops that
 * read other memory are not judged: the host or another stream may write it.
 */
#ifndef SOFT_STALL_H
#define SOFT_STALL_H

#include "machine/machine_state.h"

/* Returns the round in which a turn of a CTA begins, for soft_stall_end. Any thread. */
uint64_t soft_stall_begin(struct soft_launch *launch);

/* A turn of a CTA, the first one of its cluster, has ended. If no block of the launch can ever
 * continue, the launch fails with CUDA_ERROR_LAUNCH_TIMEOUT and a report. Only for cooperative
 * launches; called by the thread that ran the turn, without the launch's lock. */
void soft_stall_end(struct soft_launch *launch, struct soft_cta *cta, enum soft_stop stop,
                    uint64_t round);

#endif

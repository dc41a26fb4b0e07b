/*
 * Waiting: blocks that other streams were recorded for. Each is freed when the work that those
 * streams had at the time of the free is done. A stream that is being captured gets its event after
 * the capture.
 *
 * Making the block's own stream wait instead would need no list, but it would stop that stream.
 */
#ifndef TOLLENS_TORCH_WAITING_H
#define TOLLENS_TORCH_WAITING_H

#include "torch_device.h"

/* Takes over a block with uses, to be freed later. The device must be entered, here and below. */
void torch_wait_add(struct torch_device *device, const struct torch_block *block);

/* Frees the blocks whose streams are done, of the oldest few. */
void torch_wait_look(struct torch_device *device);

/* Waits for each stream that is not being captured, up to TOL_DEADLINE_MS, and frees what can be.
 * Returns the number of blocks freed. */
size_t torch_wait_all(struct torch_device *device);

/* Frees a block without uses to where it came from. */
void torch_block_give(struct torch_device *device, const struct torch_block *block);

#endif

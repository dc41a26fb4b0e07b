/*
 * Sweeps over frames: see once.h. The part that places small blocks.
 * The caller locks.
 */
#ifndef TOLLENS_SWEEP_H
#define TOLLENS_SWEEP_H

#include "once_state.h"

/* A place for bytes in a frame, or in one of its own: the window and the block's index in it. */
tol_status tol_frame_place(struct tol_once *once, uint64_t bytes, struct tol_window **window,
                           uint32_t *index);

/* A block's end: its memory is free, its address is not. */
void tol_frame_end_block(struct tol_once *once, struct tol_window *window, uint32_t index);

/* Unmaps and gives back a frame, whatever lives in it. */
void tol_frame_release(struct tol_once *once, struct tol_frame *frame);

#endif

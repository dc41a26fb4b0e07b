/*
 * Pass draw: draws the tokens of a step on the device, so that logits stay there.
 *
 * The input of a pass has one row of parameters per row, after the tokens, positions and slots, so
 * that they too are data to a graph. The caller holds the loaded model's lock.
 */
#ifndef TOLLENS_PASS_DRAW_H
#define TOLLENS_PASS_DRAW_H

#include "loaded_state.h"
#include "token_sampler.h"

/* Whether the device can draw for a sampler: its window is not too long. */
bool loaded_draw_can(const struct tol_loaded *loaded, const struct tol_sampler *sampler);

/* Bytes of the input of a pass of `rows` rows, with its draws. */
size_t loaded_draw_end(size_t rows);

/* Writes one row of parameters per sampler of a pass to the pinned block. */
tol_status loaded_draw_send(struct tol_loaded *loaded, struct tol_sampler *const *samplers,
                            size_t count);

/* Queues the draws of the logits of all rows. The drawn tokens replace those of the largest logits.
 * follows_copy: it is queued after a copy, not after a kernel. */
tol_status loaded_draw_queue(const struct tol_loaded *loaded, size_t rows, bool follows_copy);

#endif

/*
 * Prompt: passes of many positions of one session, as products of fp16 matrices.
 *
 * The weights of a matrix become halves once per pass, in a workspace that all matrices share, and
 * the device's matrix product and attention do the rest: a long prompt is then bound by arithmetic,
 * where a step is bound by reading weights. A position's bits depend only on the tokens up to it,
 * as those of a step do, but they are other bits. So the session's own calls decide which of both
 * computes a position, never memory, other sessions, or the number of shared positions.
 *
 * The caller holds the loaded model's lock.
 */
#ifndef TOLLENS_PROMPT_H
#define TOLLENS_PROMPT_H

#include "pass.h"

/* Allocates memory for passes of up to `rows` positions, or fewer if it is short, down to 256, on
 * all of the model's devices, and learns the powers of two by which weights are scaled; the weights
 * are there. If it can be done with no memory, device or model, loaded->prompt.rows stays 0.
 * TOL_DRIVER_ERROR, TOL_POISONED, TOL_OUT_OF_HOST_MEMORY. */
tol_status loaded_prompt_make(struct tol_loaded *loaded, size_t rows);

/* As loaded_pass_run; rows are neighbouring positions of one session, `wanted` at most 1. */
tol_status loaded_prompt_run(struct tol_loaded *loaded, const struct loaded_pass *pass,
                             struct loaded_outcome *outcome);

/* Creates for a device what another of its kind has. As loaded_prompt_make, but all or nothing. */
tol_status loaded_prompt_copy(struct tol_loaded *to, const struct tol_loaded *from);

/* Gives a device's memory back. */
void loaded_prompt_end(struct tol_loaded *loaded);

#endif

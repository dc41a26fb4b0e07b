/*
 * Share: the part of a model that one of several devices computes, and what that device needs for
 * it.
 *
 * Every matrix is divided by rows, so one device computes each element of a product, in one sum, in
 * the order of a single device: devices exchange columns of results, never parts of sums. So logits
 * are the same bits for any number of devices. Dividing the second product of a pair by its columns
 * and adding partial sums would need two exchanges per layer instead of four, but sums in another
 * order, and so other tokens where two are nearly equal.
 *
 * Pure functions of the shape.
 */
#ifndef TOLLENS_SHARE_H
#define TOLLENS_SHARE_H

#include "loaded_state.h"

/* TOL_UNSUPPORTED: the shape cannot be divided this way; the message says why. */
tol_status loaded_share(const struct tol_model_shape *shape, unsigned rank, unsigned ranks,
                        struct loaded_share *share);

/* The heads of attention of a share. */
struct kn_paged_heads loaded_heads(const struct tol_loaded *loaded);

#endif

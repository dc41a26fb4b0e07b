/*
 * Share: what of a model one of several devices computes, and what that device needs of it.
 *
 * Every matrix is shared by rows, so each element of a product is one device's, in one sum, in the
 * order that one device alone would have: what is exchanged are columns of results, never parts of
 * sums. So logits are the same bits whatever the number of devices. To share the second product of
 * a pair by its columns and add parts of sums would need two exchanges a layer in place of four,
 * but sums in another order, and so other tokens where two are nearly alike.
 *
 * Pure functions of the shape.
 */
#ifndef TOLLENS_SHARE_H
#define TOLLENS_SHARE_H

#include "loaded_state.h"

/* TOL_UNSUPPORTED: the shape cannot be shared so; the message says why. */
tol_status loaded_share(const struct tol_model_shape *shape, unsigned rank, unsigned ranks,
                        struct loaded_share *share);

/* The heads of attention of a share. */
struct kn_paged_heads loaded_heads(const struct tol_loaded *loaded);

#endif

/*
 * linear pair: two products of the same x, as of q and k, and of v, whose weights have two formats.
 *
 * The bits of kn_linear for each. If the device has compute capability 9.0, x is rounded, there are
 * at most four columns and neither names a variant, Q4_K or Q5_K with Q6_K take one kernel, whose
 * persistent thread blocks are divided between the two; else each takes its own.
 */
#ifndef KN_LINEAR_PAIR_H
#define KN_LINEAR_PAIR_H

#include "quantised/linear/linear.h"

/* Both read the same columns from the same workspace, or the same x. Fails as kn_linear does, and
 * with TOL_INVALID_ARGUMENT where they do not. Queues and waits for nothing. Thread-safe, as
 * tol_launch is. */
TOL_API tol_status kn_linear_pair(struct kn_kernels *kernels, struct tol_stream *stream,
                                  const struct kn_linear *first, const struct kn_linear *second);

#endif

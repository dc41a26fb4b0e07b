/*
 * paged step: kn_heads and then kn_paged_attention, for a step of sessions.
 *
 * The same bits in the cache and in the result; the contents of qkv afterwards are not defined. If
 * the device has compute capability 9.0, up to eight heads of q share a key and neither names a
 * variant, they take one kernel if splits is 1, and two if not; else three.
 */
#ifndef KN_PAGED_STEP_H
#define KN_PAGED_STEP_H

#include "decode/paged.h"

/*
 * Both are of one batch and shape, q is where qkv begins, and each row is of another session: a row
 * does not see what the others store. Fails as they do, and with TOL_INVALID_ARGUMENT if they
 * are not of one batch. Queues and waits for nothing. Thread-safe, as tol_launch is.
 */
TOL_API tol_status kn_paged_step(struct kn_kernels *kernels, struct tol_stream *stream,
                                 const struct kn_heads_ready *heads, const struct kn_paged *paged);

#endif

/*
 * A trial of attention over packed sequences: generates sequences, runs a kernel and compares each
 * sequence with the oracle. For tests and claims.
 */
#ifndef KN_ATTENTION_PACKED_TRIAL_H
#define KN_ATTENTION_PACKED_TRIAL_H

#include "attention/packed/packed_sequences.h"

/* out and the logarithms begin as NaN, as do gaps and guard zones. The status is a failure of the
 * runtime or of host memory. */
TOL_API tol_status kn_attention_packed_try(struct kn_kernels *kernels, struct tol_stream *stream,
                                           const struct kn_attention_packed_trial *trial,
                                           struct kn_attention_packed_outcome *outcome);

#endif

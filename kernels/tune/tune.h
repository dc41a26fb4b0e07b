/*
 * Tune: times the variants that serve a problem on a device, and keeps the fastest.
 *
 * Variants take turns, so that a device that becomes slower in the course of a run is so for all. A
 * time is the median over rounds of as many launches, between two events. The variant of the
 * operation's table stays unless another takes at most 0.98 of its time. The program kn-tune does
 * this for problems on its command line.
 *
 * The operands are the caller's, and C or out is overwritten. Small operands stay in the L2 cache
 * between launches, so a small problem may be slower in a program than was measured. Each call
 * waits for its launches. Thread-safety is that of the operation, with one call a stream.
 */
#ifndef KN_TUNE_H
#define KN_TUNE_H

#include "attention/forward/attention.h"
#include "grouped/grouped.h"
#include "norm/norm.h"
#include "softmax/softmax.h"

/* What a tuning of this library on this device has as its identity. commit: of the library's
 * source, or NULL if it is not known. */
TOL_API tol_status kn_tune_identity(struct tol_context *context, const char *commit,
                                    struct kn_tuning_identity *identity);

/* Time the variants for a problem, keep the result in the tuning, and give it. The problem names no
 * variant and no table (TOL_INVALID_ARGUMENT). Else fail as the operation does. */
TOL_API tol_status kn_tune_gemm(struct kn_kernels *kernels, struct tol_stream *stream,
                                const struct kn_gemm *gemm, struct kn_tuning *tuning,
                                struct kn_tuned *tuned);
TOL_API tol_status kn_tune_grouped(struct kn_kernels *kernels, struct tol_stream *stream,
                                   const struct kn_grouped *grouped, struct kn_tuning *tuning,
                                   struct kn_tuned *tuned);
TOL_API tol_status kn_tune_softmax(struct kn_kernels *kernels, struct tol_stream *stream,
                                   const struct kn_softmax *softmax, struct kn_tuning *tuning,
                                   struct kn_tuned *tuned);
TOL_API tol_status kn_tune_norm(struct kn_kernels *kernels, struct tol_stream *stream,
                                const struct kn_norm *norm, struct kn_tuning *tuning,
                                struct kn_tuned *tuned);
/* Give the workspace that kn_attention_workspace says, or the variants that share keys out among
 * blocks are timed without it. */
TOL_API tol_status kn_tune_attention(struct kn_kernels *kernels, struct tol_stream *stream,
                                     const struct kn_attention *attention, struct kn_tuning *tuning,
                                     struct kn_tuned *tuned);

#endif

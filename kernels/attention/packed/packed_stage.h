/*
 * The stage of a trial of attention over sequences: its operands, and what judges a kernel's
 * result. Keys and values are rows here; where a kernel takes them from is the trial's own.
 * Internal to the operation, and to attention over pages. Not thread-safe.
 */
#ifndef KN_PACKED_STAGE_H
#define KN_PACKED_STAGE_H

#include "attention/forward/attention_matrix.h"
#include "attention/packed/packed_sequences.h"

enum { PACKED_Q, PACKED_K, PACKED_V, PACKED_OUT, PACKED_KINDS };

struct packed_stage {
    struct attention_matrix matrices[PACKED_KINDS];
    struct tol_buffer *lse, *begins[2]; /* begins: of rows, and of keys */
    unsigned char *bytes;               /* the size of the largest matrix with its gaps */
    float *logarithms;                  /* [head][row] */
};

/* Draws the operands of a trial into a stage that is {0}. out and the logarithms begin as NaN.
 * Fails as tol_buffer_create does, or for lack of host memory; what was made is to be destroyed. */
tol_status packed_stage_make(struct kn_kernels *kernels,
                             const struct kn_attention_packed_trial *trial,
                             struct packed_stage *stage);

/* {0} is a no-op. */
void packed_stage_destroy(struct packed_stage *stage);

/* The trial's problem with the stage's operands. */
struct kn_attention_packed packed_stage_wish(const struct kn_attention_packed_trial *trial,
                                             const struct packed_stage *stage);

/* Waits for the stream, reads what a kernel has given, and compares each sequence without poison
 * with the oracle. Fails as tol_stream_synchronize_for does, or for lack of host memory. */
tol_status packed_stage_judge(struct tol_stream *stream,
                              const struct kn_attention_packed_trial *trial,
                              struct packed_stage *stage,
                              struct kn_attention_packed_outcome *outcome);

#endif

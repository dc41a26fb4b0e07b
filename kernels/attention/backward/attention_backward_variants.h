/*
 * The tables of attention's backward pass that are not public. Internal.
 */
#ifndef KN_ATTENTION_BACKWARD_VARIANTS_H
#define KN_ATTENTION_BACKWARD_VARIANTS_H

#include "attention/attention_table.h"
#include "attention/backward/attention_backward_problem.h"

/* What is launched besides: "figures", the prologue, which computes the figures of the rows of q;
 * "begin", the prologue of "ordered", which also clears the turns; and "finish", its epilogue,
 * which computes d_q from the sums. */
extern const struct kn_variants kn_attention_backward_beside;

#endif

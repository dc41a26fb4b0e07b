/*
 * The tables of attention's kernels that are not public. Internal.
 */
#ifndef KN_ATTENTION_VARIANTS_H
#define KN_ATTENTION_VARIANTS_H

#include "attention/attention_table.h"
#include "attention/forward/attention_problem.h"

/* The kernels that merge the parts of blocks that share keys: "combine_early", which is launched by
 * programmatic dependent launch, and "combine". Of the problem they take the type. */
extern const struct kn_variants kn_attention_combine;

#endif

/*
 * Tell: what `tollens run` says on stdout, for people.
 */
#ifndef HYP_TELL_H
#define HYP_TELL_H

#include "run_options.h"

/* What is about to run. */
void hyp_tell_begin(const struct hyp_run *run);

/* One claim, when it has its verdict. */
void hyp_tell_verdict(const struct hyp_claim *claim, const struct hyp_verdict *verdict);

/* The reasons, the counts, and where the evidence lies. */
void hyp_tell_end(const struct hyp_run *run, const struct hyp_wishes *wishes);

#endif

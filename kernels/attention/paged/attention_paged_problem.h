/*
 * A problem of attention over paged sequences as its variants see it. Internal. Pure; thread-safe.
 */
#ifndef KN_ATTENTION_PAGED_PROBLEM_H
#define KN_ATTENTION_PAGED_PROBLEM_H

#include "attention/forward/attention_problem.h"
#include "attention/paged/attention_paged.h"
#include "attention/paged/attention_paged_arguments.h"

struct attention_paged_problem {
    const struct kn_attention_paged *paged;
    struct kn_attention whole; /* the rows of all sequences as one problem */
    struct attention_problem rows;
    struct attention_paged_arguments arguments;
    bool is_aligned; /* each piece of 8 elements begins at a multiple of 16 bytes */
};

/* Checks a problem, and describes it to the kernels. Fails as kn_attention_paged does. */
tol_status attention_paged_check(const struct kn_attention_paged *p,
                                 struct attention_paged_problem *problem);

#endif

/*
 * A problem of attention's backward pass as its variants see it. Internal. Pure; thread-safe.
 */
#ifndef KN_ATTENTION_BACKWARD_PROBLEM_H
#define KN_ATTENTION_BACKWARD_PROBLEM_H

#include "attention/backward/attention_backward.h"
#include "attention/backward/attention_backward_arguments.h"
#include "attention/forward/attention_problem.h"

struct attention_backward_problem {
    const struct kn_attention_backward *backward;
    struct attention_backward_arguments arguments;
    bool is_aligned; /* each row of all operands begins at a multiple of 16 bytes */
    bool has_maps;   /* the driver makes tensor maps */
};

/* Whether there are enough tiles of keys for "ordered" to be the fastest. */
bool attention_backward_is_long(const struct kn_attention *forward);

/* Checks a problem, and describes it to the kernels. Fails as kn_attention_backward does. */
tol_status attention_backward_check(const struct kn_attention_backward *b,
                                    struct attention_backward_problem *problem);

#endif

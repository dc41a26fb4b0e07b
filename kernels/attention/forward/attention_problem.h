/*
 * A problem of attention as its variants see it: the caller's problem, and what the checks derived
 * from it. Internal to the operation.
 */
#ifndef KN_ATTENTION_PROBLEM_H
#define KN_ATTENTION_PROBLEM_H

#include "attention/forward/attention.h"
#include "attention/forward/attention_arguments.h"

struct attention_problem {
    const struct kn_attention *attention;
    struct attention_arguments arguments;
    bool is_aligned; /* each row of q, k, v and out begins at a multiple of 16 bytes */
    bool has_maps;   /* the driver makes tensor maps */
};

/* Checks a problem, and describes it to the kernels as it stands. Fails as kn_attention does. */
tol_status attention_check(const struct kn_attention *x, struct attention_problem *problem);
/* The same where elements of q, k and v have so many bytes. */
tol_status attention_check_elements(const struct kn_attention *x, size_t element,
                                    struct attention_problem *problem);

/* For each type the kernels that merge the parts of blocks that split the keys: "combine_early",
 * which is launched programmatically, and "combine". */
extern const struct kn_variants kn_attention_combine[KN_TYPES];

#endif

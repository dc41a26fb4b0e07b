/*
 * A problem of attention's backward pass as its variants see it. Internal to the operation.
 */
#ifndef KN_ATTENTION_BACKWARD_PROBLEM_H
#define KN_ATTENTION_BACKWARD_PROBLEM_H

#include "attention/backward/attention_backward.h"
#include "attention/backward/attention_backward_arguments.h"
#include "attention/forward/attention_operand.h"
#include "attention/forward/attention_problem.h"

struct attention_backward_problem {
    const struct kn_attention_backward *backward;
    struct attention_backward_arguments arguments;
    bool is_aligned; /* each row of all operands begins at a multiple of 16 bytes */
    bool has_maps;   /* the driver makes tensor maps */
};

/* Whether there are so many tiles of keys that "ordered" is the fastest. */
bool attention_backward_is_long(const struct kn_attention *forward);

/* For each type the kernel that makes the figures of the rows of q. */
extern const struct kn_variant kn_attention_figures[KN_TYPES];

/* The kernel in front of "ordered", which makes the figures and the turns, and the one behind it,
 * which makes d_q of the sums; for heads of 64 or 128 elements. */
const struct kn_variant *attention_backward_begin(enum kn_type type, size_t head_size);
const struct kn_variant *attention_backward_finish(enum kn_type type, size_t head_size);

#endif

/*
 * A problem of attention as its variants see it: the caller's problem, and what the checks derived
 * from it. All operations of attention check their operands here. Internal. Pure; thread-safe.
 */
#ifndef KN_ATTENTION_PROBLEM_H
#define KN_ATTENTION_PROBLEM_H

#include "attention/forward/attention.h"
#include "attention/forward/attention_arguments.h"
#include "attention/forward/attention_operand.h"
#include "place.h"

enum { ATTENTION_GRID_YZ_MAX = 65535, ATTENTION_LENGTH_MAX = INT32_MAX - 256 };

struct attention_problem {
    const struct kn_attention *attention;
    struct attention_arguments arguments;
    struct attention_span written[2]; /* out and lse */
    bool is_aligned; /* each row of q, k, v and out begins at a multiple of 16 bytes */
    bool has_maps;   /* the driver makes tensor maps */
};

/* Checks all but the operands. Fails as kn_attention does. */
tol_status attention_check_shape(const struct kn_attention *x);

/* Checks a problem, and describes it to the kernels. element: the bytes of an element of q, k and
 * v; 0: those of the type. Fails as kn_attention does. */
tol_status attention_check(const struct kn_attention *x, size_t element,
                           struct attention_problem *problem);

/* Checks an input that an operation has besides q, k and v: the first `bytes` bytes of a place.
 * TOL_INVALID_ARGUMENT: the place is missing or misaligned, or out or lse overlaps it.
 * TOL_OUT_OF_RANGE: it is too small. */
tol_status attention_check_place(const struct attention_problem *problem, const char *name,
                                 struct kn_place place, size_t bytes, size_t alignment);

#endif

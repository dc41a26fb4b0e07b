/*
 * pair: combines two matrices element by element.
 *
 *     swiglu: out = in / (1 + exp(-in)) * with        add: out = in + with
 *
 * out may be in or with, and may not overlap them otherwise. NaN and infinities propagate as IEEE
 * 754 says; in swiglu an in of -infinity gives NaN.
 */
#ifndef KN_PAIR_H
#define KN_PAIR_H

#include "row/rows.h"

enum kn_pair_kind { KN_SWIGLU, KN_ADD };

struct kn_pair {
    enum kn_pair_kind kind;
    enum kn_type type; /* of all three */
    size_t rows, columns;
    struct kn_rows in, with, out;
};

/* Queues it. Without rows or columns it returns TOL_OK. TOL_INVALID_ARGUMENT: an unknown kind. Else
 * fails as kn_softmax does. */
TOL_API tol_status kn_pair(struct kn_kernels *kernels, struct tol_stream *stream,
                           const struct kn_pair *pair);

extern const struct kn_variants kn_swiglu_variants, kn_add_variants;

/* The definition, in double, of one element. Pure. */
TOL_API double kn_pair_oracle(enum kn_pair_kind kind, double in, double with);

#endif

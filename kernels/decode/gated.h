/*
 * gated: y = silu(g) y, element by element, where silu(g) = g / (1 + e^-g).
 *
 * For a gate and a factor whose weights have different formats: kn_linear makes both if they have
 * one. Floats; an element is off by at most 2^-21 of itself. Queues one kernel and waits for
 * nothing. Thread-safe, as tol_launch is.
 */
#ifndef KN_GATED_H
#define KN_GATED_H

#include "choose/kernel_set.h"
#include "place.h"

struct kn_gated {
    size_t rows, columns;
    struct kn_place gate, y;      /* floats; y is read and written */
    size_t gate_stride, y_stride; /* in elements; at least columns */
};

/*
 * Without rows or columns it does nothing. TOL_INVALID_ARGUMENT: an argument is NULL or misaligned,
 * or a stride is below columns. TOL_OUT_OF_RANGE: a place is too small. TOL_OVER_LIMIT: 2^31 rows
 * or columns, or more. A refused call queues nothing.
 */
TOL_API tol_status kn_gated(struct kn_kernels *kernels, struct tol_stream *stream,
                            const struct kn_gated *gated);

#endif

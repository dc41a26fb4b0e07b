/*
 * Rounded: columns of floats as bytes, for the products of linear that multiply bytes.
 *
 * A chunk of 256 elements of a column has one scale, its largest magnitude over 127, and becomes
 * whole numbers from -127 to 127, as llama.cpp rounds a row that blocks of 256 multiply, except
 * that its scale is a float. An element is off by at most half a scale. A chunk whose largest
 * magnitude is below 2^-100 becomes zeros; one with a NaN or an infinity makes all that is computed
 * from its column NaN.
 *
 * With a weight, a column is first divided by its root mean square and multiplied by the weight.
 *
 * Queues one kernel and waits for nothing. Thread-safe, as tol_launch is.
 */
#ifndef KN_ROUNDED_H
#define KN_ROUNDED_H

#include "choose/kernel_set.h"
#include "place.h"

struct kn_rounded {
    size_t columns, k;    /* k in whole chunks of 256, at least one */
    struct kn_place x;    /* floats, at a multiple of 16 bytes */
    size_t x_stride;      /* from column to column, in elements, in fours */
    struct kn_place norm; /* k floats at a multiple of 16 bytes; address 0: no norm */
    float epsilon;        /* of the norm */
    struct kn_place out;  /* kn_rounded_bytes, at a multiple of 16 */
    const char *variant;  /* "early" or "warp"; NULL: the best */
};

/* The elements of k that a norm can have. */
enum { KN_ROUNDED_NORM_MAX = 16384 };

TOL_API size_t kn_rounded_bytes(size_t columns, size_t k);

/*
 * Without columns it does nothing. TOL_INVALID_ARGUMENT: an argument is NULL or misaligned, k is
 * not whole chunks, a stride is below k, or out overlaps x. TOL_OUT_OF_RANGE: a place is too small.
 * TOL_OVER_LIMIT: 2^31 elements or 2^16 columns or more, or a norm of more than
 * KN_ROUNDED_NORM_MAX. TOL_UNSUPPORTED, TOL_NOT_FOUND: as kn_variant_pick. A refused call queues
 * nothing.
 */
TOL_API tol_status kn_rounded(struct kn_kernels *kernels, struct tol_stream *stream,
                              const struct kn_rounded *rounded);

#endif

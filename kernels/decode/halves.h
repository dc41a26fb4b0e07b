/*
 * halves: what a prompt's products are made of on tensor cores: weights and rows as fp16 numbers,
 * each times a power of two, so that none is infinite and few lose bits.
 *
 * fp16 has 11 bits where bf16 has 8, but a short range. Therefore a matrix of weights has one
 * power of two, chosen by the largest weight (kn_halves_exponent); all rows of a norm have one that
 * follows from its weights; and each row of a gate has its own. A product is multiplied by the
 * inverse powers, which is exact. Each function computes a row from that row alone, always in the
 * same way: the bits do not depend on the number of rows, or on the others.
 *
 * All queue one kernel and wait for nothing; without rows they do nothing. All fail so:
 * TOL_INVALID_ARGUMENT: an argument is NULL or misaligned, or a size makes no sense.
 * TOL_OUT_OF_RANGE: a place is too small. TOL_OVER_LIMIT: more rows or elements than said. A
 * refused call queues nothing. Thread-safe, as tol_launch is.
 */
#ifndef KN_HALVES_H
#define KN_HALVES_H

#include "decode/paged.h"
#include "quantised/formats/weight_format.h"

enum { KN_HALVES_COLUMNS_MAX = 32768 }; /* of a row that is normed or gated */

/* out[i] = weights[i] * 2^exponent, rounded to nearest, for `count` elements, which are whole rows
 * of a matrix. Up to 2^37 elements. */
struct kn_halves_weights {
    enum kn_weight_format format;
    size_t count;
    struct kn_place weights;
    struct kn_place out; /* halves, at a multiple of 16 bytes */
    int exponent;        /* from -126 to 126 */
};
TOL_API tol_status kn_halves_weights(struct kn_kernels *kernels, struct tol_stream *stream,
                                     const struct kn_halves_weights *weights);

/* Raises the float at `out` to the largest magnitude of a weight, or to NaN if one is NaN. exponent
 * is not used. */
TOL_API tol_status kn_halves_peak(struct kn_kernels *kernels, struct tol_stream *stream,
                                  const struct kn_halves_weights *weights);

/* The power of two that brings this magnitude to 2^14 or more, and below 2^15; from -40 to 40, and
 * 0 for what is no positive number. Pure. */
TOL_API int kn_halves_exponent(double most);

/*
 * x += scales[row] * sums (if there are sums); and if there is a weight,
 * out = x / sqrt(mean of x^2 + epsilon) * weight * 2^exponent. Rows are without gaps.
 */
struct kn_halves_norm {
    size_t rows, columns;   /* columns in fours, up to KN_HALVES_COLUMNS_MAX */
    struct kn_place x;      /* floats */
    struct kn_place sums;   /* floats; address 0: none */
    struct kn_place scales; /* one float per row; address 0: ones */
    struct kn_place weight; /* columns floats; address 0: no halves are made */
    struct kn_place out;    /* halves */
    float epsilon;
    int exponent;
};
TOL_API tol_status kn_halves_norm(struct kn_kernels *kernels, struct tol_stream *stream,
                                  const struct kn_halves_norm *norm);

/*
 * out = silu(g) u * 2^e, where a row of x is `columns` gates g and then `columns` factors u, and e
 * is the row's own; scales[row] = 2^-e.
 */
struct kn_halves_gated {
    size_t rows, columns;   /* as of kn_halves_norm */
    struct kn_place x;      /* floats, rows of 2 columns */
    struct kn_place out;    /* halves */
    struct kn_place scales; /* one float per row */
};
TOL_API tol_status kn_halves_gated(struct kn_kernels *kernels, struct tol_stream *stream,
                                   const struct kn_halves_gated *gated);

/* out = the first `columns` elements of each row of x, rounded: infinite above 65504. */
struct kn_halves_rows {
    size_t rows, columns, x_stride; /* columns and stride in fours */
    struct kn_place x, out;         /* floats; halves, rows without gaps */
};
TOL_API tol_status kn_halves_rows(struct kn_kernels *kernels, struct tol_stream *stream,
                                  const struct kn_halves_rows *rows);

/* Adds a bias to the first `columns` elements of each row of x. */
struct kn_halves_bias {
    size_t rows, columns, x_stride;
    struct kn_place x, bias; /* floats */
};
TOL_API tol_status kn_halves_bias(struct kn_kernels *kernels, struct tol_stream *stream,
                                  const struct kn_halves_bias *bias);

/* Copies keys and values of the session of the batch's first row, of its positions from 0 on, to
 * [kv_head][position][element]. A cache of bytes is rounded to halves. */
struct kn_halves_cache {
    struct kn_paged_rows batch; /* at least one row; its positions are not read */
    struct kn_paged_heads shape;
    size_t positions;
    struct kn_place keys, values; /* halves, at multiples of 16 bytes */
};
TOL_API tol_status kn_halves_cache(struct kn_kernels *kernels, struct tol_stream *stream,
                                   const struct kn_halves_cache *cache);

#endif

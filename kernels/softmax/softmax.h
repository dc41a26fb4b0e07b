/*
 * softmax: out[r][c] = exp(scale in[r][c] - m) / (sum over c of the same), m the largest of row r.
 *
 * Any number of rows and columns. Sums are in float. out may be in, and may not overlap it
 * otherwise.
 *
 * By every kernel: what the mask leaves out gets 0, and so does scale in[r][c] = -infinity; a row
 * of which nothing counts becomes zeros. Where scale in[r][c] counts and is NaN or +infinity, all
 * of row r becomes NaN, also what the mask leaves out.
 */
#ifndef KN_SOFTMAX_H
#define KN_SOFTMAX_H

#include "row/rows.h"

struct kn_softmax {
    enum kn_type type; /* of in and out */
    size_t rows, columns;
    struct kn_rows in, out;
    struct kn_rows mask; /* bytes, 0 leaves an element out; stride 0: the same row for all. Without
                            a buffer all elements count */
    float scale;         /* 0 is 1 */
    const char *variant; /* a name, to force it; NULL: the best */
    const struct kn_variants *variants; /* another table; NULL: kn_softmax_variants */
};

/*
 * Queues it. No rows or no columns are TOL_OK.
 * TOL_INVALID_ARGUMENT: NULL, an unknown type, a scale that is not finite; as kn_rows_locate and
 * kn_rows_apart. TOL_OUT_OF_RANGE, TOL_OVER_LIMIT: kn_rows_locate. TOL_WRONG_CONTEXT: stream and
 * kernels belong to different ones. TOL_UNSUPPORTED, TOL_NOT_FOUND: kn_variant_pick. Else as
 * tol_launch.
 */
TOL_API tol_status kn_softmax(struct kn_kernels *kernels, struct tol_stream *stream,
                              const struct kn_softmax *softmax);

/* "registers": a row of up to 64 KiB is read once; "online": twice; "naive": three times. "whole",
 * "wide", "ring": whole rows are read once, without a mask. A row is whole if it begins at a
 * multiple of 16 bytes and consists of pieces of 16 bytes. */
extern const struct kn_variants kn_softmax_variants;

/* The definition, in double, of one row. mask may be NULL. Pure. */
TOL_API void kn_softmax_oracle(const float *in, const unsigned char *mask, size_t columns,
                               double scale, double *out);

#endif

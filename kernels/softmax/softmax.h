/*
 * softmax: out[r][c] = exp(scale in[r][c] - m) / (sum over c of the same), m the largest of row r.
 *
 * Any number of rows and columns. Sums are in float. out may be in, and may not overlap it
 * otherwise.
 *
 * For every kernel: a masked element gets 0, and so does one with scale in[r][c] = -infinity. A row
 * in which no element counts becomes zeros. If scale in[r][c] of an unmasked element is NaN or
 * +infinity, all of row r becomes NaN, the masked elements too.
 */
#ifndef KN_SOFTMAX_H
#define KN_SOFTMAX_H

#include "row/rows.h"

struct kn_softmax {
    enum kn_type type; /* of in and out */
    size_t rows, columns;
    struct kn_rows in, out;
    /* Bytes; 0 masks an element. A stride of 0: one row for all. Without a buffer all elements
     * count. */
    struct kn_rows mask;
    float scale;                        /* 0 is 1 */
    const char *variant;                /* forces the variant of this name; NULL: the best */
    const struct kn_variants *variants; /* another table; NULL: kn_softmax_variants */
};

/*
 * Queues it. Without rows or columns it returns TOL_OK. TOL_INVALID_ARGUMENT: an argument is NULL,
 * the type is unknown, or the scale is not finite; also as rows.h says. TOL_OUT_OF_RANGE,
 * TOL_OVER_LIMIT: as rows.h says. TOL_WRONG_CONTEXT: stream and kernels belong to different
 * contexts. TOL_UNSUPPORTED, TOL_NOT_FOUND: as kn_variant_pick. Else fails as tol_launch does.
 */
TOL_API tol_status kn_softmax(struct kn_kernels *kernels, struct tol_stream *stream,
                              const struct kn_softmax *softmax);

/* The variant that kn_softmax would pick. TOL_INVALID_ARGUMENT: also if there are no rows or no
 * columns. Fails as kn_softmax does. */
TOL_API tol_status kn_softmax_pick(struct kn_kernels *kernels, struct tol_stream *stream,
                                   const struct kn_softmax *softmax,
                                   const struct kn_variant **variant);

/* What a tuning knows the problem by: type, shape and alignment. Fails as kn_softmax does. */
TOL_API tol_status kn_softmax_key(struct kn_kernels *kernels, struct tol_stream *stream,
                                  const struct kn_softmax *softmax, struct kn_tuning_key *key);

/* "registers": a row of up to 64 KiB is read once; "online": twice; "naive": three times. "whole":
 * whole rows are read once, without a mask; "cluster_2" (16 bits), "cluster_4", "cluster_8": by
 * this number of blocks per row; "slices_1", "behind_2", "behind_8": by this number of persistent
 * blocks, with drivers from CUDA 12.1 on. A row is whole if it begins at a multiple of 16 bytes
 * and consists of pieces of 16 bytes. */
extern const struct kn_variants kn_softmax_variants;

/* The definition, in double, of one row. mask may be NULL. Pure. */
TOL_API void kn_softmax_oracle(const float *in, const unsigned char *mask, size_t columns,
                               double scale, double *out);

#endif

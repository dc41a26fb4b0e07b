/*
 * norm: layernorm and RMSNorm of rows.
 *
 *     layernorm: out = (in - mean) / sqrt(mean of (in - mean)^2 + epsilon) * weight + bias
 *     RMSNorm:   out = in / sqrt(mean of in^2 + epsilon) * weight + bias
 *
 * Any number of rows and columns. Sums are in float, and the mean is computed before the squares.
 * out may be in, and may not overlap it otherwise.
 *
 * For every kernel, and before weight and bias: a NaN makes its row NaN. An infinity makes its row
 * NaN in layernorm; in RMSNorm it becomes NaN and the other elements of its row 0. If the sum of
 * squares overflows a float (|in| above 2^63), the row becomes 0. A NaN or an infinity in weight or
 * bias stays in its column.
 */
#ifndef KN_NORM_H
#define KN_NORM_H

#include "row/rows.h"

enum kn_norm_kind { KN_LAYERNORM, KN_RMSNORM };

struct kn_norm {
    enum kn_norm_kind kind;
    enum kn_type type; /* of in and out */
    size_t rows, columns;
    struct kn_rows in, out;
    enum kn_type affine_type;           /* of weight and bias: KN_F32 or the rows' type */
    struct kn_rows weight, bias;        /* one row each; without a buffer 1 and 0 */
    float epsilon;                      /* at least 0 */
    const char *variant;                /* forces the variant of this name; NULL: the best */
    const struct kn_variants *variants; /* another table; NULL: kn_norm_variants */
};

/*
 * Queues it. Without rows or columns it returns TOL_OK.
 * TOL_INVALID_ARGUMENT: an argument is NULL, the kind or a type is unknown, epsilon is negative or
 * not finite, or out overlaps weight or bias; also as rows.h says. Else fails as kn_softmax does.
 */
TOL_API tol_status kn_norm(struct kn_kernels *kernels, struct tol_stream *stream,
                           const struct kn_norm *norm);

/* The variant that kn_norm would pick. TOL_INVALID_ARGUMENT: also if there are no rows or no
 * columns. Fails as kn_norm does. */
TOL_API tol_status kn_norm_pick(struct kn_kernels *kernels, struct tol_stream *stream,
                                const struct kn_norm *norm, const struct kn_variant **variant);

/* What a tuning knows the problem by: kind, types, shape, alignment, and how many of weight and
 * bias there are. Fails as kn_norm does. */
TOL_API tol_status kn_norm_key(struct kn_kernels *kernels, struct tol_stream *stream,
                               const struct kn_norm *norm, struct kn_tuning_key *key);

/* "registers": a row of up to 64 KiB is read once; "naive": three times. "whole", "ahead",
 * "early", and those of clusters (as softmax.h says; "slices_2" of floats, "behind_2" of 16 bits):
 * whole rows are read once, weight and bias of the rows' type. */
extern const struct kn_variants kn_norm_variants;

/* The definition, in double, of one row. weight and bias may be NULL. Pure. */
TOL_API void kn_norm_oracle(enum kn_norm_kind kind, const float *in, const float *weight,
                            const float *bias, size_t columns, double epsilon, double *out);

#endif

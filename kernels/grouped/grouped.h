/*
 * grouped: products of groups of rows, each with a matrix of its own, and what follows a product.
 *
 * The rows of A, of k elements each, are in groups, one after the other. Those of group g are
 * multiplied by B_g, as a mixture of experts does with the tokens that it sent to expert g. A
 * product with one group is an ordinary one. For row i of group g and column j
 *
 *     v = alpha a_scale[i] b_scale[g][j] (sum over l of A[i][l] op(B_g)[l][j]) + bias[g][j]
 *     C[i][j] = (activation(v) + residual[i][j]) / c_scale
 *
 * in float, rounded once to the type of C: to nearest, ties to even. In 8 bits, what is larger
 * than the largest number becomes that number: 448 in e4m3, and 127, of either sign, in whole
 * numbers; NaN becomes the NaN of e4m3, or 0. Rows that are in no group are not written. NaN and
 * infinities propagate as IEEE 754 says.
 *
 * Where the groups begin is data on the device, so a graph with this product serves any routing.
 * The same problem gives the same bits on the same kind of device, and a row's bits do not depend
 * on the rows beside it. Source: issue 18; PTX ISA, "Alternate floating-point data formats".
 */
#ifndef KN_GROUPED_H
#define KN_GROUPED_H

#include "gemm/gemm.h"

enum kn_grouped_type {
    KN_GROUPED_F32,
    KN_GROUPED_F16,
    KN_GROUPED_BF16,
    KN_GROUPED_E4M3, /* 8 bits of floating point: sign, 4 of exponent, 3 of fraction */
    KN_GROUPED_S8,   /* whole numbers of 8 bits */
    KN_GROUPED_TYPES
};

enum kn_activation {
    KN_NO_ACTIVATION,
    KN_SILU,      /* v / (1 + exp(-v)) */
    KN_GELU,      /* v / 2 (1 + erf(v / sqrt(2))) */
    KN_GELU_TANH, /* v / 2 (1 + tanh(sqrt(2 / pi) (v + 0.044715 v^3))) */
    KN_ACTIVATIONS
};

/* Numbers of 32 bits, one after the other. */
struct kn_vector {
    const struct tol_buffer *buffer; /* NULL: there is none */
    size_t offset;                   /* of the first, in elements */
    size_t stride;                   /* from group to group; 0: all groups use the same */
};

struct kn_grouped {
    enum kn_grouped_type type;   /* of A and B: F16, BF16 or E4M3 */
    enum kn_grouped_type c_type; /* any */
    bool transpose_b;            /* B_g is stored as n x k, else as k x n */
    size_t m, n, k, groups;      /* m: rows of all groups; groups: 0 is 1 */
    float alpha;
    float c_scale; /* 0 is 1 */
    enum kn_activation activation;
    struct kn_matrix a, c;   /* m x k, m x n */
    struct kn_matrix b;      /* its batch_stride leads from group to group */
    struct kn_vector begins; /* int32: groups + 1 rows, where each group begins and the last ends.
                                What is below its predecessor, or above m, counts as that. Without
                                it there is one group, of all rows. Its stride is not used. */
    struct kn_vector bias, b_scale;     /* float, n for each group */
    struct kn_vector a_scale;           /* float, m; its stride is not used */
    struct kn_matrix residual;          /* m x n; may be C itself. buffer NULL: there is none */
    enum kn_grouped_type residual_type; /* F32, F16 or BF16 */
    const char *variant;                /* forces the variant of this name; NULL: the best */
    const struct kn_variants *variants; /* another table; NULL: kn_grouped_variants */
};

/*
 * Queues the product. If m or n is 0 it queues nothing and returns TOL_OK. Thread-safe; waits for
 * nothing. In e4m3 the tensor cores of Hopper add with 13 bits of fraction; sums are taken over to
 * floats after each 128 steps.
 *
 * TOL_INVALID_ARGUMENT: an argument is NULL, a type or an activation does not exist or does not go
 * where it stands, c_scale is negative or no number, rows overlap, or C overlaps an operand (but a
 * residual that is C). TOL_OUT_OF_RANGE: an operand is not inside its buffer, or its size
 * overflows. TOL_OVER_LIMIT: a dimension of 2^31 - 2^12 or more, or more than 65,535 groups.
 * TOL_WRONG_CONTEXT, TOL_UNSUPPORTED, TOL_NOT_FOUND: as kn_gemm. Else fails as tol_launch does.
 */
TOL_API tol_status kn_grouped(struct kn_kernels *kernels, struct tol_stream *stream,
                              const struct kn_grouped *grouped);

/* The variant that kn_grouped would pick. Fails as kn_grouped does. */
TOL_API tol_status kn_grouped_pick(struct kn_kernels *kernels, const struct kn_grouped *grouped,
                                   const struct kn_variant **variant);

/* What a tuning knows the problem by: shape, types, alignment and activation. Fails as kn_grouped
 * does. */
TOL_API tol_status kn_grouped_key(struct kn_kernels *kernels, const struct kn_grouped *grouped,
                                  struct kn_tuning_key *key);

extern const struct kn_variants kn_grouped_variants;
/* Kernels with one planted defect each, which tests must notice. */
extern const struct kn_variants kn_grouped_planted_variants;

TOL_API const char *kn_grouped_type_name(enum kn_grouped_type type); /* "e4m3" */
TOL_API size_t kn_grouped_type_bytes(enum kn_grouped_type type);
TOL_API const char *kn_activation_name(enum kn_activation activation); /* "silu" */
/* The definition, in double. Pure. */
TOL_API double kn_activation_oracle(enum kn_activation activation, double v);

#endif

/*
 * The parameter of every kernel of grouped: the same struct on host and device. Internal to the
 * operation.
 */
#ifndef KN_GROUPED_ARGUMENTS_H
#define KN_GROUPED_ARGUMENTS_H

#ifdef __CUDACC__
#define GROUPED_ADDRESS void *
#else
#include "tollens.h"
#define GROUPED_ADDRESS CUdeviceptr
#endif

/* The elements of a matrix; enum kn_grouped_type has the same numbers. */
enum grouped_element { GROUPED_F32, GROUPED_F16, GROUPED_BF16, GROUPED_E4M3, GROUPED_S8 };
enum grouped_activation { GROUPED_PLAIN, GROUPED_SILU, GROUPED_GELU, GROUPED_GELU_TANH };

struct grouped_arguments {
    GROUPED_ADDRESS a;
    GROUPED_ADDRESS b;
    GROUPED_ADDRESS c;
    GROUPED_ADDRESS residual; /* this and what follows is 0 where there is none */
    GROUPED_ADDRESS bias;
    GROUPED_ADDRESS a_scale;
    GROUPED_ADDRESS b_scale;
    GROUPED_ADDRESS begins; /* groups + 1 numbers of 32 bits */
    /* From row to row as stored, and from group to group, in elements. */
    long long lda, ldb, ldc, ld_residual, group_b, group_bias, group_scale;
    int m, n, k, groups;
    int transpose_b, c_type, residual_type, activation;
    float alpha, c_inverse; /* c_inverse: of the scale of C */
    /* Rows begin at multiples of four elements, and are as long. */
    int c_is_whole, residual_is_whole;
    int a_rows, b_rows; /* of a box of A and of B, for kernels that take tensor maps */
};

#endif

/*
 * The parameters of the kernels of blas: the same structs on host and device. Internal to
 * runtime/cublas, which queues them.
 */
#ifndef KN_BLAS_ARGUMENTS_H
#define KN_BLAS_ARGUMENTS_H

#ifdef __CUDACC__
#define BLAS_ADDRESS void *
#else
#include "tollens.h"
#define BLAS_ADDRESS CUdeviceptr
#endif

/* How alpha and beta are stored: as the sums are, or in 16 bits. */
enum blas_scale { BLAS_SCALE_SUM, BLAS_SCALE_F16, BLAS_SCALE_BF16 };
/* The elements of D that are written. */
enum blas_fill { BLAS_FILL_ALL, BLAS_FILL_LOWER, BLAS_FILL_UPPER };
/* What follows the product. */
enum blas_follow { BLAS_FOLLOW_NONE, BLAS_FOLLOW_RELU, BLAS_FOLLOW_GELU };

enum {
    BLAS_TILE = 64,    /* rows and columns of a tile of D */
    BLAS_THREADS = 256 /* of a block of the kernels of vectors */
};

/* A matrix of any strides, in elements; a batch of them. */
struct blas_matrix {
    BLAS_ADDRESS address; /* of the first element, or of an array of such addresses */
    long long row, column;
    long long batch; /* from matrix to matrix; in an array of addresses, from address to address */
    int is_array;
    int is_conjugate; /* of complex numbers */
};

/* A number, or one or more in device memory. */
struct blas_scalar {
    double value[2];      /* if address is 0: a real and an imaginary part */
    BLAS_ADDRESS address; /* of numbers of type enum blas_scale; in elements: */
    long long row, column, batch;
};

/*
 * D = follow(alpha A B + beta C + bias), for each matrix of a batch: A is m x k, B k x n. As in
 * BLAS, if beta is 0 C is not read; if alpha is 0, A and B are not read. C may be D.
 */
struct blas_product {
    struct blas_matrix a, b, c, d;
    struct blas_matrix bias; /* address 0: none; of the type of D */
    struct blas_scalar alpha, beta;
    int m, n, k, batch;
    int scale, fill, follow;
    int is_shared; /* whether the threads of a block share an element */
};

/* What a vector is reduced to. */
enum blas_kind {
    BLAS_NORM,      /* the square root of the sum of the squares */
    BLAS_MAGNITUDE, /* the sum of |x|, of complex numbers |real| + |imaginary| */
    BLAS_LARGEST,   /* the index from 1 of the first of the largest |x| */
    BLAS_SMALLEST   /* likewise of the smallest */
};

struct blas_reduction {
    BLAS_ADDRESS x;
    BLAS_ADDRESS result;
    long long stride, count; /* in elements */
    int kind;
    int is_wide; /* whether an index has 8 bytes */
};

#endif

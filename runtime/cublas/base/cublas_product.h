/*
 * Products and sums of matrices, from BLAS's arguments to a launch of a kernel of kernels/blas.
 * Thread-safe.
 */
#ifndef CUBLAS_PRODUCT_H
#define CUBLAS_PRODUCT_H

#include "cublas_handle.h"

#include <limits.h>

/* What arguments may be: a size; a leading dimension for a number of rows; a cublasOperation_t.
 * Kernels count in 32 bits. */
static inline bool cublas_is_size(int64_t size) {
    return size >= 0 && size <= INT_MAX;
}
static inline bool cublas_is_leading(int64_t leading, int64_t rows) {
    return leading >= 1 && leading >= rows && leading <= INT_MAX;
}
static inline bool cublas_is_operation(int operation) {
    return operation >= CUBLAS_OP_N && operation <= CUBLAS_OP_C;
}

/* The types of a product: a row of a table. */
struct cublas_numbers {
    int type, result_type; /* of A and B, of C and D: cudaDataType_t */
    int sum_type;          /* that sums are kept in */
    int scale_type;        /* of alpha and beta */
    const char *suffix;    /* of the kernel's name */
    enum cublas_image image;
    unsigned threads; /* of a block that computes a tile */
};

/* The row of these types for a cublasComputeType_t; NULL: there is none. */
/* Whether it is a cublasComputeType_t. */
bool cublas_is_compute(int compute);
const struct cublas_numbers *cublas_numbers_find(int a_type, int b_type, int c_type, int compute);
/* The row of numbers that are all of one type, computed in that type or in float. */
const struct cublas_numbers *cublas_numbers_of(int type);

/* The bytes of a cudaDataType_t; 0: it is not one that is computed with. */
size_t cublas_type_bytes(int type);

/* Column-major matrices as BLAS describes them. A matrix of an operation has its address, its
 * leading dimension and its operation; stride is from matrix to matrix of a batch, in elements. */
struct blas_matrix cublas_matrix(const void *address, int64_t leading, int operation,
                                 int64_t stride);
/* The same of an array of addresses in device memory. */
struct blas_matrix cublas_matrices(const void *addresses, int64_t leading, int operation);
/* A vector of count elements as a matrix of one column. With a negative increment, the first
 * element is the last in memory. bytes: of an element. */
struct blas_matrix cublas_column(const void *address, int64_t count, int64_t increment,
                                 size_t bytes);
struct blas_matrix cublas_transposed(struct blas_matrix matrix);

/* alpha or beta: the number at an address of the host, or an address of the device. value is not
 * NULL. */
struct blas_scalar cublas_scalar(int pointer_mode, int scale_type, const void *value);
/* The enum blas_scale of a cudaDataType_t. */
int cublas_scale(int scale_type);

/* Queues D = follow(alpha A B + beta C + bias). Nothing is queued for an empty D. The sizes and
 * strides of product fit. It is changed. NOT_SUPPORTED: a grid would be too large. Else fails as
 * cublas_launch. */
cublasStatus_t cublas_product(struct cublas_handle *handle, CUstream stream,
                              const struct cublas_numbers *numbers, struct blas_product *product);

/* Queues D = alpha A + beta B, for elements of type, a type of cublas_numbers_of. Likewise. */
cublasStatus_t cublas_sum(struct cublas_handle *handle, int type, struct blas_product *sum);

#endif

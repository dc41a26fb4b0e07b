/*
 * The parameter of gemm_11_pack.cu: the same struct on host and device. Internal to the operation.
 */
#ifndef KN_GEMM_PACK_ARGUMENTS_H
#define KN_GEMM_PACK_ARGUMENTS_H

#include "gemm_arguments.h"

/* Strides are from row to row and from matrix to matrix, in elements. */
struct gemm_pack_arguments {
    GEMM_ADDRESS from;
    GEMM_ADDRESS to;
    long long from_leading, from_stride, to_leading, to_stride;
    int rows, columns;
};

#endif

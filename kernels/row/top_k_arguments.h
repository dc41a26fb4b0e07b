/*
 * The parameters of the kernels of top_k: the same on host and device. Strides are from row to row,
 * in elements. Internal to the operation.
 */
#ifndef KN_TOP_K_ARGUMENTS_H
#define KN_TOP_K_ARGUMENTS_H

#include "row_arguments.h"

enum { TOP_K_THREADS = 512, TOP_K_CANDIDATES = 2048 };
/* Of steps 2 and 3: the largest k, and the elements that a warp sorts in registers. */
enum { TOP_K_FEW = 64, TOP_K_SORTED = 128 };

struct top_k_arguments {
    ROW_ADDRESS in;
    ROW_ADDRESS values;  /* null: they are not wanted */
    ROW_ADDRESS indices; /* ints; null: they are not wanted */
    long long rows, columns, in_stride, values_stride, indices_stride;
    int k; /* at most TOP_K_CANDIDATES / 2, and columns */
};

#endif

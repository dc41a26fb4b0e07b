/*
 * The parameters of the kernels of rows, one struct per kernel: the same on host and device.
 * Strides are from row to row, in elements. Internal to the operations.
 */
#ifndef KN_ROW_ARGUMENTS_H
#define KN_ROW_ARGUMENTS_H

#ifdef __CUDACC__
#define ROW_ADDRESS void *
#else
#include "tollens.h"
#define ROW_ADDRESS CUdeviceptr
#endif

struct softmax_arguments {
    ROW_ADDRESS in;
    ROW_ADDRESS out;
    ROW_ADDRESS mask; /* a byte an element, 0 leaves it out; null: all count */
    long long rows, columns, in_stride, out_stride, mask_stride;
    float scale; /* of the elements, before the exponential */
};

struct norm_arguments {
    ROW_ADDRESS in;
    ROW_ADDRESS out;
    ROW_ADDRESS weight; /* null: 1 */
    ROW_ADDRESS bias;   /* null: 0 */
    long long rows, columns, in_stride, out_stride;
    float epsilon;
    int centred;    /* layernorm; else RMSNorm */
    int affine_f32; /* weight and bias are floats, whatever the rows are */
};

struct rope_arguments {
    ROW_ADDRESS in;
    ROW_ADDRESS out;
    ROW_ADDRESS positions; /* an int per row */
    long long rows, in_stride, out_stride;
    int heads, head_size,
        rotated;     /* `rotated`: the elements of each head that are, from the first on */
    int halves;      /* pairs are i and i + rotated / 2, else 2 i and 2 i + 1 */
    float base_log2; /* the logarithm of the base of the frequencies */
    float scale;     /* of the position */
};

/* out = silu(in) * with, or in + with. */
struct pair_arguments {
    ROW_ADDRESS in;
    ROW_ADDRESS with;
    ROW_ADDRESS out;
    long long rows, columns, in_stride, with_stride, out_stride;
};

struct gather_arguments {
    ROW_ADDRESS table;
    ROW_ADDRESS indices; /* an int per row of out */
    ROW_ADDRESS out;
    long long rows, columns, table_rows, table_stride, out_stride;
};

struct argmax_arguments {
    ROW_ADDRESS in;
    ROW_ADDRESS out; /* an int per row */
    long long rows, columns, in_stride;
};

#endif

/*
 * The parameters of the kernels of halves, one struct per kernel: the same on host and device.
 * Addresses are of device memory. Internal to the operation.
 */
#ifndef KN_HALVES_ARGUMENTS_H
#define KN_HALVES_ARGUMENTS_H

#include "decode_arguments.h"

struct halves_weights_arguments {
    uint64_t weights, out; /* out: halves; a float for the peak */
    uint64_t count;        /* of elements */
    float scale;           /* a power of two */
};
enum { HALVES_BLOCK_CHUNKS = 32 }; /* chunks of 256 elements of a block */

/* Rows of `columns` floats. */
struct halves_rows_arguments {
    uint64_t x;      /* norm: rows that the sums are added to; gated: gates and then products */
    uint64_t sums;   /* norm: a row each; 0: nothing is added */
    uint64_t scales; /* norm: what a row of sums is multiplied by, 0: 1; gated: written */
    uint64_t weight; /* norm: columns floats; 0: no halves are made */
    uint64_t out;    /* halves */
    float epsilon, scale;
    uint32_t rows, columns;
};

/* Rows of the heads of q as halves; or biases, added to columns of rows of floats. */
struct halves_some_arguments {
    uint64_t x, bias, out;
    uint64_t x_stride; /* from row to row, in elements */
    uint32_t rows, columns;
};

/* Keys and values of positions 0 on of one session, [head][position][element]. */
struct halves_cache_arguments {
    struct paged_cache cache;
    uint64_t keys, values;
    uint32_t positions, kv_heads, head_size;
};

enum { HALVES_ROW_THREADS = 512, HALVES_COLUMNS_MAX = 32768 };

#endif

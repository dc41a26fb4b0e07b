/*
 * Quant product, arguments: what the host hands to its kernels, and both compile.
 */
#ifndef KN_QUANT_PRODUCT_ARGUMENTS_H
#define KN_QUANT_PRODUCT_ARGUMENTS_H

#include <stdint.h>

struct kn_quant_product_arguments {
    uint64_t weights, x, y;      /* addresses */
    uint64_t quants, scales;     /* of x as 8-bit numbers, and of the scales of 32 of them each */
    uint64_t x_stride, y_stride; /* from column to column, in elements */
    uint32_t rows, columns;
    uint32_t blocks; /* of a row of weights */
    uint32_t k;      /* elements of a row of weights */
};

/* quant_product_bulk: rows of a warp at a time, and a ring of so many places for each of its 16
 * warps, which lies before x in dynamic shared memory. A place has eight blocks of each row. */
enum {
    KN_QUANT_BULK_ROWS = 2,
    KN_QUANT_BULK_SLOTS = 5,
    KN_QUANT_BULK_RING_BYTES = 16 * KN_QUANT_BULK_SLOTS * KN_QUANT_BULK_ROWS * 8 * 144
};

#endif

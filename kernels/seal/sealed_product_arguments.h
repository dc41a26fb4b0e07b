/*
 * The parameter of the sealed quant product: the same struct on host and device. Internal to the
 * operation.
 */
#ifndef KN_SEALED_PRODUCT_ARGUMENTS_H
#define KN_SEALED_PRODUCT_ARGUMENTS_H

#include "seal_arguments.h"

struct sealed_product_arguments {
    uint64_t weights, x, y; /* addresses */
    uint32_t rows, k;
    uint32_t blocks;     /* of a row of weights */
    uint32_t row_units;  /* of a row of weights, with what fills its last unit */
    uint32_t groups;     /* of four blocks, of a row; the last one may have fewer */
    uint32_t block_rows; /* of a block of threads */
    uint32_t wholes;     /* warps of a block of threads whose groups are not cut in halves */
    uint32_t first_unit; /* the counter at weights */
    struct seal_stream stream;
};

#endif

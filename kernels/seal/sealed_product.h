/*
 * Sealed product: y = W x for one column, straight from encrypted blocks of Q4_K.
 *
 * It is kn_quant_product (quantised/quant_product.h) with KN_QUANT_Q8_1, with its error bound, but
 * W is encrypted as seal/seal_chunks.h does it, and each row begins at a multiple of 64 bytes.
 * Weights are decrypted in the registers of the lane that multiplies them: neither device nor
 * shared memory ever holds a plain block. x and y are plain. Nothing is verified here: what is
 * multiplied is what is there. The call queues one kernel and waits for nothing. Thread-safe.
 */
#ifndef KN_SEALED_PRODUCT_H
#define KN_SEALED_PRODUCT_H

#include "choose/kernel_set.h"
#include "place.h"
#include "seal/seal_arguments.h"

struct kn_sealed_product {
    size_t rows;             /* of W, and of y */
    size_t k;                /* a multiple of 256; x as bytes must fit 48 KiB: up to 36,096 */
    struct kn_place weights; /* rows of kn_sealed_row_bytes(k), at a multiple of 16 */
    struct kn_place x, y;    /* floats: x at a multiple of 16, y of 4 */
    unsigned rounds;         /* 20, 12 or 8 */
    uint32_t first_unit;     /* the counter of the first unit of W */
    const struct seal_stream *stream;
    const char *variant; /* "early" or "product"; NULL: the one that fits */
};

/* Without rows it does nothing; with k of 0, y becomes 0. TOL_INVALID_ARGUMENT, TOL_OUT_OF_RANGE,
 * TOL_OVER_LIMIT: as kn_quant_product; TOL_OUT_OF_RANGE: also if the counter exceeds 32 bits. */
TOL_API tol_status kn_sealed_product(struct kn_kernels *kernels, struct tol_stream *stream,
                                     const struct kn_sealed_product *problem);

/* From row to row: k / 256 blocks of 144 bytes, and what fills the last unit. */
TOL_API size_t kn_sealed_row_bytes(size_t k);

#endif

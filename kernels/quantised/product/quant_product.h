/*
 * Quant product: y = W x for each of some columns x, straight from the blocks of W.
 *
 * W has rows of k elements, one after the other. x and y are floats, column after column:
 * y[n * y_stride + i] is the sum over l of W[i][l] * x[n * x_stride + l]. No row of W is ever
 * stored as floats in device memory. The caller chooses what is rounded. Let u = 2^-24, P the sum
 * over l of |W| |x|, and S the sum of (d sc q + |dmin| m) |x|, which equals P except for Q4_K. Then
 * the error of y is at most
 *
 *     KN_QUANT_F32   (64 + k / 64) u S: only sums are rounded; k u S for "naive"
 *     KN_QUANT_F16   2^-10 P, since W and x are rounded to halves, plus (8 + k / 16) 4 u P by the
 *                    sums of tensor cores, plus 2^-25 (sum of |W| + sum of |x|) for subnormal
 *                    halves; what is above 65504 becomes infinite
 *     KN_QUANT_Q8_1  half the sum of |W| d, since x is rounded to multiples of d, where 127 d is
 *                    the largest of 32 neighbours, plus the error of sums as KN_QUANT_F32
 *
 * and (k + 64) 2^-149 more if sums are subnormal, or k 2^-135 for KN_QUANT_Q8_1.
 *
 * KN_QUANT_Q8_1 is what llama.cpp's CUDA kernels do, except that they round the scale of x to a
 * half. Its error is some 10^-2 for weights of some 0.02 and x of some 1 (k = 4096). It is the
 * fastest for few columns. A NaN or an infinity in a column of x gives NaN or infinities in all of
 * its y, and in no other column. The call queues one kernel; for KN_QUANT_Q8_1 and wgmma it may
 * queue a prologue before it, which rounds x. It waits for nothing. "tensor" and the variants by
 * wgmma round W and x to the same halves, each number once. "wgmma_split" is split-K: it adds the
 * shares of k in an order that depends only on rows, columns and k, so equal calls give equal bits.
 * "columns" (KN_QUANT_Q8_1, Q4_K, 2 to 8 columns, from compute capability 9.0 on) multiplies bytes
 * on tensor cores, and is chosen from 2^24 weights on. From compute capability 9.0 on, "early_1",
 * "bulk_early" and the products after a prologue use programmatic dependent launch: they may start
 * before the preceding kernel on the stream has ended, and wait for its end before they read what
 * it may write. Thread-safe.
 */
#ifndef KN_QUANT_PRODUCT_H
#define KN_QUANT_PRODUCT_H

#include "choose/kernel_set.h"
#include "place.h"
#include "quantised/formats/quant_block.h"

enum kn_quant_arithmetic { KN_QUANT_F32, KN_QUANT_F16, KN_QUANT_Q8_1, KN_QUANT_ARITHMETICS };

struct kn_quant_product {
    enum kn_quant quant;
    enum kn_quant_arithmetic arithmetic;
    size_t rows;               /* of W, and of y */
    size_t columns;            /* of x and of y; 1: a matrix by a vector */
    size_t k;                  /* in whole blocks; if it is 0, y becomes 0 */
    struct kn_place weights;   /* rows * k / kn_quant_block_elements blocks, at an even address */
    struct kn_place x, y;      /* floats, at multiples of 4 */
    size_t x_stride, y_stride; /* from column to column, in elements; 0: without gaps */
    struct kn_place workspace; /* of kn_quant_product_workspace bytes, at a multiple of 16; for
                                * KN_QUANT_F16 it may be left out */
    const char *variant;       /* NULL: the best. All but "naive" need x, its columns, and
                                * weights of Q4_K aligned to 16 bytes; "wgmma", "wgmma_256" and
                                * "wgmma_split" (KN_QUANT_F16, compute capability 9.0) rows of
                                * weights of each format so aligned, k in multiples of 256 from 256
                                * on, and the workspace, of which the first two need only
                                * 2 * columns * k bytes. Of these products "wgmma_split" is the
                                * best from 9 columns on, as long as two blocks or more share k */
    const struct kn_variants *variants; /* NULL: the operation's own */
};

/*
 * Without rows or columns it does nothing. TOL_INVALID_ARGUMENT: an argument is NULL or misaligned,
 * k is not whole blocks, a stride is below the length of a column, or y overlaps an input.
 * TOL_OUT_OF_RANGE: a place is too small, or its size overflows. TOL_OVER_LIMIT: 2^31 rows, columns
 * or k, or more columns than a grid can have. TOL_UNSUPPORTED, TOL_NOT_FOUND: as kn_variant_pick. A
 * refused call queues nothing.
 */
TOL_API tol_status kn_quant_product(struct kn_kernels *kernels, struct tol_stream *stream,
                                    const struct kn_quant_product *problem);

/* The bytes that KN_QUANT_Q8_1 needs for x as bytes, and for the scale and the sum of each 32 of
 * them, and those with which each variant serves KN_QUANT_F16: for x as halves, and 2.1, 4.1 or
 * 8.3 MiB for the sums of "wgmma_split", of up to 32, up to 64 and more columns, for any number of
 * rows. With less it is not chosen. 0 for KN_QUANT_F32. */
TOL_API size_t kn_quant_product_workspace(enum kn_quant_arithmetic arithmetic, size_t columns,
                                          size_t k);

/* The kernels for a format of blocks and an arithmetic, best first. */
TOL_API const struct kn_variants *kn_quant_product_variants(enum kn_quant quant,
                                                            enum kn_quant_arithmetic arithmetic);

TOL_API const char *kn_quant_arithmetic_name(enum kn_quant_arithmetic arithmetic); /* "q8_1" */

#endif

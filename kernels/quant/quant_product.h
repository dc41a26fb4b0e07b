/*
 * Quant product: y = W x for each of some columns x, straight from the blocks of W.
 *
 * W has rows of k elements, one behind the other; x and y are floats, column after column:
 * y[n * y_stride + i] is the sum over l of W[i][l] * x[n * x_stride + l]. No row of W is ever
 * stored as floats in device memory. What is rounded is the caller's choice. With u = 2^-24, P the
 * sum over l of |W| |x|, and S that of (d sc q + |dmin| m) |x|, which is P but for Q4_K, y is off
 * by at most
 *
 *     KN_QUANT_F32   (64 + k / 64) u S, nothing but sums being rounded; k u S of "naive"
 *     KN_QUANT_F16   2^-10 P, W and x being rounded to halves, (8 + k / 16) 4 u P by the sums of
 *                    tensor cores, and 2^-25 (sum of |W| + sum of |x|) where halves are subnormal;
 *                    what is above 65504 becomes infinite
 *     KN_QUANT_Q8_1  half the sum of |W| d, where x is rounded to steps of d, 127 of them the
 *                    largest of 32 neighbours, and sums as KN_QUANT_F32
 *
 * and, where sums are subnormal, by (k + 64) 2^-149 more, or k 2^-135 of KN_QUANT_Q8_1.
 *
 * The last is what llama.cpp's CUDA kernels do, but for the scale of x, which they round to a half;
 * it is some 10^-2 off where weights are some 0.02 and x is some 1 (k = 4096), and the fastest for
 * few columns. A NaN or an infinity in a column of x gives NaN or infinities in all of its y, and
 * nothing else. Queues a kernel, or two of KN_QUANT_Q8_1, and waits for nothing; on devices of
 * compute capability 9.0 the "early" ones may begin while the kernel in front of them on the stream
 * ends, and wait for it before they read or write. Thread-safe.
 */
#ifndef KN_QUANT_PRODUCT_H
#define KN_QUANT_PRODUCT_H

#include "kernel_set.h"
#include "place.h"
#include "quant_block.h"

enum kn_quant_arithmetic { KN_QUANT_F32, KN_QUANT_F16, KN_QUANT_Q8_1, KN_QUANT_ARITHMETICS };

struct kn_quant_product {
    enum kn_quant quant;
    enum kn_quant_arithmetic arithmetic;
    size_t rows;               /* of W, and of y */
    size_t columns;            /* of x and of y; 1: a matrix by a vector */
    size_t k;                  /* whole blocks; where it is 0, y becomes 0 */
    struct kn_place weights;   /* rows * k / kn_quant_block_elements blocks, on an even address */
    struct kn_place x, y;      /* floats, on multiples of 4 */
    size_t x_stride, y_stride; /* from column to column, in elements; 0: without gaps */
    struct kn_place workspace; /* of kn_quant_product_workspace bytes, on a multiple of 16 */
    const char *variant;       /* NULL: the best. All but "naive" want 16-byte alignment of x, of
                                * its columns, and of the weights where they are Q4_K */
    const struct kn_variants *variants; /* NULL: the operation's own */
};

/*
 * TOL_INVALID_ARGUMENT: NULL, misaligned, no whole blocks, a stride below what a column has, or y
 * overlaps what is read. TOL_OUT_OF_RANGE: a place has fewer bytes than are read or written, or
 * they cannot be counted. TOL_OVER_LIMIT: 2^31 rows, columns or k, or more columns than a grid has.
 * TOL_UNSUPPORTED, TOL_NOT_FOUND as kn_variant_pick. Nothing has been queued then. Without rows or
 * columns nothing is done.
 */
TOL_API tol_status kn_quant_product(struct kn_kernels *kernels, struct tol_stream *stream,
                                    const struct kn_quant_product *problem);

/* What KN_QUANT_Q8_1 needs beside: x as bytes, and scales. 0 for the others. */
TOL_API size_t kn_quant_product_workspace(enum kn_quant_arithmetic arithmetic, size_t columns,
                                          size_t k);

/* The kernels for blocks of a kind, best first. */
TOL_API const struct kn_variants *kn_quant_product_variants(enum kn_quant quant,
                                                            enum kn_quant_arithmetic arithmetic);

TOL_API const char *kn_quant_arithmetic_name(enum kn_quant_arithmetic arithmetic); /* "q8_1" */

#endif

/*
 * linear: a product of a decoder, y = W x (+ bias) (+ y), or y = silu(G x) * (W x), for columns x.
 *
 * W and G have rows of k elements in one format; x and y are floats, column after column: y[c *
 * y_stride + r] is the sum over i of W[r][i] x[c * x_stride + i]. Let u = 2^-24, P the sum of
 * |W| |x|, and S the sum of (|d sc q| + |dmin m|) |x|. The variants, with their largest errors:
 *
 *     "fma"     adds products by fused multiply-adds in fp32: (k / 32 + 16) u P
 *     "tensor"  multiplies quants by x as the sum of two bfloat16 numbers, for quantised weights
 *               from compute capability 8.0 on: (2^-17 + (k / 32 + 16) 2^-22) S. An infinite x
 *               makes its column NaN, and one of 2^122 or more can
 *     "wide"    gives the bits of "tensor" for many columns; its prologue splits x into a workspace
 *     "bytes"   rounds x to bytes in a workspace (rounded.h) and multiplies whole numbers, for
 *               blocks of 256: compared with the product by x so rounded, (k / 256 + 16) 2^-22 S
 *     "early"   is "bytes" by programmatic dependent launch, from compute capability 9.0 on, as are
 *               the next three. All five give the same bits
 *     "stay"    up to eight columns and rows in whole tiles, by persistent thread blocks
 *     "kept"    more columns, so too, with x in registers; "long", so too, for a k above 4096
 *
 * A bias and a sum with y round once more each. An element is the same bits whatever the number of
 * columns and whatever the others contain, so the result for one session does not depend on the
 * sessions in the same call. A NaN affects only its column.
 *
 * Queues one kernel, and one more if x has to be split or rounded first, or if "kept" and "long"
 * round y; waits for nothing. Thread-safe, as tol_launch is.
 */
#ifndef KN_LINEAR_H
#define KN_LINEAR_H

#include "choose/kernel_set.h"
#include "quantised/linear/linear_problem.h"

/*
 * Without rows or columns it does nothing. TOL_INVALID_ARGUMENT: an argument is NULL or misaligned,
 * the format is unknown, k is not whole grains, a stride is below the length of a column, a gate
 * with a bias or a sum, or y overlaps an input. TOL_OUT_OF_RANGE: a place is too small.
 * TOL_OVER_LIMIT: 2^31 rows or k, or 2^18 columns, or more. TOL_UNSUPPORTED, TOL_NOT_FOUND: as
 * kn_variant_pick. A refused call queues nothing.
 */
TOL_API tol_status kn_linear(struct kn_kernels *kernels, struct tol_stream *stream,
                             const struct kn_linear *linear);

#endif

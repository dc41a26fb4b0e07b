/*
 * linear: a product of a decoder, y = W x (+ bias) (+ y), or y = silu(G x) * (W x), for columns x.
 *
 * W and G have rows of k elements in one format; x and y are floats, column after column: y[c *
 * y_stride + r] is the sum over i of W[r][i] x[c * x_stride + i]. With u = 2^-24 and P the sum of
 * |W| |x|, the error of an element is at most (k / 32 + 16) u P for "fma", which adds products by
 * fused multiply-adds in fp32. "tensor", for quantised weights and compute capability 8.0 on, has
 * whole quants, and x as the sum of two bfloat16 numbers: with S the sum of (|d sc q| + |dmin m|)
 * |x|, its error is at most (2^-17 + (k / 32 + 16) 2^-22) S; an infinite x makes its column NaN,
 * and one of 2^122 or more can. "wide" gives the bits of "tensor" and is for many columns, which it
 * splits into a workspace first. "bytes" and "early", for blocks of 256 and with a workspace,
 * round x to bytes there (rounded.h) and multiply whole numbers; beside the product with x so
 * rounded the error is at most (k / 256 + 16) 2^-22 S. "early" is "bytes" for compute capability
 * 9.0: it begins while the kernel in front ends, with the same bits. Each has one more rounding for
 * the bias and one for the sum with y. An element is the same bits whatever the number of columns
 * and whatever is in the others, so what is computed for one session does not depend on those
 * beside it. A NaN stays in its column.
 *
 * Queues one kernel, or two where x is split or rounded first, and waits for nothing. Thread-safe,
 * as tol_launch is.
 */
#ifndef KN_LINEAR_H
#define KN_LINEAR_H

#include "choose/kernel_set.h"
#include "quantised/linear_problem.h"

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

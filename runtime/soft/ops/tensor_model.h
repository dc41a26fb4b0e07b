/*
 * How a tensor core adds. Except for integers and doubles, the manual leaves the order, the
 * rounding and the treatment of subnormal numbers open (PTX ISA 9.0, section 9.7.14.5, mma).
 *
 * The model is the one of the published studies: Fasi, Higham, Mikaitis and Pranesh, Numerical
 * behavior of NVIDIA tensor cores (PeerJ Computer Science 7:e330, 2021), for V100, T4 and A100; Li
 * et al., FTTN (2024), and Xie et al., MMA-Sim (2025), for Hopper. Products are exact. The products
 * of a block and the accumulator are aligned to the largest exponent among them; bits after the
 * last fraction bit are cut off. Their sum is exact and rounded once: toward zero to a single, to
 * nearest to a half. The exponent of a product is the sum of its factors' exponents, so its digits
 * are those of a number from 1 up to 4.
 *
 * The numbers are those published for Hopper, and an H200 has them: every row of tensor.table,
 * tensor_volta.table, matrix.table, wgmma.table and tensor_model.table gives the same bits there
 * (CUDA driver 13.0). tensor_model.table tests each number: a GPU with other numbers gives other
 * results.
 *
 * A sum is a half only if both C and D are halves. If one of them is single, so is the sum: a C of
 * halves is widened first, so that its subnormals have the exponents of singles, and a D of halves
 * is rounded to nearest from the truncated single.
 *
 * On targets newer than sm_70, m8n8k4 on halves consists of fma, each rounded to nearest in single
 * precision (ptxas 13.0; an H200 gives these bits). If D is single: a chain over the four products
 * from +0 on, then C is added. If D is half: C + (a2 b2 + a3 b3), then + (a0 b0 + a1 b1), rounded
 * to a half.
 */
#ifndef SOFT_TENSOR_MODEL_H
#define SOFT_TENSOR_MODEL_H

enum {
    /* Binary digits kept after the point of the largest: 23 of a single, and two more. V100: 23,
     * A100: 24. */
    SOFT_TENSOR_FRACTION_BITS = 25,
    /* The same for eight-bit floating point in wgmma: Hopper's core keeps 13, as others have found
     * too (Xie et al., MMA-Sim; DeepSeek-V3's report). A single result has 13 fraction bits as
     * well, counted from its own first digit; a half is rounded to nearest from the whole sum. */
    SOFT_TENSOR_BYTE_FRACTION_BITS = 13,
    /* Products that are added at once. V100: 4, A100: 8 and 4. */
    SOFT_TENSOR_BLOCK_HALF = 16,
    SOFT_TENSOR_BLOCK_TF32 = 8,
    /* Of wmma.m16n16k8, for which ptxas takes the core's product of four (ptxas 13.0): k = 0 to 3,
     * then 4 to 7 upon the rounded result. */
    SOFT_TENSOR_BLOCK_TF32_WMMA = 4,
    /* Whether digits are cut off the size of a number, or downwards as in two's complement. */
    SOFT_TENSOR_CUTS_DOWNWARD = 0,
    /* Whether a product of zero and something large has an exponent that others are aligned to. */
    SOFT_TENSOR_ZERO_HAS_EXPONENT = 0,
    /* Whether a subnormal factor has the exponent of its format's least normal number, as it is
     * stored, or that of its leading digit. */
    SOFT_TENSOR_SUBNORMAL_AS_STORED = 1,
    /* Whether a negative sum that becomes zero gives -0: rounded to a half, cut off to a single. */
    SOFT_TENSOR_ZERO_HALF_HAS_SIGN = 0,
    SOFT_TENSOR_ZERO_SINGLE_HAS_SIGN = 0,
    /* Whether a single beyond the largest becomes infinity, or stays at the largest. */
    SOFT_TENSOR_OVERFLOWS = 1,
    /* Whether the single of an inexact sum is rounded to nearest, and not cut off. */
    SOFT_TENSOR_SINGLE_TO_NEAREST = 0
};

/* Of eight-bit floating point in mma there is no number here: for sm_90 ptxas makes two products of
 * halves of it, the first of each register's lower two elements, the second of its upper two with
 * the first's result as the accumulator, and adds C at last, to nearest (ptxas 13.0). */

#endif

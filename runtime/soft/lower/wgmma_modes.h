/*
 * Wgmma: the modes and further operands of a matrix product by four warps. Source: PTX ISA 9.0,
 * section 9.7.15.5 (wgmma.mma_async).
 *
 * An instruction's a and b are the slots of descriptors (a: none where A is in registers), c is the
 * predicate scale-d. Its further operands: the words below, the slots of D, and those of A's four
 * registers.
 */
#ifndef SOFT_WGMMA_MODES_H
#define SOFT_WGMMA_MODES_H

#include "tensor.h"

/* n | k << 16; the types of D, A and B, one byte each; the number of registers of D. */
enum { SOFT_WGMMA_SHAPE, SOFT_WGMMA_TYPES, SOFT_WGMMA_COUNT, SOFT_WGMMA_WORDS };

/* Bits of the mode; SOFT_TENSOR_SATFINITE besides. */
enum {
    SOFT_WGMMA_A_IN_REGISTERS = 1 << 8,
    SOFT_WGMMA_NEGATE_A = 1 << 9,
    SOFT_WGMMA_NEGATE_B = 1 << 10,
    SOFT_WGMMA_TRANSPOSE_A = 1 << 11, /* M-major, not K-major */
    SOFT_WGMMA_TRANSPOSE_B = 1 << 12,
    SOFT_WGMMA_NOT_SCALED = 1 << 13 /* scale-d is negated */
};

/* Before an instruction that uses registers of some wgmma: the number of registers read, the number
 * written, and their slots. */
enum { SOFT_WGMMA_READ, SOFT_WGMMA_WRITTEN, SOFT_WGMMA_SLOTS };

#endif

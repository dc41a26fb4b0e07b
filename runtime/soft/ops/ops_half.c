/*
 * Sixteen-bit floating point, one or two in a register. Source: PTX ISA 9.0, sections 9.7.4 (half
 * precision), 9.7.3.21 (tanh), 9.7.4.10 (ex2).
 */
#include "ops_half.h"
#include "op_body.h"

#define PAIR1(f, x) (f((x)&0xffff, in->mode) | f((x) >> 16, in->mode) << 16)
#define PAIR2(f, x, y)                                                                             \
    (f((x)&0xffff, (y)&0xffff, in->mode) | f((x) >> 16, (y) >> 16, in->mode) << 16)
#define PAIR3(f, x, y, z)                                                                          \
    (f((x)&0xffff, (y)&0xffff, (z)&0xffff, in->mode) |                                             \
     f((x) >> 16, (y) >> 16, (z) >> 16, in->mode) << 16)

#define HALF1(op)                                                                                  \
    OP1(op##_f16, u16, u16, op##_of_f16(x, in->mode))                                              \
    OP1(op##_f16x2, u32, u32, PAIR1(op##_of_f16, x))                                               \
    OP1(op##_bf16, u16, u16, op##_of_bf16(x, in->mode))                                            \
    OP1(op##_bf16x2, u32, u32, PAIR1(op##_of_bf16, x))
#define HALF2(op)                                                                                  \
    OP2(op##_f16, u16, u16, u16, op##_of_f16(x, y, in->mode))                                      \
    OP2(op##_f16x2, u32, u32, u32, PAIR2(op##_of_f16, x, y))                                       \
    OP2(op##_bf16, u16, u16, u16, op##_of_bf16(x, y, in->mode))                                    \
    OP2(op##_bf16x2, u32, u32, u32, PAIR2(op##_of_bf16, x, y))
HALF2(add)
HALF2(sub)
HALF2(mul)
HALF2(min)
HALF2(max)
HALF1(abs)
HALF1(neg)
HALF1(ex2)
HALF1(tanh)
OP3(fma_f16, u16, u16, u16, u16, fma_of_f16(x, y, z, in->mode))
OP3(fma_f16x2, u32, u32, u32, u32, PAIR3(fma_of_f16, x, y, z))
OP3(fma_bf16, u16, u16, u16, u16, fma_of_bf16(x, y, z, in->mode))
OP3(fma_bf16x2, u32, u32, u32, u32, PAIR3(fma_of_bf16, x, y, z))

/* One half of a register, as a single: what comparisons compare. mode: SOFT_MODE_FTZ, and how far
 * the half is shifted, in the bits from 16 up. */
OP1(half_f16, f32, u32, enter_f16(x >> (in->mode >> 16) & 0xffff, in->mode))
OP1(half_bf16, f32, u32, enter_bf16(x >> (in->mode >> 16) & 0xffff, in->mode))

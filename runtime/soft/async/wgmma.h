/*
 * Wgmma: products of matrices that a warpgroup has begun and not waited for.
 *
 * Four consecutive warps make a product of 64 rows, each its 16. A GPU does it at any time between
 * the instruction and the wait; here a warp does its part at the wait, so that whoever does not
 * wait finds the old accumulator. The factors in shared memory are read when the first warp has
 * waited, for all four: a product is one operation of its warpgroup, which one warp cannot see
 * complete while another has not begun it, so the wait is for that as well. What the factors were
 * at the beginning is kept, to report that they were changed in between.
 *
 * Reported: registers of a product used before the wait, registers written and no wgmma.fence
 * behind it, factors overwritten, factors that boxes of tensors brought with another swizzle than
 * the descriptor has, warps of a warpgroup that do not execute the same, and products that nobody
 * waited for. Source: PTX ISA 9.0, section 9.7.15.
 */
#ifndef SOFT_WGMMA_H
#define SOFT_WGMMA_H

#include "wgmma_product.h"

/* Makes a warp's part of a product whose factors are there; compiled for each level. */
typedef void soft_wgmma_multiply(const struct soft_wgmma_op *op);

/* wgmma.mma_async */
const struct soft_instruction *soft_wgmma_start(struct soft_warp *warp,
                                                const struct soft_instruction *in,
                                                soft_wgmma_multiply *multiply);

/* wgmma.fence, wgmma.commit_group, wgmma.wait_group */
const struct soft_instruction *soft_wgmma_fence(struct soft_warp *warp,
                                                const struct soft_instruction *in);
const struct soft_instruction *soft_wgmma_commit(struct soft_warp *warp,
                                                 const struct soft_instruction *in);
const struct soft_instruction *soft_wgmma_wait(struct soft_warp *warp,
                                               const struct soft_instruction *in,
                                               soft_wgmma_multiply *multiply);

/* The next instruction uses registers of some wgmma. */
const struct soft_instruction *soft_wgmma_use(struct soft_warp *warp,
                                              const struct soft_instruction *in);

/* A warp's last thread has exited; a warp begins; it is gone. */
void soft_wgmma_end(struct soft_warp *warp);
void soft_wgmma_begin(struct soft_warp *warp);
void soft_wgmma_drop(struct soft_warp *warp);

#endif

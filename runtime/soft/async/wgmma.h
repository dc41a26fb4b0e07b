/*
 * Wgmma: matrix products that a warpgroup has issued and not yet waited for.
 *
 * Four consecutive warps compute a product of 64 rows, 16 rows per warp. A GPU does it at any time
 * between the instruction and the wait. Here a warp computes its rows when it executes the wait, so
 * that a kernel without the wait reads the old accumulator. The wait also blocks until every other
 * warp of the warpgroup has issued the product, because a product is one operation of its
 * warpgroup. The first wait reads the factors in shared memory for all four warps. A copy of the
 * factors at the time of the instruction is kept, to report that they were changed in between.
 *
 * Reported: registers of a product used before the wait, registers written without a wgmma.fence
 * afterwards, factors overwritten, factors that a TMA box wrote with another swizzle than the
 * descriptor's, warps of a warpgroup that diverge, and products that no warp waited for. Source:
 * PTX ISA 9.0, section 9.7.15.
 */
#ifndef SOFT_WGMMA_H
#define SOFT_WGMMA_H

#include "wgmma_product.h"

/* Computes a warp's part of a product whose factors have been read; compiled for each level. */
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

/* A warp's last thread has exited; a warp begins; it is freed. */
void soft_wgmma_end(struct soft_warp *warp);
void soft_wgmma_begin(struct soft_warp *warp);
void soft_wgmma_drop(struct soft_warp *warp);

#endif

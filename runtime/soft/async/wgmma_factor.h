/*
 * Wgmma factor: reading a product's factors from shared memory by their descriptors.
 */
#ifndef SOFT_WGMMA_FACTOR_H
#define SOFT_WGMMA_FACTOR_H

#include "wgmma_product.h"

/* The warps of a warpgroup, and the rows of A per warp. */
enum { SOFT_WGMMA_WARPS = 4, SOFT_WGMMA_ROWS = 16 };

/* Reads a warp's rows of A, if they are in shared memory, or B. first: the product is being issued,
 * and mistakes in the factor are reported. *changed becomes true if the bytes differ from those
 * read before. false: some are outside shared memory, and the launch has failed. */
bool soft_wgmma_read_a(struct soft_warp *warp, struct soft_wgmma_op *op, bool first, bool *changed);
bool soft_wgmma_read_b(struct soft_warp *warp, struct soft_wgmma_op *op, bool first, bool *changed);

/* The offsets of the 16-byte chunks whose reads are checked on behalf of a warp: its rows of A, and
 * a quarter of B. Returns their number. */
enum { SOFT_WGMMA_PART = SOFT_WGMMA_A_CHUNKS + SOFT_WGMMA_B_CHUNKS / 4 };
uint32_t soft_wgmma_part(const struct soft_warp *warp, const struct soft_wgmma_op *op,
                         uint32_t offsets[SOFT_WGMMA_PART]);

#endif

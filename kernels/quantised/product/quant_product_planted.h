/*
 * Quant product, planted: kernels with one defect each, to be passed as struct
 * kn_quant_product.variants, so that the tests of steps 8 and 9 can be put to the test.
 *
 * Only for Q4_K in KN_QUANT_F16, where "wgmma" serves. Variants: "early_stage", a stage of x is
 * given back before it is multiplied, which shows where k exceeds 512; "lost_chunk", the second 256
 * of a row's weights are not read, and the first are used again; "stale_fragments", the last 64 of
 * 256 steps use older weights; "lost_consumer", rows 64 to 127 of a tile are not stored;
 * "lost_share", of up to 32 columns where "wgmma_split" serves, the sums of the last share of k are
 * not added. A program that does not name this table does not link the kernels.
 */
#ifndef KN_QUANT_PRODUCT_PLANTED_H
#define KN_QUANT_PRODUCT_PLANTED_H

#include "quant_product.h"

TOL_API extern const struct kn_variants kn_quant_product_planted;

#endif

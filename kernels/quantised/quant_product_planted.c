/*
 * The table of kernels with a defect. Only programs that name it link it.
 */
#include "quant_product_planted.h"

#include "quant_product_wgmma.h"

KN_IMAGES(quant_product_planted);

#define ROW(mistake, ...)                                                                          \
    KN_QUANT_WGMMA_ROW(#mistake, "quant_product_planted_" #mistake,                                \
                       kn_images_quant_product_planted, kn_quant_split_refuses, __VA_ARGS__)

static const struct kn_variant rows[] = {ROW(early_stage, 128), ROW(lost_chunk, 128),
                                         ROW(stale_fragments, 128), ROW(lost_consumer, 128),
                                         ROW(lost_share, 32, KN_QUANT_WGMMA_SPLIT)};

const struct kn_variants kn_quant_product_planted = {"quant product, with a defect", rows,
                                                     sizeof rows / sizeof rows[0]};

/*
 * The table of kernels with a defect. Only programs that name it link it.
 */
#include "quant_product_planted.h"

#include "quant_product_wgmma.h"

KN_IMAGES(quant_product_planted);

#define ROW(mistake)                                                                               \
    KN_QUANT_WGMMA_ROW(#mistake, "quant_product_planted_" #mistake,                                \
                       kn_images_quant_product_planted, 128, kn_quant_wgmma_refuses)

static const struct kn_variant rows[] = {ROW(early_stage), ROW(lost_chunk), ROW(stale_fragments),
                                         ROW(lost_consumer)};

const struct kn_variants kn_quant_product_planted = {"quant product, with a defect", rows,
                                                     sizeof rows / sizeof rows[0]};

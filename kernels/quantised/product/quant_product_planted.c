/*
 * The table of kernels with a defect. Only programs that name it link it.
 */
#include "quant_product_planted.h"

#include "quantised/product/product_table.h"

KN_IMAGES(quant_product_planted);

#define ROW(mistake, columns, kind)                                                                \
    {                                                                                              \
        KN_PRODUCT_MAPS_ROW(#mistake, "quant_product_planted_" #mistake,                           \
                            kn_images_quant_product_planted, KN_PRODUCT_SHARES, 0, columns,        \
                            KN_PRODUCT_##kind)                                                     \
    }

static const struct kn_variant rows[] = {
    ROW(early_stage, 128, WGMMA), ROW(lost_chunk, 128, WGMMA), ROW(stale_fragments, 128, WGMMA),
    ROW(lost_consumer, 128, WGMMA), ROW(lost_share, 32, SPLIT)};

const struct kn_variants kn_quant_product_planted = {"quant product, with a defect", rows,
                                                     sizeof rows / sizeof rows[0]};

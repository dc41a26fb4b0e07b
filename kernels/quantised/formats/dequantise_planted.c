/*
 * The table of kernels with a defect. Only programs that name it link it.
 */
#include "dequantise_planted.h"

KN_IMAGES(dequantise_planted);

enum { THREADS = 256, MISTAKES = 4 };

#define ROW(mistake)                                                                               \
    {                                                                                              \
        .name = #mistake, .entry = "dequantise_planted_" #mistake,                                 \
        .images = kn_images_dequantise_planted, .compute_capability_min = 75, .threads = THREADS,  \
        .tile = {                                                                                  \
            THREADS                                                                                \
        }                                                                                          \
    }

static const struct kn_variant rows[MISTAKES] = {ROW(nibbles), ROW(minimum), ROW(tail),
                                                 ROW(scales)};

const struct kn_variants kn_dequantise_planted = {"dequantise, with a defect", rows, MISTAKES};

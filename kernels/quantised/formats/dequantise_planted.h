/*
 * Dequantise, planted: kernels with one defect each, to be passed as struct kn_dequantise.variants,
 * so that claims about the right kernels can be put to the test.
 *
 * Only for Q4_K to KN_F32. Variants: "nibbles", neighbours share a byte; "minimum", dmin * m is
 * left out; "tail", the last element is not written; "scales", the upper bits of the later scales
 * are lost. A program that does not name this table does not link the kernels.
 */
#ifndef KN_DEQUANTISE_PLANTED_H
#define KN_DEQUANTISE_PLANTED_H

#include "dequantise.h"

TOL_API extern const struct kn_variants kn_dequantise_planted;

#endif

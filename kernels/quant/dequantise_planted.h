/*
 * Dequantise, planted: kernels that each make one mistake, to be put in the right ones' place
 * (struct kn_dequantise, variants), so that claims about these can be put to the test.
 *
 * Only for Q4_K to KN_F32. Variants: "nibbles", neighbours share a byte; "minimum", dmin * m is
 * forgotten; "tail", the last element is not written; "scales", the upper bits of the later scales
 * are lost. A program that does not name the table does not get the kernels either.
 */
#ifndef KN_DEQUANTISE_PLANTED_H
#define KN_DEQUANTISE_PLANTED_H

#include "dequantise.h"

TOL_API extern const struct kn_variants kn_dequantise_planted;

#endif

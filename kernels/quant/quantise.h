/*
 * Quantise: values to blocks of Q4_K, Q6_K or Q8_0, on the host: good enough for test data.
 *
 * Scales are looked for by trying several and fitting each by least squares; what comes out is not
 * what other programs make of the same values. Deterministic, pure, thread-safe.
 */
#ifndef KN_QUANTISE_H
#define KN_QUANTISE_H

#include "quant_block.h"

/*
 * Quantises count values into count / kn_quant_block_elements blocks.
 * TOL_INVALID_ARGUMENT: a value is infinite or no number, or these are no whole blocks.
 * TOL_OUT_OF_RANGE: a value is too large for the format, whose d is an fp16. Blocks before the one
 * that is refused have been written.
 */
TOL_API tol_status kn_quantise(enum kn_quant quant, const float *values, size_t count,
                               void *blocks);

#endif

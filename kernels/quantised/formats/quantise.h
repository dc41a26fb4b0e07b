/*
 * Quantise: converts values to blocks of Q4_K, Q6_K or Q8_0, on the host: good enough for test
 * data.
 *
 * It tries several scales and fits each by least squares. Other programs give other blocks for the
 * same values. Deterministic, pure, thread-safe.
 */
#ifndef KN_QUANTISE_H
#define KN_QUANTISE_H

#include "quant_block.h"

/*
 * Quantises count values into count / kn_quant_block_elements blocks. TOL_INVALID_ARGUMENT: a value
 * is infinite or NaN, or count is not whole blocks. TOL_OUT_OF_RANGE: a value is too large for the
 * format, which stores d as an fp16. The blocks before a refused one have been written.
 */
TOL_API tol_status kn_quantise(enum kn_quant quant, const float *values, size_t count,
                               void *blocks);

#endif

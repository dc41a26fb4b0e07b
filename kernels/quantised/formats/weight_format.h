/*
 * Weight format: the formats in which a decoder's matrices lie on the device, and their values on
 * the host.
 *
 * A matrix is rows of k elements, one after the other, as GGUF files store them. Q4_K, Q6_K and
 * Q8_0 are those of quant_block.h. Q5_K is blocks of 256 elements and 176 bytes: d and dmin (fp16),
 * the twelve bytes of scales of Q4_K, 32 bytes of fifth bits, 128 bytes of nibbles; bit 2 g of byte
 * 16 + l is the fifth bit of element 64 g + l, and bit 2 g + 1 that of element 64 g + 32 + l. Its
 * value is (d * sc) * q - (dmin * m), q from 0 to 31.
 * Source: ggml, docs/gguf.md and ggml-quants (their layout). Pure; thread-safe.
 */
#ifndef KN_WEIGHT_FORMAT_H
#define KN_WEIGHT_FORMAT_H

#include "quantised/formats/quant_block.h"

enum kn_weight_format {
    KN_WEIGHT_F32,
    KN_WEIGHT_F16,
    KN_WEIGHT_BF16,
    KN_WEIGHT_Q8_0,
    KN_WEIGHT_Q4_K,
    KN_WEIGHT_Q5_K,
    KN_WEIGHT_Q6_K,
    KN_WEIGHT_FORMATS
};

TOL_API const char *kn_weight_name(enum kn_weight_format format); /* "q5_k" */

/* What k must be a multiple of: whole blocks, or 8 elements. */
TOL_API size_t kn_weight_grain(enum kn_weight_format format);

/* The bytes of a row of k elements. */
TOL_API size_t kn_weight_row_bytes(enum kn_weight_format format, size_t k);

/* What the address of a matrix must be a multiple of: 16, or 2 for Q6_K and Q8_0. */
TOL_API size_t kn_weight_alignment(enum kn_weight_format format);

/* The values of count elements, whole grains, with the roundings of fp32 as above. */
TOL_API void kn_weight_values(enum kn_weight_format format, const void *weights, size_t count,
                              float *values);

#endif

/*
 * Quant blocks: Q4_K, Q6_K and Q8_0 as GGUF files store them, and their values, on the host.
 *
 * A row of k elements is k / 256 (Q8_0: k / 32) blocks, one after the other, little-endian. An
 * element is, with the roundings of fp32 in this order,
 *
 *     Q4_K    (d * sc[j]) * q - (dmin * m[j])    q from 0 to 15, sc and m from 0 to 63, j = i / 32
 *     Q6_K    (d * sc[j]) * (q - 32)             q from 0 to 63, sc from -128 to 127,   j = i / 16
 *     Q8_0    d * q                              q from -128 to 127
 *
 * All products fit into 24 bits, so only the difference of Q4_K is rounded, and an implementation
 * that fuses it gives the same bits. Source: ggml, docs/gguf.md and ggml-quants (their layout).
 * Pure; thread-safe.
 */
#ifndef KN_QUANT_BLOCK_H
#define KN_QUANT_BLOCK_H

#include "number.h"

#include <assert.h>

enum kn_quant { KN_Q4_K, KN_Q6_K, KN_Q8_0, KN_QUANTS };

struct kn_block_q4_k {
    uint16_t d, dmin;   /* fp16 */
    uint8_t scales[12]; /* eight scales and eight minimums of 6 bits: kn_q4_k_scale */
    uint8_t qs[128];    /* byte 32 g + l: element 64 g + l low, element 64 g + 32 + l high */
};

struct kn_block_q6_k {
    uint8_t ql[128];   /* the lower four bits; of half h from byte 64 h on */
    uint8_t qh[64];    /* the upper two; of half h from byte 32 h on */
    int8_t scales[16]; /* of sixteen elements each */
    uint16_t d;        /* fp16 */
};

struct kn_block_q8_0 {
    uint16_t d; /* fp16 */
    int8_t qs[32];
};

static_assert(sizeof(struct kn_block_q4_k) == 144, "block_q4_K has 144 bytes");
static_assert(sizeof(struct kn_block_q6_k) == 210, "block_q6_K has 210 bytes");
static_assert(sizeof(struct kn_block_q8_0) == 34, "block_q8_0 has 34 bytes");

TOL_API const char *kn_quant_name(enum kn_quant quant);      /* "q4_k" */
TOL_API size_t kn_quant_block_bytes(enum kn_quant quant);    /* 144, 210, 34 */
TOL_API size_t kn_quant_block_elements(enum kn_quant quant); /* 256, 256, 32 */

/* The scale and the minimum of sub-block j, from 0 to 7. */
TOL_API void kn_q4_k_scale(const uint8_t scales[12], int j, uint8_t *scale, uint8_t *minimum);
/* Stores them, each from 0 to 63; scales must begin as zeros. */
TOL_API void kn_q4_k_set_scale(uint8_t scales[12], int j, uint8_t scale, uint8_t minimum);

/* The values of count blocks: as floats with the roundings above, and as doubles without any. A
 * block with an infinite or NaN d or dmin gives infinities and NaN. */
TOL_API void kn_quant_values(enum kn_quant quant, const void *blocks, size_t count, float *values);
TOL_API void kn_quant_values_exact(enum kn_quant quant, const void *blocks, size_t count,
                                   double *values);

#endif

/*
 * The formats' sizes and values on the host.
 */
#include "quantised/formats/weight_format.h"

#include <string.h>

enum { Q5_K_BYTES = 176, Q5_K_ELEMENTS = 256 };

static const struct {
    const char *name;
    size_t elements, bytes; /* of a block */
    size_t grain, alignment;
} formats[KN_WEIGHT_FORMATS] = {
    [KN_WEIGHT_F32] = {"f32", 1, 4, 8, 16},         [KN_WEIGHT_F16] = {"f16", 1, 2, 8, 16},
    [KN_WEIGHT_BF16] = {"bf16", 1, 2, 8, 16},       [KN_WEIGHT_Q8_0] = {"q8_0", 32, 34, 32, 2},
    [KN_WEIGHT_Q4_K] = {"q4_k", 256, 144, 256, 16}, [KN_WEIGHT_Q5_K] = {"q5_k", 256, 176, 256, 16},
    [KN_WEIGHT_Q6_K] = {"q6_k", 256, 210, 256, 2}};

const char *kn_weight_name(enum kn_weight_format format) {
    return (unsigned)format < KN_WEIGHT_FORMATS ? formats[format].name : "?";
}

size_t kn_weight_grain(enum kn_weight_format format) {
    return formats[format].grain;
}

size_t kn_weight_row_bytes(enum kn_weight_format format, size_t k) {
    return k / formats[format].elements * formats[format].bytes;
}

size_t kn_weight_alignment(enum kn_weight_format format) {
    return formats[format].alignment;
}

static void q5_k_values(const uint8_t *block, float *values) {
    uint16_t d, dmin;
    memcpy(&d, block, sizeof d);
    memcpy(&dmin, block + 2, sizeof dmin);
    for (int i = 0; i < Q5_K_ELEMENTS; i++) {
        const int group = i / 64, high = i % 64 / 32, l = i % 32;
        const int nibble = block[48 + 32 * group + l] >> 4 * high & 15;
        const int fifth = block[16 + l] >> (2 * group + high) & 1;
        uint8_t scale, minimum;
        kn_q4_k_scale(block + 4, i / 32, &scale, &minimum);
        values[i] = kn_f16_value(d) * (float)scale * (float)(nibble | fifth << 4) -
                    kn_f16_value(dmin) * (float)minimum;
    }
}

void kn_weight_values(enum kn_weight_format format, const void *weights, size_t count,
                      float *values) {
    switch (format) {
    case KN_WEIGHT_F32:
        kn_numbers_load(KN_F32, weights, count, values);
        return;
    case KN_WEIGHT_F16:
        kn_numbers_load(KN_F16, weights, count, values);
        return;
    case KN_WEIGHT_BF16:
        kn_numbers_load(KN_BF16, weights, count, values);
        return;
    case KN_WEIGHT_Q8_0:
        kn_quant_values(KN_Q8_0, weights, count / 32, values);
        return;
    case KN_WEIGHT_Q4_K:
        kn_quant_values(KN_Q4_K, weights, count / 256, values);
        return;
    case KN_WEIGHT_Q6_K:
        kn_quant_values(KN_Q6_K, weights, count / 256, values);
        return;
    case KN_WEIGHT_Q5_K:
        for (size_t i = 0; i < count / Q5_K_ELEMENTS; i++) {
            q5_k_values((const uint8_t *)weights + i * Q5_K_BYTES, values + i * Q5_K_ELEMENTS);
        }
        return;
    case KN_WEIGHT_FORMATS:
        return;
    }
}

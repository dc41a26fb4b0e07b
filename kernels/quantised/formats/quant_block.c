/*
 * Dequantising on the host, a block at a time: the same walk for floats and doubles.
 */
#include "quant_block.h"

#include <string.h>

const char *kn_quant_name(enum kn_quant quant) {
    static const char *const names[KN_QUANTS] = {"q4_k", "q6_k", "q8_0"};
    return (unsigned)quant < KN_QUANTS ? names[quant] : "?";
}

size_t kn_quant_block_bytes(enum kn_quant quant) {
    return quant == KN_Q4_K   ? sizeof(struct kn_block_q4_k)
           : quant == KN_Q6_K ? sizeof(struct kn_block_q6_k)
                              : sizeof(struct kn_block_q8_0);
}

size_t kn_quant_block_elements(enum kn_quant quant) {
    return quant == KN_Q8_0 ? 32 : 256;
}

/* Bytes 0 to 3 hold the scales of sub-blocks 0 to 3, bytes 4 to 7 their minimums, six bits each; 8
 * to 11 the lower four bits of the other four, whose upper two are in the six's upper two. */
void kn_q4_k_scale(const uint8_t scales[12], int j, uint8_t *scale, uint8_t *minimum) {
    const uint8_t *at = &scales[j % 4];
    if (j < 4) {
        *scale = at[0] & 63;
        *minimum = at[4] & 63;
    } else {
        *scale = (uint8_t)((at[8] & 15) | at[0] >> 6 << 4);
        *minimum = (uint8_t)(at[8] >> 4 | at[4] >> 6 << 4);
    }
}

void kn_q4_k_set_scale(uint8_t scales[12], int j, uint8_t scale, uint8_t minimum) {
    uint8_t *at = &scales[j % 4];
    if (j < 4) {
        at[0] |= scale & 63;
        at[4] |= minimum & 63;
    } else {
        at[8] = (uint8_t)((scale & 15) | (minimum & 15) << 4);
        at[0] = (uint8_t)(at[0] | (scale >> 4 & 3) << 6);
        at[4] = (uint8_t)(at[4] | (minimum >> 4 & 3) << 6);
    }
}

/* What an element is made of: (d * scale) * q - (dmin * minimum). */
struct element {
    float d, dmin;
    int scale, minimum, q;
};

static struct element element_q4_k(const void *block, size_t i) {
    struct kn_block_q4_k b;
    uint8_t scale, minimum;
    memcpy(&b, block, sizeof b);
    kn_q4_k_scale(b.scales, (int)(i / 32), &scale, &minimum);
    const int byte = b.qs[i / 64 * 32 + i % 32];
    return (struct element){.d = kn_f16_value(b.d),
                            .dmin = kn_f16_value(b.dmin),
                            .scale = scale,
                            .minimum = minimum,
                            .q = i % 64 < 32 ? byte & 15 : byte >> 4};
}

static struct element element_q6_k(const void *block, size_t i) {
    struct kn_block_q6_k b;
    memcpy(&b, block, sizeof b);
    const size_t half = i / 128, quarter = i % 128 / 32, l = i % 32;
    const int low = b.ql[64 * half + quarter % 2 * 32 + l];
    const int high = b.qh[32 * half + l] >> 2 * quarter & 3;
    return (struct element){.d = kn_f16_value(b.d),
                            .scale = b.scales[i / 16],
                            .q = ((quarter < 2 ? low & 15 : low >> 4) | high << 4) - 32};
}

static struct element element_q8_0(const void *block, size_t i) {
    struct kn_block_q8_0 b;
    memcpy(&b, block, sizeof b);
    return (struct element){.d = kn_f16_value(b.d), .scale = 1, .q = b.qs[i]};
}

static struct element quant_block_element_of(enum kn_quant quant, const void *block, size_t i) {
    return quant == KN_Q4_K   ? element_q4_k(block, i)
           : quant == KN_Q6_K ? element_q6_k(block, i)
                              : element_q8_0(block, i);
}

void kn_quant_values(enum kn_quant quant, const void *blocks, size_t count, float *values) {
    const size_t elements = kn_quant_block_elements(quant), bytes = kn_quant_block_bytes(quant);
    for (size_t b = 0; b < count; b++) {
        for (size_t i = 0; i < elements; i++) {
            const struct element e =
                quant_block_element_of(quant, (const char *)blocks + b * bytes, i);
            float value = e.d * (float)e.scale * (float)e.q;
            if (quant == KN_Q4_K) value -= e.dmin * (float)e.minimum;
            values[b * elements + i] = value;
        }
    }
}

void kn_quant_values_exact(enum kn_quant quant, const void *blocks, size_t count, double *values) {
    const size_t elements = kn_quant_block_elements(quant), bytes = kn_quant_block_bytes(quant);
    for (size_t b = 0; b < count; b++) {
        for (size_t i = 0; i < elements; i++) {
            const struct element e =
                quant_block_element_of(quant, (const char *)blocks + b * bytes, i);
            double value = (double)e.d * e.scale * e.q;
            if (quant == KN_Q4_K) value -= (double)e.dmin * e.minimum;
            values[b * elements + i] = value;
        }
    }
}

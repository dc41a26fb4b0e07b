/*
 * Quantising: for each sub-block the scale (and minimum) that leave the least squares, then d for
 * all of a block, then the quants anew against the scales as they were stored.
 */
#include "quantise.h"

#include "core/check.h"

#include <math.h>
#include <string.h>

static float quantise_clamp(float value, float least, float most) {
    return value < least ? least : value > most ? most : value;
}

/* A sub-block: values are close to scale * q - minimum, both at least 0. */
struct fit {
    float scale, minimum;
};

static double error_of(struct fit fit, const float *values, int count, float q_max) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
        const float q = fit.scale > 0
                            ? quantise_clamp(rintf((values[i] + fit.minimum) / fit.scale), 0, q_max)
                            : 0;
        const double difference = (double)fit.scale * q - fit.minimum - values[i];
        sum += difference * difference;
    }
    return sum;
}

/* The best scale and minimum for the quants that a guess gives: two equations in two unknowns. */
static struct fit quantise_refine(struct fit guess, const float *values, int count, float q_max) {
    double q1 = 0, q2 = 0, x1 = 0, qx = 0;
    for (int i = 0; i < count; i++) {
        const double q = quantise_clamp(rintf((values[i] + guess.minimum) / guess.scale), 0, q_max);
        q1 += q, q2 += q * q, x1 += values[i], qx += q * values[i];
    }
    const double determinant = count * q2 - q1 * q1;
    if (!(determinant > 0)) return guess;
    double scale = (count * qx - q1 * x1) / determinant;
    double minimum = (scale * q1 - x1) / count;
    if (minimum < 0) { /* the format has none below 0 */
        minimum = 0;
        scale = q2 > 0 ? qx / q2 : 0;
    }
    return scale > 0 ? (struct fit){(float)scale, (float)minimum} : guess;
}

static struct fit fit_with_minimum(const float *values, int count, float q_max) {
    enum { GUESSES = 21 };
    float least = 0, most = values[0];
    for (int i = 0; i < count; i++) {
        least = fminf(least, values[i]);
        most = fmaxf(most, values[i]);
    }
    struct fit best = {most > least ? (most - least) / q_max : 0, -least};
    if (!(best.scale > 0)) return best;
    double best_error = error_of(best, values, count, q_max);
    for (int i = 0; i < GUESSES; i++) {
        const float levels = q_max - 1 + 0.1f * (float)i;
        const struct fit guess = {(most - least) / levels, -least};
        const struct fit refined = quantise_refine(guess, values, count, q_max);
        const double error = error_of(refined, values, count, q_max);
        if (error < best_error) best = refined, best_error = error;
    }
    return best;
}

/* The scale alone, of either sign, where quants go from -most - 1 to most. */
static float fit_scale(const float *values, int count, float most) {
    float largest = 0, best = 0;
    double best_gain = -1;
    for (int i = 0; i < count; i++) {
        if (fabsf(values[i]) > fabsf(largest)) largest = values[i];
    }
    if (largest == 0) return 0;
    for (int guess = -9; guess <= 9; guess++) {
        /* The largest goes to the end that has one quant more. */
        const float scale = -largest / (most + 1 + 0.1f * (float)guess);
        double qx = 0, q2 = 0;
        if (scale == 0 || !isfinite(1 / scale)) continue;
        for (int i = 0; i < count; i++) {
            const double q = quantise_clamp(rintf(values[i] / scale), -most - 1, most);
            qx += q * values[i], q2 += q * q;
        }
        if (q2 > 0 && qx * qx / q2 > best_gain) best = (float)(qx / q2), best_gain = qx * qx / q2;
    }
    return best;
}

static tol_status check_scale(float d) {
    tol_status status = TOL_OK;
    TOL_CHECK(isfinite(kn_f16_value(kn_f16_of(d))), TOL_OUT_OF_RANGE,
              "the values need a scale of %g, and an fp16 goes to 65504", (double)d);
out:
    return status;
}

static tol_status quantise_q4_k(const float *values, struct kn_block_q4_k *block) {
    tol_status status = TOL_OK;
    struct fit fits[8];
    float scale_max = 0, minimum_max = 0;
    for (int j = 0; j < 8; j++) {
        fits[j] = fit_with_minimum(values + 32 * j, 32, 15);
        scale_max = fmaxf(scale_max, fits[j].scale);
        minimum_max = fmaxf(minimum_max, fits[j].minimum);
    }
    memset(block, 0, sizeof *block);
    TOL_TRY(check_scale(scale_max / 63));
    TOL_TRY(check_scale(minimum_max / 63));
    block->d = kn_f16_of(scale_max / 63);
    block->dmin = kn_f16_of(minimum_max / 63);
    const float d = kn_f16_value(block->d), dmin = kn_f16_value(block->dmin);
    for (int j = 0; j < 8; j++) {
        const float sc = d > 0 ? quantise_clamp(rintf(fits[j].scale / d), 0, 63) : 0;
        const float m = dmin > 0 ? quantise_clamp(rintf(fits[j].minimum / dmin), 0, 63) : 0;
        kn_q4_k_set_scale(block->scales, j, (uint8_t)sc, (uint8_t)m);
        for (int i = 0; sc > 0 && i < 32; i++) {
            const float q = rintf((values[32 * j + i] + dmin * m) / (d * sc));
            const unsigned bits = (unsigned)quantise_clamp(q, 0, 15) << (j % 2 * 4);
            block->qs[j / 2 * 32 + i] = (uint8_t)(block->qs[j / 2 * 32 + i] | bits);
        }
    }
out:
    return status;
}

static tol_status quantise_q6_k(const float *values, struct kn_block_q6_k *block) {
    tol_status status = TOL_OK;
    float scales[16], largest = 0;
    for (int j = 0; j < 16; j++) {
        scales[j] = fit_scale(values + 16 * j, 16, 31);
        if (fabsf(scales[j]) > fabsf(largest)) largest = scales[j];
    }
    memset(block, 0, sizeof *block);
    TOL_TRY(check_scale(largest / 128));
    block->d = kn_f16_of(-largest / 128);
    const float d = kn_f16_value(block->d);
    for (int j = 0; j < 16; j++) {
        block->scales[j] = (int8_t)(d != 0 ? quantise_clamp(rintf(scales[j] / d), -128, 127) : 0);
        const float scale = d * block->scales[j];
        for (int i = 16 * j; i < 16 * j + 16; i++) {
            const float q = scale != 0 ? quantise_clamp(rintf(values[i] / scale), -32, 31) : 0;
            const unsigned bits = (unsigned)((int)q + 32);
            const int half = i / 128, quarter = i % 128 / 32, l = i % 32;
            uint8_t *low = &block->ql[64 * half + quarter % 2 * 32 + l];
            uint8_t *high = &block->qh[32 * half + l];
            *low = (uint8_t)(*low | (bits & 15) << (quarter / 2 * 4));
            *high = (uint8_t)(*high | bits >> 4 << (2 * quarter));
        }
    }
out:
    return status;
}

static tol_status quantise_q8_0(const float *values, struct kn_block_q8_0 *block) {
    tol_status status = TOL_OK;
    float largest = 0;
    for (int i = 0; i < 32; i++) largest = fmaxf(largest, fabsf(values[i]));
    TOL_TRY(check_scale(largest / 127));
    block->d = kn_f16_of(largest / 127);
    const float d = kn_f16_value(block->d);
    for (int i = 0; i < 32; i++) {
        block->qs[i] = (int8_t)(d > 0 ? quantise_clamp(rintf(values[i] / d), -127, 127) : 0);
    }
out:
    return status;
}

tol_status kn_quantise(enum kn_quant quant, const float *values, size_t count, void *blocks) {
    tol_status status = TOL_OK;
    TOL_CHECK((unsigned)quant < KN_QUANTS && (count == 0 || (values != NULL && blocks != NULL)),
              TOL_INVALID_ARGUMENT, "quantise: quantisation %d of %zu values, or NULL", (int)quant,
              count);
    const size_t elements = kn_quant_block_elements(quant), bytes = kn_quant_block_bytes(quant);
    TOL_CHECK(count % elements == 0, TOL_INVALID_ARGUMENT,
              "quantise: %zu values are no whole blocks of %s, which have %zu", count,
              kn_quant_name(quant), elements);
    for (size_t i = 0; i < count; i++) {
        TOL_CHECK(isfinite(values[i]), TOL_INVALID_ARGUMENT, "quantise: value %zu is %g", i,
                  (double)values[i]);
    }
    for (size_t i = 0; i < count; i += elements) {
        union {
            struct kn_block_q4_k q4_k;
            struct kn_block_q6_k q6_k;
            struct kn_block_q8_0 q8_0;
        } block; /* the destination need not be aligned */
        TOL_TRY(quant == KN_Q4_K   ? quantise_q4_k(values + i, &block.q4_k)
                : quant == KN_Q6_K ? quantise_q6_k(values + i, &block.q6_k)
                                   : quantise_q8_0(values + i, &block.q8_0));
        memcpy((char *)blocks + i / elements * bytes, &block, bytes);
    }
out:
    return status;
}

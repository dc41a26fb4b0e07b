#include "mix.h"

#include "texel.h"

#include <math.h>
#include <string.h>

/* ---- weights ---- */

static unsigned mix_part_of(unsigned steps, unsigned weight, bool ties_up) {
    return (steps * weight + SOFT_STEPS / 2 - !ties_up) / SOFT_STEPS;
}

static void mix_divide(unsigned steps[8], unsigned corner, unsigned dimension, unsigned weight,
                       bool ties_up) {
    unsigned high = mix_part_of(steps[corner], weight, ties_up);
    steps[corner | 1u << dimension] = high;
    steps[corner] -= high;
}

void soft_mix_weigh(unsigned share, const unsigned weights[3], unsigned dimensions,
                    unsigned steps[8]) {
    enum { X = 1, Y = 2, Z = 4 };
    memset(steps, 0, 8 * sizeof *steps);
    steps[0] = share;
    if (dimensions > 2) mix_divide(steps, 0, 2, weights[2], true);
    for (unsigned z = 0; z <= (dimensions > 2 ? Z : 0); z += Z) {
        mix_divide(steps, z, 0, weights[0], true);
        if (dimensions < 2) continue;
        mix_divide(steps, z, 1, weights[1], false);
        mix_divide(steps, z | X, 1, weights[1], true);
    }
}

/* ---- sums ---- */

void soft_mix_add(struct soft_mixture *mixture, unsigned steps, const uint32_t texel[4]) {
    if (steps == 0 || mixture->count == SOFT_MIXTURE_MAX) return;
    struct soft_part *part = &mixture->parts[mixture->count++];
    part->steps = steps;
    memcpy(part->texel, texel, sizeof part->texel);
}

/* To a number of bits, ties away from zero. */
static double mix_rounded(double x, int bits) {
    int exponent = 0;
    if (x == 0 || !isfinite(x)) return x;
    double size = frexp(fabs(x), &exponent);
    return copysign(ldexp(floor(ldexp(size, bits) + 0.5), exponent - bits), x);
}

/* The sum without the bits of texels that are more than a number of places below the first bit of
 * the largest one. carry: how much smaller than a power of two a texel may be to count as that
 * power. */
static double aligned_sum(const struct soft_mixture *mixture, unsigned channel, int places,
                          double carry) {
    double largest = 0, sum = 0;
    int exponent = 0;
    for (unsigned i = 0; i < mixture->count; i++) {
        largest = fmax(largest, fabs((double)soft_texel_float(mixture->parts[i].texel[channel])));
    }
    if (isfinite(largest)) (void)frexp(largest * carry, &exponent);
    for (unsigned i = 0; i < mixture->count; i++) {
        double texel = (double)soft_texel_float(mixture->parts[i].texel[channel]);
        if (isfinite(largest)) {
            texel = ldexp(trunc(ldexp(texel, places + 1 - exponent)), exponent - places - 1);
        }
        sum += mixture->parts[i].steps * texel;
    }
    return sum / SOFT_STEPS;
}

static double exact_sum(const struct soft_mixture *mixture, unsigned channel) {
    double sum = 0;
    for (unsigned i = 0; i < mixture->count; i++) {
        sum += mixture->parts[i].steps * (double)soft_texel_float(mixture->parts[i].texel[channel]);
    }
    return sum / SOFT_STEPS;
}

/* Channels that are integers in memory are summed as integers. */
static double mix_integer_sum(const struct soft_mixture *mixture, const struct soft_texels *texels,
                              unsigned channel) {
    bool is_signed = texels->channel == SOFT_CHANNEL_SIGNED, is_byte = texels->channel_bytes == 1;
    double most = (double)((1 << (8 * texels->channel_bytes - is_signed)) - 1);
    int64_t sum = 0;
    for (unsigned i = 0; i < mixture->count; i++) {
        double texel = (double)soft_texel_float(mixture->parts[i].texel[channel]);
        sum += (int64_t)mixture->parts[i].steps * llrint(texel * most);
    }
    if (is_byte && is_signed) {
        sum = (8 * sum + (sum >> 4) + (sum >> 12) + 4) >> 3;
    } else {
        sum = (sum * (is_byte ? 257 : 1) + SOFT_STEPS / 2) >> 8;
    }
    return (double)sum / (is_signed ? 32767 : 65535);
}

void soft_mix_give(const struct soft_mixture *mixture, const struct soft_texture *texture,
                   uint32_t texel[4]) {
    const struct soft_texels *texels = &texture->texels;
    for (unsigned i = 0; i < 4; i++) {
        double sum;
        if (soft_texel_is_srgb(texture, i)) {
            sum = mix_rounded(aligned_sum(mixture, i, 7, 256.0 / 248), 11);
        } else if (texture->promotes) {
            sum = mix_integer_sum(mixture, texels, i);
        } else if (texels->channel_bytes == 2) {
            sum = mix_rounded(aligned_sum(mixture, i, 15, 1), 11);
        } else {
            sum = mix_rounded(exact_sum(mixture, i), 24);
        }
        texel[i] = soft_texel_bits((float)sum);
    }
}

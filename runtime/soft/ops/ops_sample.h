/*
 * Sample: a texture read of a whole warp, for the common cases: all lanes have one texture of one
 * level, which is no cube; its texels are in the range that the instruction accessed last, and all
 * that are read were written.
 *
 * Everything else, and every error, is executed lane by lane (texture/fetch.h), which also defines
 * the results: those here are the same, bit by bit. Each step is a loop over 32 lanes that a
 * compiler vectorizes.
 */
#ifndef SOFT_OPS_SAMPLE_H
#define SOFT_OPS_SAMPLE_H

#include "machine/access.h"
#include "ops_axis.h"
#include "ops_texel.h"
#include "texture/sample.h"
#include "texture/texel.h"

enum { SAMPLE_CHANNELS = 4, SAMPLE_CORNERS = 8 };

enum sample_kind { SAMPLE_NUMBER, SAMPLE_POINT, SAMPLE_FILTER };

struct sample {
    const struct soft_texture *texture;
    enum sample_kind kind;
    struct texel_source source;
    struct axis axes[3], layers; /* layers: the low side alone */
    bool has_border;             /* some texels may be outside, and are border */
    uint32_t border[SAMPLE_CHANNELS];
    uint32_t result[SAMPLE_CHANNELS][SOFT_LANES]; /* as the instruction gives it */
};

/* ---- places ---- */

/* Finds the texture. false: the lanes have several, or it has no fast path. */
static bool sample_find(struct sample *sample, const struct soft_warp *warp,
                        const struct soft_instruction *in, uint32_t slot) {
    const uint64_t *handles = SLOT(uint64_t, slot);
    const uint64_t handle = handles[__builtin_ctz(warp->mask)];
    const uint32_t *lane = warp->lane;
    uint64_t differ = 0;
    LANES differ |= lane[i] ? handles[i] ^ handle : 0;
    if (differ != 0) return false;
    sample->texture = soft_lookup_common(warp, in, handle);
    return sample->texture != NULL;
}

/* false: not all texels are in the range. */
static bool sample_begin(struct sample *sample, const struct soft_view *view) {
    const struct soft_texels *texels = &sample->texture->texels;
    const unsigned bytes = soft_texel_bytes(texels);
    uint64_t size = (texels->layers - 1) * texels->slice + (texels->height - 1) * texels->pitch +
                    (uint64_t)texels->width * bytes;
    uint64_t span = view->high - view->low, begin = texels->address - view->low;
    if (size > span || begin > span - size || begin + size > INT32_MAX) return false;
    sample->source =
        (struct texel_source){texels, view->host, view->shadow, (uint32_t)begin, bytes};
    return true;
}

static enum sample_kind sample_kind_of(const struct soft_texture *texture, uint32_t mode) {
    if ((mode & SOFT_TEXTURE_FLOAT) == 0) return SAMPLE_NUMBER;
    return texture->filters && soft_texture_gives_floats(texture) ? SAMPLE_FILTER : SAMPLE_POINT;
}

/* Layers: of texels by number those that exist, otherwise none is outside. */
static void sample_layers(struct sample *sample, const int32_t *layers) {
    const struct soft_texels *texels = &sample->texture->texels;
    const struct axis_shape shape = {.size = texels->layers, .step = (uint32_t)texels->slice};
    const uint32_t last = (shape.size - 1) * shape.step;
    axis_number(&sample->layers, &shape, layers);
    if (sample->kind == SAMPLE_NUMBER) return;
    const uint32_t *inside = sample->layers.inside[0];
    uint32_t *at = sample->layers.at[0];
    LANES at[i] = inside[i] ? at[i] : last;
}

static void sample_axes(struct sample *sample, struct soft_warp *warp, const uint32_t *slots) {
    const struct soft_texture *texture = sample->texture;
    const struct soft_texels *texels = &texture->texels;
    const uint32_t sizes[3] = {texels->width, texels->height, texels->layers};
    const uint32_t steps[3] = {sample->source.bytes, (uint32_t)texels->pitch,
                               (uint32_t)texels->slice};
    sample->has_border = sample->kind == SAMPLE_NUMBER;
    if (texels->layered) sample_layers(sample, SLOT(int32_t, *slots++));
    for (unsigned d = 0; d < texels->dimensions; d++) {
        const struct axis_shape shape = {sizes[d], steps[d], soft_sample_mode(texture, d),
                                         texture->is_normalised};
        sample->has_border |= shape.mode == CU_TR_ADDRESS_MODE_BORDER;
        if (sample->kind == SAMPLE_NUMBER) {
            axis_number(&sample->axes[d], &shape, SLOT(int32_t, slots[d]));
        } else if (sample->kind == SAMPLE_POINT) {
            axis_point(&sample->axes[d], &shape, SLOT(float, slots[d]));
        } else {
            axis_filter(&sample->axes[d], &shape, SLOT(float, slots[d]));
        }
    }
}

/* The color of what is outside. */
static void sample_border(struct sample *sample) {
    if (!sample->has_border) return;
    if (sample->kind == SAMPLE_NUMBER) {
        soft_texel_zero(sample->texture, sample->border);
    } else {
        soft_texel_border(sample->texture, sample->border);
    }
}

/* Where a corner's texels are in the range. */
static void sample_offsets(const struct sample *sample, const struct soft_warp *warp,
                           unsigned corner, uint32_t offsets[SOFT_LANES]) {
    const struct soft_texels *texels = sample->source.texels;
    const uint32_t begin = sample->source.begin, *lane = warp->lane;
    const uint32_t *x = sample->axes[0].at[corner & 1], *layer = sample->layers.at[0];
    LANES offsets[i] = begin + x[i];
    for (unsigned d = 1; d < texels->dimensions; d++) {
        const uint32_t *at = sample->axes[d].at[corner >> d & 1];
        LANES offsets[i] += at[i];
    }
    if (texels->layered) LANES offsets[i] += layer[i];
    if (warp->partial == 0) return;
    const uint32_t one = offsets[__builtin_ctz(warp->mask)];
    LANES offsets[i] = lane[i] ? offsets[i] : one;
}

/* Which of a corner's texels are not border: all ones. */
static void sample_inside(const struct sample *sample, unsigned corner,
                          uint32_t inside[SOFT_LANES]) {
    const struct soft_texels *texels = sample->source.texels;
    const uint32_t *layer = sample->layers.inside[0];
    LANES inside[i] = UINT32_MAX;
    for (unsigned d = 0; d < texels->dimensions; d++) {
        const uint32_t *is_inside = sample->axes[d].inside[corner >> d & 1];
        LANES inside[i] &= is_inside[i];
    }
    if (texels->layered && sample->kind == SAMPLE_NUMBER) LANES inside[i] &= layer[i];
}

/* ---- one texel ---- */

/* What a promoted channel counts up to. */
static int32_t sample_most(const struct soft_texels *texels) {
    return (1 << (8 * texels->channel_bytes - (texels->channel == SOFT_CHANNEL_SIGNED))) - 1;
}

/* A channel as a read of one texel gives it. A quotient of such numbers, rounded to a double and
 * then to a single, is the quotient of singles. */
static void sample_give(struct sample *sample, const struct texel_words *words, unsigned channel,
                        const uint32_t inside[SOFT_LANES]) {
    const struct soft_texels *texels = sample->source.texels;
    uint32_t *result = sample->result[channel];
    const uint32_t other = sample->border[channel];
    const uint32_t *bits = texel_channel(words, texels, channel, result);
    if (texels->channel == SOFT_CHANNEL_FLOAT && texels->channel_bytes == 2) {
        LANES result[i] = texel_from_half(bits[i]);
    } else if (sample->texture->promotes) {
        const float most = (float)sample_most(texels);
        LANES {
            float part = (float)(int32_t)bits[i] / most;
            result[i] = bits_f32(part < -1 ? -1 : part);
        }
    } else {
        LANES result[i] = bits[i];
    }
    if (sample->has_border) LANES result[i] = inside[i] ? result[i] : other;
}

static bool sample_one(struct sample *sample, const struct soft_warp *warp) {
    uint32_t offsets[SOFT_LANES], inside[SOFT_LANES];
    struct texel_words words;
    sample_offsets(sample, warp, 0, offsets);
    if (!texel_read(&sample->source, offsets, &words)) return false;
    if (sample->has_border) sample_inside(sample, 0, inside);
    for (unsigned c = 0; c < sample->source.texels->channels; c++) {
        sample_give(sample, &words, c, inside);
    }
    return true;
}

/* ---- filters ---- */

/* Divides the weight of a corner, as mix.c does. */
static void sample_divide(uint32_t steps[SAMPLE_CORNERS][SOFT_LANES], unsigned corner,
                          unsigned dimension, const struct axis *axis, bool ties_up) {
    uint32_t *low = steps[corner], *high = steps[corner | 1u << dimension];
    const uint32_t half = SOFT_STEPS / 2 - !ties_up;
    LANES high[i] = (low[i] * axis->weight[i] + half) / SOFT_STEPS;
    LANES low[i] -= high[i];
}

static void sample_weigh(const struct sample *sample, unsigned dimensions,
                         uint32_t steps[SAMPLE_CORNERS][SOFT_LANES]) {
    enum { X = 1, Z = 4 };
    const struct axis *axes = sample->axes;
    LANES steps[0][i] = SOFT_STEPS;
    if (dimensions > 2) sample_divide(steps, 0, 2, &axes[2], true);
    for (unsigned z = 0; z <= (dimensions > 2 ? Z : 0); z += Z) {
        sample_divide(steps, z, 0, &axes[0], true);
        if (dimensions < 2) continue;
        sample_divide(steps, z, 1, &axes[1], false);
        sample_divide(steps, z | X, 1, &axes[1], true);
    }
}

/* The sums of a filter: of floats, or of integers. */
struct sample_sums {
    double floats[SAMPLE_CHANNELS][SOFT_LANES];
    int32_t integers[SAMPLE_CHANNELS][SOFT_LANES];
};

static void sample_add_floats(double sum[SOFT_LANES], const uint32_t bits[SOFT_LANES],
                              const uint32_t steps[SOFT_LANES]) {
    LANES sum[i] += (double)(int32_t)steps[i] * (double)float_f32(bits[i]);
}

/* The least number of a signed channel counts as the next one. */
static void sample_add_integers(int32_t sum[SOFT_LANES], const uint32_t bits[SOFT_LANES],
                                int32_t most, const uint32_t steps[SOFT_LANES]) {
    LANES {
        int32_t texel = (int32_t)bits[i] < -most ? -most : (int32_t)bits[i];
        sum[i] += (int32_t)steps[i] * texel;
    }
}

/* A channel of a corner, in which the border is as the texels are. */
static void sample_add(const struct sample *sample, const uint32_t *bits, unsigned channel,
                       const uint32_t inside[SOFT_LANES], const uint32_t steps[SOFT_LANES],
                       struct sample_sums *sums) {
    const bool promotes = sample->texture->promotes;
    const int32_t most = promotes ? sample_most(sample->source.texels) : 0;
    uint32_t all[SOFT_LANES];
    if (sample->has_border) {
        uint32_t other = sample->border[channel];
        if (promotes) other = (uint32_t)lrint((double)float_f32(other) * most);
        LANES all[i] = inside[i] ? bits[i] : other;
        bits = all;
    }
    if (promotes) {
        sample_add_integers(sums->integers[channel], bits, most, steps);
    } else {
        sample_add_floats(sums->floats[channel], bits, steps);
    }
}

static bool sample_add_corner(const struct sample *sample, const struct soft_warp *warp,
                              unsigned corner, const uint32_t steps[SOFT_LANES],
                              struct sample_sums *sums) {
    const struct soft_texels *texels = sample->source.texels;
    uint32_t offsets[SOFT_LANES], inside[SOFT_LANES], bits[SOFT_LANES];
    struct texel_words words;
    sample_offsets(sample, warp, corner, offsets);
    if (!texel_read(&sample->source, offsets, &words)) return false;
    if (sample->has_border) sample_inside(sample, corner, inside);
    for (unsigned c = 0; c < texels->channels; c++) {
        sample_add(sample, texel_channel(&words, texels, c, bits), c, inside, steps, sums);
    }
    return true;
}

/* To a single, ties away from zero: half of the last place is added, and the places after it are
 * cut off. A NaN is left to the slow path: its payload depends on the order of operands, and it
 * may come from an infinity without weight. */
static bool sample_round(const double sum[SOFT_LANES], const uint32_t lane[SOFT_LANES],
                         uint32_t result[SOFT_LANES]) {
    const uint64_t half = 1ull << 28;
    uint32_t nan = 0;
    LANES {
        double mean = sum[i] / SOFT_STEPS;
        uint64_t bits = bits_f64(mean) + half;
        float rounded = (float)float_f64(bits & ~(2 * half - 1));
        nan |= (rounded != rounded) & lane[i];
        result[i] = bits_f32(rounded);
    }
    return nan == 0;
}

/* As mix.c rounds sums of integers. */
static void sample_round_integers(const struct soft_texels *texels, const int32_t sum[SOFT_LANES],
                                  uint32_t result[SOFT_LANES]) {
    const bool is_signed = texels->channel == SOFT_CHANNEL_SIGNED;
    const bool is_byte = texels->channel_bytes == 1;
    const int32_t times = is_byte ? 257 : 1;
    const float most = is_signed ? 32767 : 65535;
    if (is_byte && is_signed) {
        LANES {
            int32_t rounded = (8 * sum[i] + (sum[i] >> 4) + (sum[i] >> 12) + 4) >> 3;
            result[i] = bits_f32((float)rounded / most);
        }
    } else {
        LANES {
            int32_t rounded = (sum[i] * times + SOFT_STEPS / 2) >> 8;
            result[i] = bits_f32((float)rounded / most);
        }
    }
}

/* Whether a filter has a fast path: not of halves and of sRGB, and not between a row and the border
 * before it. */
static bool sample_filters(const struct soft_texture *texture) {
    const struct soft_texels *texels = &texture->texels;
    bool of_row = texels->dimensions == 1 && !texels->layered;
    return !texture->is_srgb && (texture->promotes || texels->channel_bytes == 4) &&
           !(of_row && soft_sample_mode(texture, 1) == CU_TR_ADDRESS_MODE_BORDER);
}

static bool sample_filter(struct sample *sample, const struct soft_warp *warp) {
    const struct soft_texels *texels = &sample->texture->texels;
    uint32_t steps[SAMPLE_CORNERS][SOFT_LANES];
    struct sample_sums sums;
    for (unsigned c = 0; c < texels->channels; c++) {
        LANES sums.floats[c][i] = 0;
        LANES sums.integers[c][i] = 0;
    }
    sample_weigh(sample, texels->dimensions, steps);
    for (unsigned corner = 0; corner < 1u << texels->dimensions; corner++) {
        if (!sample_add_corner(sample, warp, corner, steps[corner], &sums)) return false;
    }
    for (unsigned c = 0; c < texels->channels; c++) {
        if (sample->texture->promotes) {
            sample_round_integers(texels, sums.integers[c], sample->result[c]);
        } else if (!sample_round(sums.floats[c], warp->lane, sample->result[c])) {
            return false;
        }
    }
    return true;
}

/* ---- the instruction ---- */

/* Whether a texture and an instruction have a fast path. */
static bool sample_is_common(const struct sample *sample, uint32_t mode) {
    const struct soft_texture *texture = sample->texture;
    const struct soft_texels *texels = &texture->texels;
    const bool is_row = texels->dimensions == 1 && !texels->layered;
    if (mode & (SOFT_TEXTURE_OFFSETS | SOFT_TEXTURE_F16 | SOFT_TEXTURE_F16X2)) return false;
    if (texels->cube || texture->is_srgb) return false;
    if (sample->kind == SAMPLE_NUMBER) return texels->in_memory || !is_row;
    return !texels->in_memory && texels->width <= AXIS_SIZE_MAX &&
           texels->height <= AXIS_SIZE_MAX && texels->layers <= AXIS_SIZE_MAX &&
           (sample->kind == SAMPLE_POINT || sample_filters(texture));
}

static void sample_write(const struct sample *sample, struct soft_warp *warp, const uint32_t *slots,
                         unsigned count) {
    static const uint32_t absent[SOFT_LANES];
    const uint32_t *lane = warp->lane;
    for (unsigned c = 0; c < count; c++) {
        const bool has = c < sample->source.texels->channels;
        const uint32_t *result = has ? sample->result[c] : absent;
        uint32_t *d = SLOT(uint32_t, slots[c]);
        if (warp->partial == 0) {
            memcpy(d, result, sizeof absent);
        } else {
            LANES d[i] = lane[i] ? result[i] : d[i];
        }
    }
}

/* Executes tex. false: nothing was done. */
static bool sample_warp(struct soft_warp *warp, const struct soft_instruction *in) {
    const uint32_t *slots = SOFT_OPERANDS(warp, in);
    const unsigned count = soft_texture_data(in->mode);
    struct sample sample;
    if (!sample_find(&sample, warp, in, slots[0]) ||
        !sample_begin(&sample, &warp->views[in->site])) {
        return false;
    }
    sample.kind = sample_kind_of(sample.texture, in->mode);
    if (!sample_is_common(&sample, in->mode)) return false;
    sample_axes(&sample, warp, slots + 1 + count);
    sample_border(&sample);
    if (sample.kind == SAMPLE_FILTER ? !sample_filter(&sample, warp) : !sample_one(&sample, warp)) {
        return false;
    }
    sample_write(&sample, warp, slots + 1, count);
    return true;
}

#endif

/*
 * Formats of texels.
 */
#include "texel.h"

#include <math.h>
#include <string.h>

bool soft_texture_gives_floats(const struct soft_texture *texture) {
    return texture->promotes || texture->texels.channel == SOFT_CHANNEL_FLOAT;
}

float soft_texel_from_half(uint32_t half) {
    uint32_t exponent = half >> 10 & 31, fraction = half & 0x3ff;
    float size = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                 : exponent == 0 ? (float)fraction * 0x1p-24f
                                 : ldexpf((float)(fraction | 0x400), (int)exponent - 25);
    return (half & 0x8000) != 0 ? -size : size;
}

uint16_t soft_texel_half(float number) {
    uint16_t sign = signbit(number) ? 0x8000 : 0;
    double size = fabs((double)number);
    if (number != number) return 0x7fff;
    if (size >= 65520.0) return (uint16_t)(sign | 0x7c00);
    int exponent = 0;
    (void)frexp(size, &exponent);
    if (exponent < -13) exponent = -13; /* from here on numbers are 2^-24 apart */
    /* rint rounds ties to even; a carry into the exponent is what it ought to be. */
    uint32_t units = (uint32_t)rint(ldexp(size, 11 - exponent));
    return (uint16_t)(sign | (units + ((uint32_t)(exponent + 13) << 10)));
}

bool soft_texel_is_srgb(const struct soft_texture *texture, unsigned channel) {
    return texture->is_srgb && channel < (texture->texels.channels > 2 ? 3 : 1);
}

/* The curve of IEC 61966-2-1 as an H200 has it: to 8 bits, and to a multiple of 2^-14. The record
 * has 102 of the 256 numbers, of which these five are one step beside the curve. */
static float from_srgb(uint32_t coded) {
    static const struct {
        uint32_t coded;
        float number;
    } beside[] = {
        {33, 0x1.f4p-7f}, {66, 0x1.cp-5f}, {70, 0x1.f4p-5f}, {249, 0x1.e4p-1f}, {253, 0x1.f8p-1f}};
    for (unsigned i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        if (beside[i].coded == coded) return beside[i].number;
    }
    double part = coded / 255.0;
    double number = part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4);
    int exponent = 0;
    (void)frexp(number, &exponent);
    int places = 8 - exponent < 14 ? 8 - exponent : 14;
    return (float)ldexp(rint(ldexp(number, places)), -places);
}

/* A channel of 8 or 16 bits as a number from 0 or -1 to 1. */
static float texel_promote(const struct soft_texels *texels, uint32_t bits) {
    unsigned width = 8u * texels->channel_bytes;
    if (texels->channel == SOFT_CHANNEL_UNSIGNED) {
        return (float)((double)bits / (double)((1u << width) - 1));
    }
    int32_t number = (int32_t)(bits << (32 - width)) >> (32 - width);
    double part = (double)number / (double)((1 << (width - 1)) - 1);
    return part < -1 ? -1.0f : (float)part;
}

static uint32_t read_channel(const struct soft_texture *texture, const uint8_t *bytes,
                             unsigned channel) {
    const struct soft_texels *texels = &texture->texels;
    unsigned width = 8u * texels->channel_bytes;
    uint32_t bits = 0;
    memcpy(&bits, bytes, texels->channel_bytes);
    if (texels->channel == SOFT_CHANNEL_FLOAT) {
        return width == 16 ? soft_texel_bits(soft_texel_from_half(bits)) : bits;
    }
    if (texture->promotes) {
        bool is_srgb = soft_texel_is_srgb(texture, channel);
        return soft_texel_bits(is_srgb ? from_srgb(bits) : texel_promote(texels, bits));
    }
    if (texels->channel == SOFT_CHANNEL_SIGNED && width < 32) {
        return (uint32_t)((int32_t)(bits << (32 - width)) >> (32 - width));
    }
    return bits;
}

/* An H200 gives 0 for each channel that a texture lacks, the fourth as well. */
static void fill_absent(const struct soft_texture *texture, uint32_t texel[4]) {
    for (unsigned i = texture->texels.channels; i < 4; i++) texel[i] = 0;
}

void soft_texel_read(const struct soft_texture *texture, const uint8_t *bytes, uint32_t texel[4]) {
    for (unsigned i = 0; i < texture->texels.channels; i++) {
        texel[i] = read_channel(texture, bytes + i * texture->texels.channel_bytes, i);
    }
    fill_absent(texture, texel);
}

/* A number as the nearest one that a promoted channel can be. */
static float as_format(const struct soft_texels *texels, float number) {
    bool is_signed = texels->channel == SOFT_CHANNEL_SIGNED;
    double most = (double)((1 << (8 * texels->channel_bytes - is_signed)) - 1);
    double held = fmax(is_signed ? -1 : 0, fmin((double)number, 1));
    return (float)(floor(held * most + 0.5) / most);
}

void soft_texel_border(const struct soft_texture *texture, uint32_t texel[4]) {
    const struct soft_texels *texels = &texture->texels;
    const unsigned width = 8u * texels->channel_bytes;
    bool floats = soft_texture_gives_floats(texture);
    bool is_signed = texels->channel == SOFT_CHANNEL_SIGNED;
    for (unsigned i = 0; i < texels->channels; i++) {
        texel[i] = soft_texel_bits(texture->border[i]);
        if (texture->promotes) texel[i] = soft_texel_bits(as_format(texels, texture->border[i]));
        if (floats) continue;
        /* An H200 takes the color's lowest bits for an integer. */
        uint32_t high = texel[i] << (32 - width);
        texel[i] = is_signed ? (uint32_t)((int32_t)high >> (32 - width)) : high >> (32 - width);
    }
    fill_absent(texture, texel);
}

void soft_texel_zero(const struct soft_texture *texture, uint32_t texel[4]) {
    (void)texture;
    for (unsigned i = 0; i < 4; i++) texel[i] = 0;
}

/*
 * Texel: converts the bytes of a texel to four 32-bit numbers, as an instruction returns them.
 *
 * A number is a single where the texture gives singles, and an integer otherwise. Channels that the
 * texture does not have are 0.
 *
 * Source: CUDA Programming Guide, "Texture Fetching"; CUDA Driver API 13.0, cuTexObjectCreate.
 */
#ifndef SOFT_TEXEL_H
#define SOFT_TEXEL_H

#include "texture.h"

/* Whether a texture gives singles. */
bool soft_texture_gives_floats(const struct soft_texture *texture);

/* Reads a texel from its bytes. */
void soft_texel_read(const struct soft_texture *texture, const uint8_t *bytes, uint32_t texel[4]);

/* Whether a channel has the sRGB curve. As on an H200, that is the first one, and the second and
 * third of four. */
bool soft_texel_is_srgb(const struct soft_texture *texture, unsigned channel);

/* The texel outside a texture in border mode: its color, limited to the format. */
void soft_texel_border(const struct soft_texture *texture, uint32_t texel[4]);

/* A texel of zeros, as outside of linear memory. */
void soft_texel_zero(const struct soft_texture *texture, uint32_t texel[4]);

static inline float soft_texel_float(uint32_t bits) {
    union {
        uint32_t bits;
        float number;
    } both = {.bits = bits};
    return both.number;
}
static inline uint32_t soft_texel_bits(float number) {
    union {
        float number;
        uint32_t bits;
    } both = {.number = number};
    return both.bits;
}

/* A single as half, rounded to the nearest, ties to even; and a half as single. */
uint16_t soft_texel_half(float number);
float soft_texel_from_half(uint32_t half);

#endif

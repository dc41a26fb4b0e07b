/*
 * Texel: the texels that the lanes of a warp read, from their bytes to the channels.
 */
#ifndef SOFT_OPS_TEXEL_H
#define SOFT_OPS_TEXEL_H

#include "float_bits.h"
#include "op_body.h"
#include "ops_lines.h"
#include "texture/texture.h"

/* Where texels are read from. */
struct texel_source {
    const struct soft_texels *texels;
    const uint8_t *host, *shadow; /* of the range; shadow: NULL where writes are not tracked */
    uint32_t begin;               /* of the texels, in the range */
    unsigned bytes;               /* of a texel */
};

/* The texels of a warp: words of each lane. */
struct texel_words {
    uint32_t words[4][SOFT_LANES];
};

/* Whether all bytes of a line of texels are written; the bytes around them in a word of the shadow
 * are looked at, too. */
static bool texel_line_is_written(const uint8_t *shadow, uint32_t first, unsigned bytes) {
    const uint8_t *from = shadow + first / 4;
    const uint32_t count = (first % 4 + SOFT_LANES * bytes + 3) / 4;
    uint8_t written = 0x0f;
    if (bytes >= 4) return soft_all_written(from, 8 * (size_t)bytes);
    for (uint32_t i = 0; i < count; i++) written &= from[i];
    return written == 0x0f;
}

static bool texel_is_written(const uint8_t *shadow, const uint32_t offsets[SOFT_LANES],
                             unsigned bytes) {
    uint8_t written = 0x0f;
    if (bytes < 4) {
        const uint8_t all = (uint8_t)((1u << bytes) - 1);
        for (int i = 0; i < SOFT_LANES; i++) {
            written &= (uint8_t)(shadow[offsets[i] / 4] >> offsets[i] % 4 | ~all);
        }
    } else {
        for (unsigned k = 0; k < bytes / 4; k++) {
            for (int i = 0; i < SOFT_LANES; i++) written &= shadow[offsets[i] / 4 + k];
        }
    }
    return written == 0x0f;
}

#define TEXEL_READ(T, COUNT)                                                                       \
    for (int i = 0; i < SOFT_LANES; i++) {                                                         \
        T texel[COUNT];                                                                            \
        memcpy(texel, source->host + offsets[i], sizeof texel);                                    \
        for (int k = 0; k < COUNT; k++) to->words[k][i] = texel[k];                                \
    }
#define TEXEL_READ_LINE(T)                                                                         \
    LANES {                                                                                        \
        T texel;                                                                                   \
        memcpy(&texel, line + (size_t)i * sizeof texel, sizeof texel);                             \
        to->words[0][i] = texel;                                                                   \
    }

/* Adjacent texels. */
static bool texel_read_line(const struct texel_source *source, uint32_t first,
                            struct texel_words *to) {
    const uint8_t *line = source->host + first;
    if (source->shadow != NULL && !texel_line_is_written(source->shadow, first, source->bytes)) {
        return false;
    }
    switch (source->bytes) {
    case 1:
        TEXEL_READ_LINE(uint8_t)
        break;
    case 2:
        TEXEL_READ_LINE(uint16_t)
        break;
    default:
        TEXEL_READ_LINE(uint32_t)
    }
    return true;
}

/* Reads the texels at the lanes' offsets in the range. false: some were not written. */
static bool texel_read(const struct texel_source *source, const uint32_t offsets[SOFT_LANES],
                       struct texel_words *to) {
    const unsigned bytes = source->bytes;
    if (bytes <= 4 && offsets[1] - offsets[0] == bytes && soft_has_step_32(offsets, bytes) &&
        texel_read_line(source, offsets[0], to)) {
        return true;
    }
    if (source->shadow != NULL && !texel_is_written(source->shadow, offsets, bytes)) return false;
    switch (bytes) {
    case 1:
        TEXEL_READ(uint8_t, 1)
        break;
    case 2:
        TEXEL_READ(uint16_t, 1)
        break;
    case 4:
        TEXEL_READ(uint32_t, 1)
        break;
    case 8:
        TEXEL_READ(uint32_t, 2)
        break;
    default:
        TEXEL_READ(uint32_t, 4)
    }
    return true;
}

/* A channel as it is in memory; integers are extended. Returns words or bits. */
static const uint32_t *texel_channel(const struct texel_words *from,
                                     const struct soft_texels *texels, unsigned channel,
                                     uint32_t bits[SOFT_LANES]) {
    const unsigned width = 8u * texels->channel_bytes, at = channel * width;
    const uint32_t *words = from->words[at / 32];
    const unsigned up = (32 - width - at % 32) & 31, down = (32 - width) & 31;
    if (width == 32) return words;
    if (texels->channel == SOFT_CHANNEL_SIGNED) {
        LANES bits[i] = (uint32_t)((int32_t)(words[i] << up) >> down);
    } else {
        LANES bits[i] = words[i] << up >> down;
    }
    return bits;
}

/* A half as single, as soft_texel_from_half does it. */
static inline uint32_t texel_from_half(uint32_t half) {
    uint32_t exponent = half >> 10 & 31, fraction = half & 0x3ff;
    uint32_t normal = (exponent + 112) << 23 | fraction << 13;
    uint32_t least = bits_f32((float)(int32_t)fraction * 0x1p-24f);
    uint32_t beyond = fraction != 0 ? 0x7fc00000 : 0x7f800000;
    return (half & 0x8000) << 16 | (exponent == 0 ? least : exponent == 31 ? beyond : normal);
}

#endif

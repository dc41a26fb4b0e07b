/*
 * Mix: the weighted sum of texels that a filter gives.
 *
 * A weight is a whole number of 256ths. The weights of a filter are parts of its share, which is
 * 256 or, of two levels of detail, that of the level: the share is divided along z, then along x,
 * then along y. The high side gets its part rounded to the nearest, ties up, and the low side gets
 * the rest; along y ties go down where x is low.
 *
 * The sum is exact, and is rounded once, ties away from zero, to what the format gives:
 *   singles               to a single;
 *   halves                to 11 bits. Before, bits of a texel that are more than 15 places below
 *                         the first bit of the largest one are dropped;
 *   u8, u16, s16          to a multiple of 1/65535 or 1/32767, ties up;
 *   s8                    the sum S in 256ths becomes (8 S + S/16 + S/4096 + 4) / 8 in 32767ths,
 *                         each division rounded down;
 *   sRGB                  as halves, but with 7 places; and a largest texel from 248/256 of the
 *                         next power of two on counts as that power.
 *
 * Source: the 9-bit weights are those of the CUDA Programming Guide, "Texture Fetching"; everything
 * else is fitted to what an H200 gave (fixtures/ptx/cases), and explains all of its filtered
 * results. The record leaves open: 14 for 15, and 237 to 252 for 248, would do as well; and it has
 * no singles whose exponents are far apart. The sum here is one of doubles, which is exact for up
 * to 20 binades.
 */
#ifndef SOFT_TEXTURE_MIX_H
#define SOFT_TEXTURE_MIX_H

#include "texture.h"

enum { SOFT_STEPS = 256, SOFT_MIXTURE_MAX = 32 };

struct soft_mixture {
    unsigned count;
    struct soft_part {
        unsigned steps;
        uint32_t texel[4]; /* singles */
    } parts[SOFT_MIXTURE_MAX];
};

/* The weight of each corner; bit i of a corner's number is set on the high side of dimension i.
 * weights: of the high sides, for each of 1 to 3 dimensions. */
void soft_mix_weigh(unsigned share, const unsigned weights[3], unsigned dimensions,
                    unsigned steps[8]);

/* Adds a texel. Without weight it changes nothing. */
void soft_mix_add(struct soft_mixture *mixture, unsigned steps, const uint32_t texel[4]);

/* The sum, whose weights are SOFT_STEPS together. */
void soft_mix_give(const struct soft_mixture *mixture, const struct soft_texture *texture,
                   uint32_t texel[4]);

#endif

/*
 * Sample: a texture's value at a coordinate: addressing and filtering.
 *
 * The formulae are those of the programming guide. Where it is silent, this does what an H200 does
 * (fixtures/ptx/cases):
 *   - the product of a normalised coordinate and a size is exact, but the coordinate is cut off
 *     after 23 fraction bits (21 or 22 would explain the record as well);
 *   - filters and tld4 round a coordinate to the nearest 256th of a texel, ties up;
 *   - a coordinate that is NaN counts as 0, and so does an infinite one if texels repeat;
 *   - a one-dimensional filter is a two-dimensional one at the upper edge of a single row;
 *   - a layer is an unsigned number, limited to the last layer;
 *   - the weight of the farther level of detail is cut off at 8 bits;
 *   - the missing texel at the corner of a seamless cube is shared by the three there.
 * How weights are rounded, and sums: mix.h.
 *
 * Our choice, which no record confirms: the level of detail of gradients is the binary logarithm of
 * the longer one, in texels of the first level; with integer coordinates the nearest level is read;
 * and tex without a level means level 0, to which bias and bounds apply as well.
 *
 * Source: CUDA Programming Guide, "Texture Fetching" and "Cubemap Textures".
 */
#ifndef SOFT_SAMPLE_H
#define SOFT_SAMPLE_H

#include "reach.h"

struct soft_coordinates {
    double at[3];           /* as the instruction has them; only those of its dimensions are set */
    int32_t offset[3];      /* in texels */
    int64_t layer;          /* of layered ones */
    bool is_integer;        /* texels by number: neither filtered nor scaled */
    double level;           /* of detail, before the texture's own bias and bounds */
    bool has_gradients;     /* from which the level follows */
    double gradients[2][3]; /* if it has some */
};

/* The effective address mode of a dimension, CU_TR_ADDRESS_MODE_: unnormalised texels have only
 * two, and cubes one. */
unsigned soft_sample_mode(const struct soft_texture *texture, unsigned dimension);

/* One texel, or the weighted sum of several. false: it cannot be read; the launch has failed. */
bool soft_sample(struct soft_lookup *lookup, const struct soft_coordinates *coordinates,
                 uint32_t texel[4]);

/* One channel of the four texels that a filter would use, in the order of tld4: counter-clockwise
 * from the lower left. */
bool soft_gather(struct soft_lookup *lookup, const struct soft_coordinates *coordinates,
                 unsigned channel, uint32_t texel[4]);

#endif

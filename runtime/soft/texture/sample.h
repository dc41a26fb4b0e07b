/*
 * Sample: what a texture gives at a coordinate: addressing and filtering.
 *
 * The formulae are those of the programming guide. What it leaves open: a weight is rounded to the
 * nearest of its 256 steps, and so is the product of several, a sum of weighted texels is exact
 * and rounded once, and a coordinate that is not a number counts as 0. The level of detail that
 * follows from gradients is the binary logarithm of the longer one, in texels of the first level;
 * of two levels each is rounded before they are mixed; with integer coordinates the nearest level
 * is read; and tex without a level means level 0, to which bias and bounds apply as well.
 *
 * Source: CUDA Programming Guide, "Texture Fetching" and "Cubemap Textures".
 */
#ifndef SOFT_SAMPLE_H
#define SOFT_SAMPLE_H

#include "reach.h"

struct soft_coordinates {
    double at[3];      /* as the instruction has them */
    int32_t offset[3]; /* in texels */
    int64_t layer;     /* of layered ones; clamped to those there are */
    bool is_integer;   /* texels by number: neither filtered nor scaled */
    double level;      /* of detail, before the texture's own bias and bounds */
    bool has_gradients; /* from which the level follows */
    double gradients[2][3];
};

/* One texel, or the mixture of several. false: it cannot be read; the launch has failed. */
bool soft_sample(struct soft_lookup *lookup, const struct soft_coordinates *coordinates,
                 uint32_t texel[4]);

/* The four texels that a mixture would be made of, of each the same channel, as tld4 orders them:
 * counter-clockwise from the lower left. */
bool soft_gather(struct soft_lookup *lookup, const struct soft_coordinates *coordinates,
                 unsigned channel, uint32_t texel[4]);

#endif

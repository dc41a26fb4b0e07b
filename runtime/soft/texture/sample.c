/*
 * Addressing and filtering.
 */
#include "sample.h"

#include "cube.h"
#include "mix.h"
#include "texel.h"

#include <math.h>

/* The position of a sample in a texture: within a face, if it has several. */
struct spot {
    double at[3]; /* in texels */
    unsigned dimensions;
    uint32_t size[3];
    uint64_t face;
    const struct soft_coordinates *coordinates;
};

/* The largest integer not above, limited to the range of texel numbers. */
static int64_t floor_of(double x) {
    const double most = 0x1p40;
    if (x != x) return 0;
    return (int64_t)floor(x < -most ? -most : x > most ? most : x);
}

static int64_t sample_modulo(int64_t x, int64_t n) {
    int64_t rest = x % n;
    return rest < 0 ? rest + n : rest;
}

/* The texel of a number in one dimension; -1: the border. */
static int64_t sample_address_of(int64_t index, uint32_t size, unsigned mode) {
    int64_t n = size;
    switch (mode) {
    case CU_TR_ADDRESS_MODE_WRAP:
        return sample_modulo(index, n);
    case CU_TR_ADDRESS_MODE_MIRROR:
        index = sample_modulo(index, 2 * n);
        return index < n ? index : 2 * n - 1 - index;
    case CU_TR_ADDRESS_MODE_BORDER:
        return index >= 0 && index < n ? index : -1;
    default:
        return index < 0 ? 0 : index < n ? index : n - 1;
    }
}

unsigned soft_sample_mode(const struct soft_texture *texture, unsigned dimension) {
    unsigned mode = texture->modes[dimension];
    if (texture->texels.cube) return CU_TR_ADDRESS_MODE_CLAMP;
    if (texture->is_normalised || mode == CU_TR_ADDRESS_MODE_BORDER) return mode;
    return CU_TR_ADDRESS_MODE_CLAMP;
}

static bool read_texel(struct soft_lookup *lookup, const struct spot *spot, const int64_t index[3],
                       uint32_t texel[4]) {
    const struct soft_texture *texture = lookup->texture;
    unsigned bytes = soft_texel_bytes(lookup->texels);
    uint64_t at[3] = {0, 0, 0};
    struct soft_place place;
    for (unsigned i = 0; i < spot->dimensions; i++) {
        int64_t found = sample_address_of(index[i], spot->size[i], soft_sample_mode(texture, i));
        if (found < 0) {
            soft_texel_border(texture, texel);
            return true;
        }
        at[i] = (uint64_t)found;
    }
    if (!soft_lookup_place(lookup, spot->face + at[2], at[1], at[0] * bytes, bytes,
                           SOFT_ACCESS_READ, &place)) {
        return false;
    }
    soft_texel_read(texture, place.host, texel);
    return true;
}

/* Whether an H200 finds texels by such numbers: with a single number only those of memory, and only
 * layers that exist. */
static bool has_numbers(const struct soft_lookup *lookup,
                        const struct soft_coordinates *coordinates) {
    const struct soft_texels *texels = lookup->texels;
    if (!texels->layered) return lookup->texture->texels.in_memory || texels->dimensions > 1;
    uint64_t layers = texels->cube ? texels->layers / 6 : texels->layers;
    return coordinates->layer >= 0 && (uint64_t)coordinates->layer < layers;
}

/* Texels by number: outside there are zeros. */
static bool sample_fetch(struct soft_lookup *lookup, const struct soft_coordinates *coordinates,
                         const struct spot *spot, uint32_t texel[4]) {
    const struct soft_texture *texture = lookup->texture;
    if (!has_numbers(lookup, coordinates)) {
        soft_texel_zero(texture, texel);
        return true;
    }
    unsigned bytes = soft_texel_bytes(lookup->texels);
    uint64_t at[3] = {0, 0, 0};
    struct soft_place place;
    for (unsigned i = 0; i < spot->dimensions; i++) {
        int64_t index = floor_of(coordinates->at[i]) + coordinates->offset[i];
        if (index < 0 || index >= (int64_t)spot->size[i]) {
            soft_texel_zero(texture, texel);
            return true;
        }
        at[i] = (uint64_t)index;
    }
    if (!soft_lookup_place(lookup, spot->face + at[2], at[1], at[0] * bytes, bytes,
                           SOFT_ACCESS_READ, &place)) {
        return false;
    }
    soft_texel_read(texture, place.host, texel);
    return true;
}

/* A normalised coordinate in texels. It has 23 fraction bits, later ones are cut off; in modes that
 * repeat the texture, only the part within a period counts. For infinity that is NaN. */
static double sample_scaled(double at, uint32_t size, unsigned mode) {
    double fixed = floor(at * 0x1p23) / 0x1p23;
    if (mode == CU_TR_ADDRESS_MODE_WRAP) fixed -= floor(fixed);
    if (mode == CU_TR_ADDRESS_MODE_MIRROR) fixed -= 2 * floor(fixed / 2);
    return fixed * size;
}

static struct spot spot_of(const struct soft_lookup *lookup,
                           const struct soft_coordinates *coordinates) {
    const struct soft_texture *texture = lookup->texture;
    const struct soft_texels *texels = lookup->texels;
    struct spot spot = {.dimensions = texels->dimensions,
                        .size = {texels->width, texels->height, texels->layers},
                        .coordinates = coordinates};
    bool scales = (texture->is_normalised || texels->cube) && !coordinates->is_integer;
    const double *at = coordinates->at;
    double on_face[2];
    uint64_t layers = texels->cube ? texels->layers / 6 : texels->layers;
    if (texels->layered) { /* as an unsigned number, a negative one is large */
        uint32_t layer = (uint32_t)coordinates->layer;
        spot.face = layer < layers ? layer : layers - 1;
    }
    if (texels->cube) {
        spot.face = spot.face * 6 + soft_cube_place(at, on_face);
        at = on_face;
    }
    for (unsigned i = 0; i < spot.dimensions; i++) {
        const double most = 0x1p40;
        double x =
            scales ? sample_scaled(at[i], spot.size[i], soft_sample_mode(texture, i)) : at[i];
        spot.at[i] = x != x ? 0 : fmax(-most, fmin(x, most));
    }
    return spot;
}

/* ---- filters ---- */

/* The texel on the low side of a sample; weight: of the one on the high side, in 256ths. */
static int64_t low_side(double at, unsigned *weight) {
    double moved = floor((at - 0.5) * SOFT_STEPS + 0.5), index = floor(moved / SOFT_STEPS);
    *weight = (unsigned)(moved - index * SOFT_STEPS);
    return (int64_t)index;
}

/* If texels repeat at the edge, a sample before the first or after the last one has that texel
 * alone. */
static int64_t held_inside(int64_t low, uint32_t size, unsigned *weight) {
    if (low >= 0 && low < (int64_t)size - 1) return low;
    *weight = 0;
    return low < 0 ? 0 : (int64_t)size - 1;
}

static bool add_texel(struct soft_lookup *lookup, const struct spot *spot, const int64_t index[3],
                      unsigned steps, struct soft_mixture *mixture) {
    uint32_t texel[4];
    /* A texel without weight is not read: a neighbour may be about to write it. */
    if (steps == 0) return true;
    if (!read_texel(lookup, spot, index, texel)) return false;
    soft_mix_add(mixture, steps, texel);
    return true;
}

/* A one-dimensional texture is a single row, before which there may be a border: a sample is
 * between both. mode: of the second dimension. */
static bool add_of_row(struct soft_lookup *lookup, const struct spot *spot, const int64_t index[3],
                       unsigned steps, bool is_high, struct soft_mixture *mixture) {
    unsigned row = (steps + is_high) / 2;
    uint32_t border[4];
    if (soft_sample_mode(lookup->texture, 1) != CU_TR_ADDRESS_MODE_BORDER) row = steps;
    soft_texel_border(lookup->texture, border);
    soft_mix_add(mixture, steps - row, border);
    return add_texel(lookup, spot, index, row, mixture);
}

/* A texel outside of a face is on the next face. At the corner of a cube there is none: the three
 * adjacent texels share its weight, and this face's gets the remainder. */
static bool add_of_cube(struct soft_lookup *lookup, const struct spot *spot, const int64_t index[3],
                        unsigned steps, struct soft_mixture *mixture) {
    int64_t size = spot->size[0], inside[3] = {index[0], index[1], 0};
    unsigned outside = 0, third = (2 * steps + 3) / 6;
    for (unsigned i = 0; i < 2; i++) {
        inside[i] = index[i] < 0 ? 0 : index[i] < size ? index[i] : size - 1;
        outside += inside[i] != index[i];
    }
    for (unsigned i = 0; i < 2; i++) {
        struct spot beside = *spot;
        int64_t there[3] = {inside[0], inside[1], 0};
        if (inside[i] == index[i]) continue;
        there[i] = index[i];
        unsigned face = (unsigned)(spot->face % 6), share = outside == 2 ? third : steps;
        beside.face = spot->face - face + soft_cube_beside(face, spot->size[0], there);
        if (!add_texel(lookup, &beside, there, share, mixture)) return false;
        steps -= share;
    }
    return add_texel(lookup, spot, inside, steps, mixture);
}

static bool add_filtered(struct soft_lookup *lookup, const struct spot *spot, unsigned share,
                         struct soft_mixture *mixture) {
    const struct soft_texture *texture = lookup->texture;
    const struct soft_texels *texels = lookup->texels;
    bool seamless = texels->cube && texture->is_seamless;
    unsigned weights[3] = {0, 0, 0}, steps[8];
    int64_t low[3] = {0, 0, 0};
    for (unsigned i = 0; i < spot->dimensions; i++) {
        low[i] = low_side(spot->at[i], &weights[i]) + spot->coordinates->offset[i];
        if (soft_sample_mode(texture, i) == CU_TR_ADDRESS_MODE_CLAMP && !seamless) {
            low[i] = held_inside(low[i], spot->size[i], &weights[i]);
        }
    }
    soft_mix_weigh(share, weights, spot->dimensions, steps);
    for (unsigned corner = 0; corner < 1u << spot->dimensions; corner++) {
        int64_t index[3] = {0, 0, 0};
        bool ok;
        for (unsigned i = 0; i < spot->dimensions; i++) index[i] = low[i] + (corner >> i & 1);
        if (seamless) {
            ok = add_of_cube(lookup, spot, index, steps[corner], mixture);
        } else if (spot->dimensions == 1 && !texels->layered) {
            ok = add_of_row(lookup, spot, index, steps[corner], corner == 1, mixture);
        } else {
            ok = add_texel(lookup, spot, index, steps[corner], mixture);
        }
        if (!ok) return false;
    }
    return true;
}

/* The texel at a sample of the lookup's current level. */
static bool point_of(struct soft_lookup *lookup, const struct spot *spot, uint32_t texel[4]) {
    const struct soft_coordinates *coordinates = spot->coordinates;
    int64_t index[3] = {0, 0, 0};
    if (coordinates->is_integer || lookup->texture->texels.in_memory) {
        return sample_fetch(lookup, coordinates, spot, texel);
    }
    for (unsigned i = 0; i < spot->dimensions; i++) {
        index[i] = floor_of(spot->at[i]) + coordinates->offset[i];
    }
    return read_texel(lookup, spot, index, texel);
}

/* Adds the texels of the lookup's current level. */
static bool add_level(struct soft_lookup *lookup, const struct soft_coordinates *coordinates,
                      unsigned share, struct soft_mixture *mixture) {
    struct spot spot = spot_of(lookup, coordinates);
    uint32_t texel[4];
    if (lookup->texture->filters) return add_filtered(lookup, &spot, share, mixture);
    if (!point_of(lookup, &spot, texel)) return false;
    soft_mix_add(mixture, share, texel);
    return true;
}

/* ---- levels of detail ---- */

/* The length of a gradient in texels of the first level. */
static double reach_of(const struct soft_texture *texture, const double at[3],
                       const double gradient[3]) {
    const struct soft_texels *texels = &texture->texels;
    const uint32_t size[3] = {texels->width, texels->height, texels->layers};
    double moved[3] = {gradient[0], gradient[1], gradient[2]}, sum = 0;
    if (texels->cube) { /* of the quotient that says where on the face */
        unsigned face = soft_cube_face(at);
        double here[3], there[3];
        soft_cube_turn(face, at, here);
        soft_cube_turn(face, gradient, there);
        for (int i = 0; i < 2; i++) {
            moved[i] = (there[i] * here[2] - here[i] * there[2]) / (here[2] * here[2]) / 2;
        }
    }
    for (unsigned i = 0; i < texels->dimensions; i++) {
        double scaled = moved[i] * (texture->is_normalised || texels->cube ? size[i] : 1);
        sum += scaled * scaled;
    }
    return sqrt(sum);
}

/* The level of a sample, limited to existing levels. */
static double sample_level_of(const struct soft_texture *texture,
                              const struct soft_coordinates *coordinates) {
    double level = coordinates->level, most = texture->levels - 1;
    if (coordinates->has_gradients) {
        double across = reach_of(texture, coordinates->at, coordinates->gradients[0]);
        double down = reach_of(texture, coordinates->at, coordinates->gradients[1]);
        level = log2(across > down ? across : down);
    }
    if (level != level) level = 0;
    level += texture->level_bias;
    if (level > texture->most_level) level = texture->most_level;
    if (level < texture->least_level) level = texture->least_level;
    return level < 0 ? 0 : level > most ? most : level;
}

bool soft_sample(struct soft_lookup *lookup, const struct soft_coordinates *coordinates,
                 uint32_t texel[4]) {
    const struct soft_texture *texture = lookup->texture;
    struct soft_mixture mixture;
    mixture.count = 0; /* its parts need no value, and are large */
    double level = texture->levels > 1 ? sample_level_of(texture, coordinates) : 0;
    bool mixes = texture->levels > 1 && texture->mixes_levels;
    if (coordinates->is_integer || texture->texels.in_memory ||
        !soft_texture_gives_floats(texture) || (!texture->filters && !mixes)) {
        if (texture->levels > 1) soft_lookup_level(lookup, (unsigned)floor(level + 0.5));
        struct spot spot = spot_of(lookup, coordinates);
        return point_of(lookup, &spot, texel);
    }
    unsigned whole = (unsigned)floor(mixes ? level * SOFT_STEPS : floor(level + 0.5) * SOFT_STEPS);
    unsigned near = whole / SOFT_STEPS, far = whole % SOFT_STEPS;
    for (unsigned i = 0; i < 2; i++) {
        unsigned share = i == 0 ? SOFT_STEPS - far : far;
        if (share == 0) continue; /* it is not read */
        if (texture->levels > 1) soft_lookup_level(lookup, near + i);
        if (!add_level(lookup, coordinates, share, &mixture)) return false;
    }
    soft_mix_give(&mixture, texture, texel);
    return true;
}

bool soft_gather(struct soft_lookup *lookup, const struct soft_coordinates *coordinates,
                 unsigned channel, uint32_t texel[4]) {
    static const int order[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    struct spot spot = spot_of(lookup, coordinates);
    for (unsigned i = 0; i < 4; i++) {
        int64_t index[3] = {0, 0, 0};
        uint32_t found[4];
        for (unsigned k = 0; k < 2; k++) {
            unsigned weight;
            index[k] = low_side(spot.at[k], &weight) + coordinates->offset[k] + order[i][k];
        }
        if (!read_texel(lookup, &spot, index, found)) return false;
        texel[i] = found[channel];
    }
    return true;
}

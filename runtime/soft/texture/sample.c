/*
 * Addressing and filtering.
 */
#include "sample.h"

#include "texel.h"

#include <math.h>

enum { STEPS = 256 }; /* of a weight: 9 bits, 8 of them behind the point, so that it can be 1 */

/* Where a sample lies in a texture: within a face, if that has several. */
struct spot {
    double at[3]; /* in texels */
    unsigned dimensions;
    uint32_t size[3];
    uint64_t face;
};

/* The largest integer not above, held within what texels could be numbered by. */
static int64_t floor_of(double x) {
    const double most = 0x1p40;
    if (x != x) return 0;
    return (int64_t)floor(x < -most ? -most : x > most ? most : x);
}

static int64_t modulo(int64_t x, int64_t n) {
    int64_t rest = x % n;
    return rest < 0 ? rest + n : rest;
}

/* The texel of a number in one dimension; -1: the border. */
static int64_t address_of(int64_t index, uint32_t size, unsigned mode) {
    int64_t n = size;
    switch (mode) {
    case CU_TR_ADDRESS_MODE_WRAP:
        return modulo(index, n);
    case CU_TR_ADDRESS_MODE_MIRROR:
        index = modulo(index, 2 * n);
        return index < n ? index : 2 * n - 1 - index;
    case CU_TR_ADDRESS_MODE_BORDER:
        return index >= 0 && index < n ? index : -1;
    default:
        return index < 0 ? 0 : index < n ? index : n - 1;
    }
}

static bool read_texel(struct soft_lookup *lookup, const struct spot *spot, const int64_t index[3],
                       uint32_t texel[4]) {
    const struct soft_texture *texture = lookup->texture;
    unsigned bytes = soft_texel_bytes(lookup->texels);
    uint64_t at[3] = {0, 0, 0};
    struct soft_place place;
    for (unsigned i = 0; i < spot->dimensions; i++) {
        /* Texels without a scale have only these two modes. */
        unsigned mode = texture->modes[i];
        if (!texture->is_normalised && mode != CU_TR_ADDRESS_MODE_BORDER) {
            mode = CU_TR_ADDRESS_MODE_CLAMP;
        }
        if (texture->texels.cube) mode = CU_TR_ADDRESS_MODE_CLAMP;
        int64_t found = address_of(index[i], spot->size[i], mode);
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

/* Whether an H200 finds texels by such numbers: by one number alone only those of memory, and of
 * layers only those that there are. */
static bool has_numbers(const struct soft_lookup *lookup,
                        const struct soft_coordinates *coordinates) {
    const struct soft_texels *texels = lookup->texels;
    if (!texels->layered) return lookup->texture->texels.in_memory || texels->dimensions > 1;
    uint64_t layers = texels->cube ? texels->layers / 6 : texels->layers;
    return coordinates->layer >= 0 && (uint64_t)coordinates->layer < layers;
}

/* Texels by number: outside there are zeros. */
static bool fetch(struct soft_lookup *lookup, const struct soft_coordinates *coordinates,
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

/* The face of a cube that a direction meets. */
static unsigned face_of(const double direction[3]) {
    double x = direction[0], y = direction[1], z = direction[2];
    if (fabs(x) >= fabs(y) && fabs(x) >= fabs(z)) return x >= 0 ? 0 : 1;
    if (fabs(y) >= fabs(z)) return y >= 0 ? 2 : 3;
    return z >= 0 ? 4 : 5;
}

/* A vector seen from a face: across it, down it, and away from the centre. */
static void turn_to(unsigned face, const double v[3], double turned[3]) {
    double x = v[0], y = v[1], z = v[2];
    const double all[6][3] = {{-z, -y, x}, {z, -y, -x}, {x, z, y},
                              {x, -z, -y}, {x, -y, z},  {-x, -y, -z}};
    for (int i = 0; i < 3; i++) turned[i] = all[face][i];
}

/* Where on its face a direction meets a cube: from 0 to 1 in both dimensions. */
static uint64_t place_on_face(const double direction[3], double at[2]) {
    unsigned face = face_of(direction);
    double turned[3];
    turn_to(face, direction, turned);
    for (int i = 0; i < 2; i++) at[i] = (turned[i] / turned[2] + 1) / 2;
    return face;
}

static struct spot spot_of(const struct soft_lookup *lookup,
                           const struct soft_coordinates *coordinates) {
    const struct soft_texture *texture = lookup->texture;
    const struct soft_texels *texels = lookup->texels;
    struct spot spot = {.dimensions = texels->dimensions,
                        .size = {texels->width, texels->height, texels->layers}};
    bool scales = texture->is_normalised && !coordinates->is_integer;
    const double *at = coordinates->at;
    double on_face[2];
    uint64_t layers = texels->cube ? texels->layers / 6 : texels->layers;
    int64_t layer = coordinates->layer;
    if (texels->layered) {
        layer = layer < 0 ? 0 : layer;
        spot.face = (uint64_t)layer < layers ? (uint64_t)layer : layers - 1;
    }
    if (texels->cube) {
        spot.face = spot.face * 6 + place_on_face(at, on_face);
        at = on_face;
        scales = true;
    }
    for (unsigned i = 0; i < spot.dimensions; i++) {
        spot.at[i] = scales ? at[i] * spot.size[i] : at[i];
    }
    return spot;
}

/* The texel on the low side of a sample, and the weight of the one on the high side. */
static int64_t low_side(double at, double *weight) {
    double moved = at - 0.5;
    int64_t index = floor_of(moved);
    double part = moved - floor(moved); /* NaN where there is none */
    *weight = part == part ? floor(part * STEPS + 0.5) / STEPS : 0;
    return index;
}

/* The weight of each corner, in steps. A product of two is rounded to a step, and the corner
 * beside it gets what is left. */
static void weigh(const struct spot *spot, const double weights[3], int steps[8]) {
    steps[0] = STEPS;
    for (unsigned i = 0; i < spot->dimensions; i++) {
        int high = (int)(weights[i] * STEPS);
        for (unsigned corner = 0; corner < 1u << i; corner++) {
            int part = (steps[corner] * high + STEPS / 2) / STEPS;
            steps[corner | 1u << i] = part;
            steps[corner] -= part;
        }
    }
}

static bool mix(struct soft_lookup *lookup, const struct soft_coordinates *coordinates,
                const struct spot *spot, uint32_t texel[4]) {
    double sum[4] = {0, 0, 0, 0}, weights[3] = {0, 0, 0};
    int64_t low[3] = {0, 0, 0};
    int steps[8];
    for (unsigned i = 0; i < spot->dimensions; i++) {
        low[i] = low_side(spot->at[i], &weights[i]) + coordinates->offset[i];
    }
    weigh(spot, weights, steps);
    for (unsigned corner = 0; corner < 1u << spot->dimensions; corner++) {
        int64_t index[3] = {0, 0, 0};
        uint32_t found[4];
        for (unsigned i = 0; i < spot->dimensions; i++) index[i] = low[i] + (corner >> i & 1);
        /* A texel without weight is not read: it may be what a neighbour is about to write. */
        if (steps[corner] == 0) continue;
        if (!read_texel(lookup, spot, index, found)) return false;
        for (unsigned i = 0; i < 4; i++) {
            sum[i] += (double)steps[corner] / STEPS * (double)soft_texel_float(found[i]);
        }
    }
    for (unsigned i = 0; i < 4; i++) {
        texel[i] = soft_texel_bits((float)soft_texel_mixed(lookup->texture, sum[i]));
    }
    return true;
}

/* A sample of the level that the lookup is at. */
static bool sample_level(struct soft_lookup *lookup, const struct soft_coordinates *coordinates,
                         uint32_t texel[4]) {
    const struct soft_texture *texture = lookup->texture;
    struct spot spot = spot_of(lookup, coordinates);
    if (coordinates->is_integer || texture->texels.in_memory) {
        return fetch(lookup, coordinates, &spot, texel);
    }
    if (texture->filters && soft_texture_gives_floats(texture)) {
        return mix(lookup, coordinates, &spot, texel);
    }
    int64_t index[3] = {0, 0, 0};
    for (unsigned i = 0; i < spot.dimensions; i++) {
        index[i] = floor_of(spot.at[i]) + coordinates->offset[i];
    }
    return read_texel(lookup, &spot, index, texel);
}

/* ---- levels of detail ---- */

/* How far a gradient goes in texels of the first level. */
static double reach_of(const struct soft_texture *texture, const double at[3],
                       const double gradient[3]) {
    const struct soft_texels *texels = &texture->texels;
    const uint32_t size[3] = {texels->width, texels->height, texels->layers};
    double moved[3] = {gradient[0], gradient[1], gradient[2]}, sum = 0;
    if (texels->cube) { /* of the quotient that says where on the face */
        unsigned face = face_of(at);
        double here[3], there[3];
        turn_to(face, at, here);
        turn_to(face, gradient, there);
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

/* The level that a sample is to be of, of those there are. */
static double level_of(const struct soft_texture *texture,
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

/* Two levels, of which the farther one has a weight. */
static bool mix_levels(struct soft_lookup *lookup, const struct soft_coordinates *coordinates,
                       double level, uint32_t texel[4]) {
    unsigned near = (unsigned)floor(level);
    double weight = floor((level - near) * STEPS + 0.5) / STEPS;
    uint32_t found[2][4];
    for (unsigned i = 0; i < 2; i++) {
        if ((i == 0 ? 1 - weight : weight) == 0) continue; /* it is not read */
        soft_lookup_level(lookup, near + i);
        if (!sample_level(lookup, coordinates, found[i])) return false;
        if (weight == i) {
            for (int c = 0; c < 4; c++) texel[c] = found[i][c];
            return true;
        }
    }
    for (int c = 0; c < 4; c++) {
        double sum = (1 - weight) * (double)soft_texel_float(found[0][c]) +
                     weight * (double)soft_texel_float(found[1][c]);
        texel[c] = soft_texel_bits((float)sum);
    }
    return true;
}

bool soft_sample(struct soft_lookup *lookup, const struct soft_coordinates *coordinates,
                 uint32_t texel[4]) {
    const struct soft_texture *texture = lookup->texture;
    if (texture->levels == 1) return sample_level(lookup, coordinates, texel);
    double level = level_of(texture, coordinates);
    bool mixes = texture->mixes_levels && soft_texture_gives_floats(texture);
    if (mixes && !coordinates->is_integer) return mix_levels(lookup, coordinates, level, texel);
    soft_lookup_level(lookup, (unsigned)floor(level + 0.5));
    return sample_level(lookup, coordinates, texel);
}

bool soft_gather(struct soft_lookup *lookup, const struct soft_coordinates *coordinates,
                 unsigned channel, uint32_t texel[4]) {
    static const int order[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    struct spot spot = spot_of(lookup, coordinates);
    for (unsigned i = 0; i < 4; i++) {
        int64_t index[3] = {0, 0, 0};
        uint32_t found[4];
        for (unsigned k = 0; k < 2; k++) {
            index[k] = floor_of(spot.at[k] - 0.5) + coordinates->offset[k] + order[i][k];
        }
        if (!read_texel(lookup, &spot, index, found)) return false;
        texel[i] = found[channel];
    }
    return true;
}

/*
 * The expected results of textures, computed by recursion over the dimensions, in double, from the
 * formulae of the CUDA programming guide, "Texture Fetching".
 *
 *     nearest: T[floor(x)]      linear: (1 - a) T[i] + a T[i + 1], i = floor(x - 0.5),
 *                                       a = the fraction, with 8 fraction bits;
 *                                       of several dimensions so has the product
 *
 * As on an H200 (fixtures/ptx/cases), products are taken along z, x and y in turn, and a
 * one-dimensional texture is a two-dimensional one whose other rows are outside.
 */
#ifndef CORPUS_IMAGES_H
#define CORPUS_IMAGES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum images_mode { IMAGES_WRAP, IMAGES_CLAMP, IMAGES_MIRROR, IMAGES_BORDER };

struct images_oracle {
    const float *texels; /* channels numbers a texel, the first dimension innermost */
    int channels, dimensions;
    int size[3];
    enum images_mode mode[3];
    bool linear, normalised, layered;
    float border[4];
};

static inline enum images_mode images_rule(const struct images_oracle *o, int d) {
    enum images_mode mode = o->mode[d];
    return o->normalised || mode == IMAGES_BORDER ? mode : IMAGES_CLAMP;
}

/* Along how many dimensions a filter goes. */
static inline int images_turns(const struct images_oracle *o) {
    return o->linear && o->dimensions == 1 && !o->layered ? 2 : o->dimensions;
}

/* One channel of a texel, by the rule of its dimension's mode. */
static inline double images_texel(const struct images_oracle *o, const int at[3], int channel) {
    int inside[3] = {0, 0, 0};
    for (int d = 0; d < images_turns(o); d++) {
        int n = o->size[d], i = at[d];
        enum images_mode mode = images_rule(o, d);
        if (mode == IMAGES_BORDER && (i < 0 || i >= n)) return (double)o->border[channel];
        if (mode == IMAGES_CLAMP) i = i < 0 ? 0 : i >= n ? n - 1 : i;
        while (mode == IMAGES_WRAP && i < 0) i += n;
        while (mode == IMAGES_WRAP && i >= n) i -= n;
        while (mode == IMAGES_MIRROR && (i < 0 || i >= n)) i = i < 0 ? -1 - i : 2 * n - 1 - i;
        inside[d] = i;
    }
    int place = (inside[2] * (o->dimensions > 1 ? o->size[1] : 1) + inside[1]) * o->size[0];
    return (double)o->texels[(place + inside[0]) * o->channels + channel];
}

/* steps: how many of 256 are left for these texels; a share of them is whole. */
static inline double images_along(const struct images_oracle *o, const double x[3], int turn,
                                  double steps, bool beyond_x, int at[3], int channel) {
    static const int order[4][3] = {{0}, {0}, {0, 1}, {2, 0, 1}};
    int turns = images_turns(o), d = order[turns][turn % 3];
    if (turn == turns) return steps / 256 * images_texel(o, at, channel);
    if (!o->linear) {
        at[d] = (int)floor(x[d]);
        return images_along(o, x, turn + 1, steps, false, at, channel);
    }
    double low = floor(x[d] - 0.5), weight = nearbyint((x[d] - 0.5 - low) * 256) / 256;
    if (images_rule(o, d) == IMAGES_CLAMP && (low < 0 || low >= o->size[d] - 1)) {
        low = low < 0 ? 0 : o->size[d] - 1;
        weight = 0;
    }
    double share = steps * weight;
    share = d == 1 && !beyond_x ? ceil(share - 0.5) : floor(share + 0.5);
    at[d] = (int)low;
    double one = images_along(o, x, turn + 1, steps - share, d == 1 && beyond_x, at, channel);
    at[d] = (int)low + 1;
    return one + images_along(o, x, turn + 1, share, d == 0, at, channel);
}

static inline double images_sample(const struct images_oracle *o, const float coordinates[3],
                                   int channel) {
    double x[3] = {0, 0, 0};
    int at[3] = {0, 0, 0};
    for (int d = 0; d < o->dimensions; d++) {
        x[d] = (double)coordinates[d] * (o->normalised ? o->size[d] : 1);
    }
    return images_along(o, x, 0, 256, false, at, channel);
}

#endif

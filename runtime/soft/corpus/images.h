/*
 * What a texture gives, computed a second time: by recursion over the dimensions, in double, from
 * the formulae of the CUDA programming guide, "Texture Fetching".
 *
 *     nearest: T[floor(x)]      linear: (1 - a) T[i] + a T[i + 1], i = floor(x - 0.5),
 *                                       a = the fraction, with 8 bits behind the point;
 *                                       of several dimensions so has the product
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
    bool linear, normalised;
    float border[4];
};

/* One channel of a texel, by the rule of its dimension's mode; axis counts down. */
static inline double images_texel(const struct images_oracle *o, const int at[3], int channel) {
    int inside[3] = {0, 0, 0};
    for (int d = 0; d < o->dimensions; d++) {
        int n = o->size[d], i = at[d];
        enum images_mode mode = o->mode[d];
        if (!o->normalised && (mode == IMAGES_WRAP || mode == IMAGES_MIRROR)) mode = IMAGES_CLAMP;
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

/* steps: how many of 256 are left for these texels; a share of them is whole, as on an H200. */
static inline double images_along(const struct images_oracle *o, const double x[3], int d,
                                  double steps, int at[3], int channel) {
    if (d == o->dimensions) return steps / 256 * images_texel(o, at, channel);
    if (!o->linear) {
        at[d] = (int)floor(x[d]);
        return images_along(o, x, d + 1, steps, at, channel);
    }
    double low = floor(x[d] - 0.5), weight = nearbyint((x[d] - 0.5 - low) * 256) / 256;
    double share = floor(steps * weight + 0.5);
    at[d] = (int)low;
    double one = images_along(o, x, d + 1, steps - share, at, channel);
    at[d] = (int)low + 1;
    return one + images_along(o, x, d + 1, share, at, channel);
}

static inline double images_sample(const struct images_oracle *o, const float coordinates[3],
                                   int channel) {
    double x[3] = {0, 0, 0};
    int at[3] = {0, 0, 0};
    for (int d = 0; d < o->dimensions; d++) {
        x[d] = (double)coordinates[d] * (o->normalised ? o->size[d] : 1);
    }
    return images_along(o, x, 0, 256, at, channel);
}

#endif

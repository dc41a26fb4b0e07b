/*
 * Axis: the texels of a warp's samples along one dimension, by the formulae of texture/sample.c.
 *
 * Lanes that do not run get texels of the texture, too, which makes their reads harmless.
 */
#ifndef SOFT_OPS_AXIS_H
#define SOFT_OPS_AXIS_H

#include "op_body.h"
#include "texture/mix.h"

#include <math.h>

/* The largest size: positions in 256ths of a texel, and twice that, have 31 bits. */
enum { AXIS_SIZE_MAX = 1 << 20 };

/* A dimension, as a sample goes along it: a mode is the effective one. */
struct axis_shape {
    uint32_t size, step; /* texels, and the bytes from one to the next */
    unsigned mode;       /* CU_TR_ADDRESS_MODE_ */
    bool scales;         /* coordinates are parts of the size */
};

/* The texels on the low and, of a filter, the high side of each lane's sample: where they begin;
 * all ones, or 0 for the border; and the weight of the high side in SOFT_STEPS. */
struct axis {
    uint32_t at[2][SOFT_LANES], inside[2][SOFT_LANES], weight[SOFT_LANES];
};

/* Texels by number. */
static void axis_number(struct axis *axis, const struct axis_shape *shape, const int32_t *numbers) {
    const uint32_t size = shape->size, step = shape->step;
    LANES {
        uint32_t number = (uint32_t)numbers[i];
        axis->inside[0][i] = number < size ? UINT32_MAX : 0;
        axis->at[0][i] = number < size ? number * step : 0;
    }
}

/* The positions of parts of the size, of which 23 fraction bits count. Beyond twice the size, one
 * position is as good as another; where texels repeat, infinity counts as 0. */
static void axis_scale(double positions[SOFT_LANES], const float *coordinates, uint32_t size,
                       unsigned mode) {
    const bool repeats = mode == CU_TR_ADDRESS_MODE_WRAP || mode == CU_TR_ADDRESS_MODE_MIRROR;
    const double period = mode == CU_TR_ADDRESS_MODE_WRAP ? 1 : 2;
    const float most = 2;
    if (repeats) {
        LANES {
            float x = coordinates[i];
            x = x - x == 0 ? x : 0;
            double fixed = floor((double)x * 0x1p23) * 0x1p-23;
            positions[i] = (fixed - period * floor(fixed / period)) * size;
        }
    } else {
        LANES {
            float x = coordinates[i] == coordinates[i] ? coordinates[i] : 0;
            x = x < -most ? -most : x;
            x = x > most ? most : x;
            positions[i] = floor((double)x * 0x1p23) * 0x1p-23 * size;
        }
    }
}

static void axis_positions(double positions[SOFT_LANES], const struct axis_shape *shape,
                           const float *coordinates) {
    const float most = 2 * AXIS_SIZE_MAX;
    if (shape->scales) {
        axis_scale(positions, coordinates, shape->size, shape->mode);
        return;
    }
    LANES {
        float x = coordinates[i] == coordinates[i] ? coordinates[i] : 0;
        x = x < -most ? -most : x;
        positions[i] = (double)(x > most ? most : x);
    }
}

/* From a number, at most one outside of what a mode repeats, to a texel. */
static void axis_place(struct axis *axis, int side, const struct axis_shape *shape,
                       const int32_t index[SOFT_LANES]) {
    uint32_t *at = axis->at[side], *inside = axis->inside[side];
    const uint32_t step = shape->step;
    const int32_t size = (int32_t)shape->size;
    switch (shape->mode) {
    case CU_TR_ADDRESS_MODE_WRAP:
        LANES {
            int32_t x = index[i] < 0 ? index[i] + size : index[i];
            at[i] = (uint32_t)(x >= size ? x - size : x) * step;
        }
        break;
    case CU_TR_ADDRESS_MODE_MIRROR:
        LANES {
            int32_t x = index[i] < 0 ? index[i] + 2 * size : index[i];
            x = x >= 2 * size ? x - 2 * size : x;
            at[i] = (uint32_t)(x < size ? x : 2 * size - 1 - x) * step;
        }
        break;
    case CU_TR_ADDRESS_MODE_BORDER:
        LANES {
            bool is_inside = (uint32_t)index[i] < (uint32_t)size;
            inside[i] = is_inside ? UINT32_MAX : 0;
            at[i] = is_inside ? (uint32_t)index[i] * step : 0;
        }
        return;
    default:
        LANES {
            int32_t x = index[i] < 0 ? 0 : index[i];
            at[i] = (uint32_t)(x < size ? x : size - 1) * step;
        }
    }
    LANES inside[i] = UINT32_MAX;
}

static void axis_point(struct axis *axis, const struct axis_shape *shape,
                       const float *coordinates) {
    double positions[SOFT_LANES];
    int32_t index[SOFT_LANES];
    axis_positions(positions, shape, coordinates);
    LANES index[i] = (int32_t)floor(positions[i]);
    axis_place(axis, 0, shape, index);
}

/* If texels repeat at the edge, a sample beyond the middle of the last one has that one alone. */
static void axis_filter(struct axis *axis, const struct axis_shape *shape,
                        const float *coordinates) {
    const int32_t last = (int32_t)shape->size - 1;
    double positions[SOFT_LANES];
    int32_t low[SOFT_LANES], high[SOFT_LANES];
    axis_positions(positions, shape, coordinates);
    LANES {
        int32_t moved = (int32_t)floor((positions[i] - 0.5) * SOFT_STEPS + 0.5);
        low[i] = moved >> 8;
        high[i] = low[i] + 1;
        axis->weight[i] = (uint32_t)moved & (SOFT_STEPS - 1);
    }
    if (shape->mode == CU_TR_ADDRESS_MODE_CLAMP) {
        LANES axis->weight[i] = low[i] < 0 || low[i] >= last ? 0 : axis->weight[i];
    }
    axis_place(axis, 0, shape, low);
    axis_place(axis, 1, shape, high);
}

#endif

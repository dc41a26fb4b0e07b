/*
 * The shape of step 8 of linear, for its kernels and for the host: columns and stages of a block,
 * and its dynamic shared memory in bytes. Internal to the operation: not installed.
 */
#ifndef KN_MANY_SHAPE_H
#define KN_MANY_SHAPE_H

#include "../formats/linear_arguments.h"

/* Persistent thread blocks for up to 32 columns: rings, totals, and the units of an x that is kept
 * in registers. */
enum { LINEAR_MANY_COLUMNS = 32, LINEAR_KEPT_CHUNKS = 2, LINEAR_LONG_TILES = 2 };
#define LINEAR_KEPT_STAGES(stride) ((stride) > 200 ? 4 : 5)
#define LINEAR_LONG_STAGES(stride) ((stride) > 200 ? 3 : 4)
#define LINEAR_MANY_TOTALS(tiles)                                                                  \
    (LINEAR_BYTES_WARPS * (int)LINEAR_MANY_COLUMNS * (16 * (tiles) + 4) * 4)
#define LINEAR_KEPT_SHARED(stride)                                                                 \
    (LINEAR_BYTES_SHARED(stride, 1, 1, LINEAR_KEPT_STAGES(stride)) + 2 * LINEAR_MANY_TOTALS(1) +   \
     LINEAR_BYTES_WARPS * LINEAR_KEPT_CHUNKS * (int)LINEAR_MANY_COLUMNS * 64)
#define LINEAR_LONG_SHARED(stride)                                                                 \
    (LINEAR_BYTES_SHARED(stride, LINEAR_LONG_TILES, 1, LINEAR_LONG_STAGES(stride)) +               \
     LINEAR_MANY_TOTALS(LINEAR_LONG_TILES))

#endif

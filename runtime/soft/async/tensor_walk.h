/*
 * Tensor walk: the rows of a tensor map's box, in the order of shared memory, and the copied part
 * of each: the part inside the tensor and, for a stored tile, the rest of the last unit of 16
 * bytes. A row of an im2col copy has the channels of a pixel.
 *
 * This only computes addresses and accesses no memory. The map must be valid.
 */
#ifndef SOFT_TENSOR_WALK_H
#define SOFT_TENSOR_WALK_H

#include "base/tensor_map.h"

/* Where a box begins: one coordinate per dimension, and the im2col offsets of those between the
 * first and the last one, which are 0 in other copies. */
struct soft_box_place {
    int32_t begin[SOFT_TENSOR_RANK_MAX];
    uint16_t offsets[SOFT_TENSOR_IMAGE_MAX];
};

struct soft_tensor_walk {
    const struct soft_tensor_map *map;
    const struct soft_box_place *place;
    uint32_t left;                        /* rows of the box */
    unsigned index[SOFT_TENSOR_RANK_MAX]; /* of the next row, unless it is an im2col copy */
    int64_t base[SOFT_TENSOR_RANK_MAX];   /* where it is: without the offsets */
    bool whole_units;                     /* it is stored, in units of 16 bytes */
    /* The row: */
    uint64_t address;     /* in global memory, of its first byte inside the tensor */
    unsigned from, bytes; /* copied: this many bytes (possibly 0) from this byte on */
    unsigned behind;      /* how many of those are past the tensor's row */
    uint32_t at, next;    /* its offset in the box before swizzling; and that of the next one */
    unsigned row_bytes;   /* all of its bytes, inside or not */
};

/* The walk keeps both pointers. The box has less than 2^32 bytes. writes: the copy writes global
 * memory. */
void soft_tensor_walk_begin(struct soft_tensor_walk *walk, const struct soft_tensor_map *map,
                            const struct soft_box_place *place, bool writes);

/* The first or the next row. false: there are no more. */
bool soft_tensor_walk_next(struct soft_tensor_walk *walk);

/* Whether the filter of an im2col copy begins in the bounding box, as it must. If not, *dimension
 * is one along which it does not. */
bool soft_tensor_is_in_bounds(const struct soft_tensor_map *map, const struct soft_box_place *place,
                              unsigned *dimension);

/* The swizzled offset of a byte in shared memory: its chunk is permuted within 128 bytes. */
static inline uint32_t soft_tensor_swizzled(const struct soft_tensor_map *map, uint32_t at) {
    return at ^ (at >> 7 & (map->swizzle - 1u)) << 4;
}

#endif

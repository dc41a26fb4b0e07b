/*
 * Tensor walk: the rows of a tensor map's box, in the order in which they lie in shared memory, and
 * what of each is inside the tensor.
 *
 * It only computes places and touches no memory. The map must be valid.
 */
#ifndef SOFT_TENSOR_WALK_H
#define SOFT_TENSOR_WALK_H

#include "base/tensor_map.h"

struct soft_tensor_walk {
    const struct soft_tensor_map *map;
    const int32_t *begin; /* the coordinates of the box, one for each dimension */
    uint32_t rows, next;  /* of the box; the number of the next one */
    unsigned index[SOFT_TENSOR_RANK_MAX];
    /* The row: */
    uint64_t address;     /* of its first byte inside the tensor, in global memory */
    unsigned from, bytes; /* inside: from this byte of the row on so many, which may be 0 */
    uint32_t at;          /* where it begins in the box, before swizzling */
    unsigned row_bytes;   /* all of its bytes, inside or not */
};

/* The walk keeps both pointers. */
void soft_tensor_walk_begin(struct soft_tensor_walk *walk, const struct soft_tensor_map *map,
                            const int32_t *begin);

/* The first or the next row. false: there are no more. */
bool soft_tensor_walk_next(struct soft_tensor_walk *walk);

/* Where a byte goes in shared memory: a chunk changes places with another one of its 128 bytes. */
static inline uint32_t soft_tensor_swizzled(const struct soft_tensor_map *map, uint32_t at) {
    return at ^ (at >> 7 & (map->swizzle - 1u)) << 4;
}

#endif

/*
 * Tensor map: what cuTensorMapEncode writes into a CUtensorMap and tensor copies read.
 *
 * The manual calls the 128 bytes opaque, and those of a driver are not known: this layout is our
 * own. A map that another driver has made is refused by its mark. Programs pass maps to kernels as
 * parameters or in global memory, byte by byte.
 */
#ifndef SOFT_TENSOR_MAP_H
#define SOFT_TENSOR_MAP_H

#include <stdint.h>

enum { SOFT_TENSOR_RANK_MAX = 5, SOFT_TENSOR_MAP_MARK = 0x544c4d54 };

struct soft_tensor_map {
    uint64_t address;
    uint64_t strides[SOFT_TENSOR_RANK_MAX]; /* bytes; the first is an element */
    uint32_t last[SOFT_TENSOR_RANK_MAX];    /* each dimension's size less one */
    uint16_t box[SOFT_TENSOR_RANK_MAX];     /* elements walked */
    uint8_t steps[SOFT_TENSOR_RANK_MAX];    /* between those that are taken */
    uint8_t type, rank, element_bytes;
    uint8_t swizzle; /* chunks of 16 bytes in a row that is swizzled: 1, 2, 4, 8 */
    uint8_t fills_nan;
    uint32_t mark;
    uint8_t unused[34];
};
_Static_assert(sizeof(struct soft_tensor_map) == 128, "the size of CUtensorMap");

#endif

/*
 * Tensor map: the contents of a CUtensorMap, written by cuTensorMapEncode and read by tensor
 * copies.
 *
 * The manual calls the 128 bytes opaque, and a driver's layout is unknown: this one is our own. A
 * map that another driver made lacks our mark and is refused. Programs pass maps to kernels as
 * parameters or in global memory, byte by byte, so a copy checks the map again.
 */
#ifndef SOFT_TENSOR_MAP_H
#define SOFT_TENSOR_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SOFT_TENSOR_RANK_MAX = 5, SOFT_TENSOR_MAP_MARK = 0x544c4d54 };
enum { SOFT_TENSOR_ALIGNMENT = 16, SOFT_TENSOR_BOX_MAX = 256, SOFT_TENSOR_STEP_MAX = 8 };
enum { SOFT_TENSOR_PIXELS_MAX = 1024, SOFT_TENSOR_IMAGE_MAX = SOFT_TENSOR_RANK_MAX - 2 };
enum { SOFT_TENSOR_MAP_TYPES = 13, SOFT_TENSOR_ELEMENT_MAX = 8, SOFT_TENSOR_CHUNK = 16 };

struct soft_tensor_map {
    uint64_t address;
    uint64_t strides[SOFT_TENSOR_RANK_MAX]; /* bytes; the first is an element */
    uint32_t last[SOFT_TENSOR_RANK_MAX];    /* each dimension's size less one */
    /* Elements traversed; for im2col copies, the channels of a pixel, and pixels. */
    uint16_t box[SOFT_TENSOR_RANK_MAX];
    uint8_t steps[SOFT_TENSOR_RANK_MAX]; /* between those that are taken */
    uint8_t type, rank, element_bytes;
    uint8_t swizzle; /* 16-byte chunks in a swizzled row: 1, 2, 4, 8 */
    uint8_t fills_nan;
    uint32_t mark;
    /* im2col: the bounding box of filter positions, relative to the first and the last element of
     * each dimension between the first one (channels) and the last one (images). */
    int16_t lower[SOFT_TENSOR_IMAGE_MAX], upper[SOFT_TENSOR_IMAGE_MAX];
    uint8_t im2col; /* whether it is for im2col: 0 or 1 */
    /* Bytes of a slice: 16, 32; 0: not interleaved. An element along the first dimension is then a
     * slice, whose channels are those of the last dimension but one. */
    uint8_t interleave;
    uint8_t unused[20];
};
_Static_assert(sizeof(struct soft_tensor_map) == 128, "the size of CUtensorMap");

/* The bytes of an element of a CUtensorMapDataType below SOFT_TENSOR_MAP_TYPES. */
unsigned soft_tensor_element_bytes(unsigned type);

/* The bits of a coordinate of a bounding box, with its sign, and of an im2col offset, without one:
 * the dimensions of an image share 16. Source: PTX ISA 9.0, section 5.5.4.1. */
unsigned soft_tensor_image_bits(unsigned rank);

/* Whether a map is valid for copies. If not, why has the reason; it is always terminated. Source:
 * "Tensor Map Object Management" of the CUDA Driver API 13.0. */
bool soft_tensor_map_is_valid(const struct soft_tensor_map *map, char *why, size_t bytes);

/* The number of elements of a valid map's box along a dimension; not for im2col. */
unsigned soft_tensor_taken(const struct soft_tensor_map *map, unsigned dimension);

/* The rows of a valid map's box: bytes per row, and bytes from one row to the next. If a row is
 * shorter than the swizzle span, consecutive rows are one span apart. A row of an interleaved
 * tensor is a slice. */
uint64_t soft_tensor_box_rows(const struct soft_tensor_map *map);
unsigned soft_tensor_row_bytes(const struct soft_tensor_map *map);
unsigned soft_tensor_row_pitch(const struct soft_tensor_map *map);

/* The first dimension from row to row; the dimensions of an image begin with it. */
static inline unsigned soft_tensor_first(const struct soft_tensor_map *map) {
    return map->interleave == 0;
}

/* The bytes of a valid map's box in shared memory; and of the memory that they occupy, which is
 * more if the box ends inside a swizzled row. At most 2^43. */
uint64_t soft_tensor_box_bytes(const struct soft_tensor_map *map);
uint64_t soft_tensor_box_extent(const struct soft_tensor_map *map);

#endif

/*
 * Box model: copies of boxes, element by element, for tests and fuzz targets. It follows the manual
 * (PTX ISA 9.0, section 5.5) and an H200's measured behaviour at the ends of rows, and shares no
 * code with the device.
 */
#ifndef SOFT_BOX_MODEL_H
#define SOFT_BOX_MODEL_H

#include "tollens/cuda_abi.h"
#include "api/export.h"

#include <stdbool.h>
#include <stdint.h>

/* CUtensorMapDataType */
enum {
    TENSOR_UINT8,
    TENSOR_UINT16,
    TENSOR_UINT32,
    TENSOR_INT32,
    TENSOR_UINT64,
    TENSOR_INT64,
    TENSOR_FLOAT16,
    TENSOR_FLOAT32,
    TENSOR_FLOAT64,
    TENSOR_BFLOAT16,
    TENSOR_FLOAT32_FTZ,
    TENSOR_TFLOAT32,
    TENSOR_TFLOAT32_FTZ,
    TENSOR_TYPES
};

enum { TENSOR_RANK_MAX = 5, TENSOR_PIXELS_MAX = 1024 };

/* The properties of a map that it needs. */
struct box_model {
    unsigned type, each, rank, swizzle, fill, pixels;
    uint64_t first; /* of the tensor, in the memory */
    uint64_t size[TENSOR_RANK_MAX], stride[TENSOR_RANK_MAX];
    unsigned box[TENSOR_RANK_MAX], step[TENSOR_RANK_MAX];
    int lower[3], upper[3];
    bool im2col;
    bool stores; /* the copy is a store */
};

/* The bytes of an element of a type, and whether it is a floating point type. */
unsigned tensor_type_bytes(unsigned type);
bool tensor_type_is_floating(unsigned type);

/* The bytes of the box, and the bytes that it takes in shared memory. These are more if the map has
 * a swizzle whose span is longer than a row: each row then takes a whole span. */
uint64_t box_model_bytes(const struct box_model *model);
uint64_t box_model_extent(const struct box_model *model);

/* Makes a map with the driver; returns its code. The first step is arbitrary, because it is
 * ignored. */
CUresult box_model_encode(const struct box_model *model, CUtensorMap *map, CUdeviceptr memory,
                          cuuint32_t first_step);

/* Whether the device refuses a copy of a box that begins at begin. */
bool box_model_refuses(const struct box_model *model, const int32_t *begin);

/* Calls visit for each element of a box that begins at begin: with its byte in the box, and that in
 * the memory, or -1 where it is outside the tensor and not copied. offsets: of an im2col copy. At
 * most TENSOR_PIXELS_MAX pixels; not for several threads. */
void box_model_each(const struct box_model *model, const int32_t *begin, const uint16_t *offsets,
                    void (*visit)(void *user, unsigned at, int64_t from), void *user);

/* The copied value of an element of the memory, or, with -1, of one outside. */
void box_model_load(const struct box_model *model, const uint8_t *memory, int64_t from,
                    uint8_t *value);

/* Where a byte of shared memory goes. */
unsigned box_model_swizzled(unsigned swizzle, unsigned at);

#endif

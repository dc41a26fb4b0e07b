/*
 * Tensor maps: their arguments are checked as the manual says, each refusal with its reason in the
 * driver's log. As in "Tensor Map Object Management" of the CUDA Driver API 13.0. Not modelled:
 * formats of newer architectures, for which alone cuTensorMapEncodeIm2colWide exists, and
 * interleaved tensors whose box has channels of several slices, whose layout was not measured.
 */
#include "api/export.h"
#include "base/report.h"
#include "base/tensor_map.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAP_ALIGNMENT = 64, SWIZZLES = 4 };
enum { TYPE_PACKED_LAST = 15, PROMOTION_LAST = 3, INTERLEAVE_LAST = 2 };

static bool is_floating(int type) {
    return type >= 6 && type < SOFT_TENSOR_MAP_TYPES;
}

/* Writes the reason to the driver's log. */
static CUresult tensor_map_refuse(CUresult result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static CUresult tensor_map_refuse(CUresult result, const char *format, ...) {
    char reason[160], line[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line, "tensor map: %s", reason);
    soft_log_add(line);
    return result;
}
#define REFUSE(...) return tensor_map_refuse(CUDA_ERROR_INVALID_VALUE, __VA_ARGS__)

static CUresult check_address(const void *map, const void *address) {
    if (map == NULL) REFUSE("the map is NULL");
    if ((uintptr_t)map % MAP_ALIGNMENT != 0) {
        REFUSE("the map at %p is not a multiple of %d", map, MAP_ALIGNMENT);
    }
    if (address == NULL) REFUSE("the global address is NULL");
    if ((uintptr_t)address % SOFT_TENSOR_ALIGNMENT != 0) {
        REFUSE("the global address %p is not a multiple of %d", address, SOFT_TENSOR_ALIGNMENT);
    }
    return CUDA_SUCCESS;
}

static CUresult check_kinds(int type, cuuint32_t rank, int interleave, int swizzle, int promotion,
                            int fill) {
    if (type < 0 || type > TYPE_PACKED_LAST) REFUSE("%d is no data type", type);
    if (rank < 1 || rank > SOFT_TENSOR_RANK_MAX) REFUSE("a rank of %u, not 1 to 5", rank);
    if (interleave < 0 || interleave > INTERLEAVE_LAST) REFUSE("%d is no interleave", interleave);
    if (interleave != 0 && rank < 3) REFUSE("an interleaved tensor of rank %u, not 3 to 5", rank);
    if (promotion < 0 || promotion > PROMOTION_LAST) REFUSE("%d is no L2 promotion", promotion);
    if (fill != 0 && fill != 1) REFUSE("%d is no out-of-bounds fill", fill);
    if (fill == 1 && !is_floating(type)) {
        REFUSE("NaN for elements out of bounds needs a floating point type, and %d is none", type);
    }
    if (type >= SOFT_TENSOR_MAP_TYPES || swizzle >= SWIZZLES || swizzle < 0) {
        REFUSE("data type %d and swizzle %d are not those of compute capability 9.0", type,
               swizzle);
    }
    return CUDA_SUCCESS;
}

/* The common part of calls that make maps. */
struct arguments {
    CUtensorMap *to;
    int type, interleave, swizzle, promotion, fill;
    cuuint32_t rank;
    void *address;
    const cuuint64_t *dimensions, *strides;
    const cuuint32_t *steps;
};

static CUresult check_dimension(struct soft_tensor_map *map, const struct arguments *arguments,
                                unsigned i) {
    uint64_t size = arguments->dimensions[i];
    if (size == 0 || size > 1ull << 32) {
        REFUSE("dimension %u has %llu elements, not 1 to 2^32", i, (unsigned long long)size);
    }
    if (arguments->steps[i] == 0 || arguments->steps[i] > SOFT_TENSOR_STEP_MAX) {
        REFUSE("a step of %u elements along dimension %u, not 1 to 8", arguments->steps[i], i);
    }
    map->last[i] = (uint32_t)(size - 1);
    /* The manual: without interleaving, the first step is ignored. */
    map->steps[i] = i == 0 && map->interleave == 0 ? 1 : (uint8_t)arguments->steps[i];
    map->strides[i] = i > 0                  ? arguments->strides[i - 1]
                      : map->interleave != 0 ? map->interleave
                                             : map->element_bytes;
    return CUDA_SUCCESS;
}

/* All of a map but its box. */
static CUresult make_map(const struct arguments *arguments, struct soft_tensor_map *map) {
    CUresult result = check_address(arguments->to, arguments->address);
    if (result == CUDA_SUCCESS) {
        result = check_kinds(arguments->type, arguments->rank, arguments->interleave,
                             arguments->swizzle, arguments->promotion, arguments->fill);
    }
    if (result != CUDA_SUCCESS) return result;
    if (arguments->dimensions == NULL || arguments->steps == NULL ||
        (arguments->strides == NULL && arguments->rank > 1)) {
        REFUSE("an array is NULL");
    }
    *map = (struct soft_tensor_map){
        .mark = SOFT_TENSOR_MAP_MARK,
        .address = (uintptr_t)arguments->address,
        .type = (uint8_t)arguments->type,
        .rank = (uint8_t)arguments->rank,
        .element_bytes = (uint8_t)soft_tensor_element_bytes((unsigned)arguments->type),
        .swizzle = (uint8_t)(1 << arguments->swizzle),
        .fills_nan = (uint8_t)arguments->fill,
        .interleave = (uint8_t)(arguments->interleave * SOFT_TENSOR_CHUNK),
    };
    for (unsigned i = 0; i < arguments->rank && result == CUDA_SUCCESS; i++) {
        result = check_dimension(map, arguments, i);
    }
    return result;
}

static CUresult tensor_map_hand_out(const struct soft_tensor_map *map, CUtensorMap *to) {
    char why[160];
    if (!soft_tensor_map_is_valid(map, why, sizeof why)) REFUSE("%s", why);
    memcpy(to, map, sizeof *map);
    return CUDA_SUCCESS;
}

EXPORT(cuTensorMapEncodeTiled,
       (CUtensorMap * tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
        void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
        const cuuint32_t *boxDim, const cuuint32_t *elementStrides,
        CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
        CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)) {
    const struct arguments arguments = {tensorMap,   tensorDataType, interleave,    swizzle,
                                        l2Promotion, oobFill,        tensorRank,    globalAddress,
                                        globalDim,   globalStrides,  elementStrides};
    struct soft_tensor_map map;
    CUresult result = make_map(&arguments, &map);
    if (result != CUDA_SUCCESS) return result;
    if (boxDim == NULL) REFUSE("an array is NULL");
    for (unsigned i = 0; i < tensorRank; i++) {
        if (boxDim[i] == 0 || boxDim[i] > SOFT_TENSOR_BOX_MAX) {
            REFUSE("the box has %u elements along dimension %u, not 1 to 256", boxDim[i], i);
        }
        map.box[i] = (uint16_t)boxDim[i];
    }
    if (interleave != 0 && boxDim[tensorRank - 2] * map.element_bytes > map.interleave) {
        return tensor_map_refuse(
            CUDA_ERROR_NOT_SUPPORTED,
            "a box of %u channels of an interleaved tensor, of which a slice has %u; "
            "several slices are not modelled",
            boxDim[tensorRank - 2], map.interleave / map.element_bytes);
    }
    return tensor_map_hand_out(&map, tensorMap);
}

/* The corners are in the order of the dimensions: width, height, depth. */
EXPORT(cuTensorMapEncodeIm2col,
       (CUtensorMap * tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
        void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
        const int *pixelBoxLowerCorner, const int *pixelBoxUpperCorner, cuuint32_t channelsPerPixel,
        cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides,
        CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
        CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)) {
    const struct arguments arguments = {tensorMap,   tensorDataType, interleave,    swizzle,
                                        l2Promotion, oobFill,        tensorRank,    globalAddress,
                                        globalDim,   globalStrides,  elementStrides};
    struct soft_tensor_map map;
    if (tensorRank < 3) REFUSE("a rank of %u, and im2col has 3 to 5", tensorRank);
    CUresult result = make_map(&arguments, &map);
    if (result != CUDA_SUCCESS) return result;
    if (pixelBoxLowerCorner == NULL || pixelBoxUpperCorner == NULL) REFUSE("a corner is NULL");
    if (channelsPerPixel == 0 || channelsPerPixel > SOFT_TENSOR_BOX_MAX) {
        REFUSE("%u channels per pixel, not 1 to 256", channelsPerPixel);
    }
    if (pixelsPerColumn == 0 || pixelsPerColumn > SOFT_TENSOR_PIXELS_MAX) {
        REFUSE("%u pixels per column, not 1 to 1024", pixelsPerColumn);
    }
    map.im2col = 1;
    map.box[0] = (uint16_t)channelsPerPixel;
    map.box[1] = (uint16_t)pixelsPerColumn;
    for (unsigned i = 0; i + 2 < tensorRank; i++) {
        map.lower[i] = (int16_t)pixelBoxLowerCorner[i];
        map.upper[i] = (int16_t)pixelBoxUpperCorner[i];
        if (map.lower[i] != pixelBoxLowerCorner[i] || map.upper[i] != pixelBoxUpperCorner[i]) {
            REFUSE(
                "the bounding box is from %d to %d along dimension %u, which 16 bits do not hold",
                pixelBoxLowerCorner[i], pixelBoxUpperCorner[i], i + 1);
        }
    }
    return tensor_map_hand_out(&map, tensorMap);
}

EXPORT(cuTensorMapReplaceAddress, (CUtensorMap * tensorMap, void *globalAddress)) {
    CUresult result = check_address(tensorMap, globalAddress);
    if (result != CUDA_SUCCESS) return result;
    struct soft_tensor_map map;
    memcpy(&map, tensorMap, sizeof map);
    if (map.mark != SOFT_TENSOR_MAP_MARK) REFUSE("the map was not made by this driver");
    map.address = (uintptr_t)globalAddress;
    memcpy(tensorMap, &map, sizeof map);
    return CUDA_SUCCESS;
}

/*
 * Checks a tensor map, and computes the size of its box.
 */
#include "tensor_map.h"

#include <stdarg.h>
#include <stdio.h>

enum { SWIZZLE_MAX = 8, STRIDE_BITS = 40 };

unsigned soft_tensor_element_bytes(unsigned type) {
    static const uint8_t bytes[SOFT_TENSOR_MAP_TYPES] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return bytes[type];
}

struct reason {
    char *text;
    size_t bytes;
};

static bool tensor_map_wrong(const struct reason *reason, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool tensor_map_wrong(const struct reason *reason, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason->text, reason->bytes, format, arguments);
    va_end(arguments);
    return false;
}

unsigned soft_tensor_image_bits(unsigned rank) {
    return rank == 3 ? 16 : rank == 4 ? 8 : 5;
}

/* The channels, the pixels and the bounding box of a map for im2col copies. */
static bool is_valid_image(const struct soft_tensor_map *map, const struct reason *reason) {
    if (map->rank < 3)
        return tensor_map_wrong(reason, "a rank of %u, and im2col has 3 to 5", map->rank);
    if (map->box[0] == 0 || map->box[0] > SOFT_TENSOR_BOX_MAX) {
        return tensor_map_wrong(reason, "%u channels per pixel, not 1 to 256", map->box[0]);
    }
    if (map->box[1] == 0 || map->box[1] > SOFT_TENSOR_PIXELS_MAX) {
        return tensor_map_wrong(reason, "%u pixels per column, not 1 to 1024", map->box[1]);
    }
    int limit = 1 << (soft_tensor_image_bits(map->rank) - 1);
    for (unsigned k = 0; k + 2 < map->rank; k++) {
        unsigned i = k + soft_tensor_first(map);
        int lower = map->lower[k], upper = map->upper[k];
        if (lower < -limit || lower >= limit || upper < -limit || upper >= limit) {
            return tensor_map_wrong(
                reason,
                "the bounding box is from %d to %d along dimension %u, and rank %u has "
                "%d to %d",
                lower, upper, i, map->rank, -limit, limit - 1);
        }
        if (lower > (int64_t)map->last[i] + upper) {
            return tensor_map_wrong(reason, "the bounding box is empty along dimension %u", i);
        }
    }
    return true;
}

static bool is_valid_dimension(const struct soft_tensor_map *map, unsigned i,
                               const struct reason *reason) {
    if (!map->im2col && (map->box[i] == 0 || map->box[i] > SOFT_TENSOR_BOX_MAX)) {
        return tensor_map_wrong(reason, "the box has %u elements along dimension %u, not 1 to 256",
                                map->box[i], i);
    }
    if (map->steps[i] == 0 || map->steps[i] > SOFT_TENSOR_STEP_MAX) {
        return tensor_map_wrong(reason, "a step of %u elements along dimension %u, not 1 to 8",
                                map->steps[i], i);
    }
    if (i == 0 && map->steps[0] != 1 && map->interleave == 0) {
        return tensor_map_wrong(reason, "a step of %u elements along dimension 0, which has none",
                                map->steps[0]);
    }
    uint64_t stride = map->strides[i];
    if (i > 0 && (stride % SOFT_TENSOR_ALIGNMENT != 0 || stride >> STRIDE_BITS != 0)) {
        return tensor_map_wrong(
            reason, "the stride of dimension %u is %llu bytes: not a multiple of 16 below 2^40", i,
            (unsigned long long)stride);
    }
    return true;
}

static bool is_valid_interleave(const struct soft_tensor_map *map, const struct reason *reason) {
    unsigned bytes = map->interleave;
    if (bytes != SOFT_TENSOR_CHUNK && bytes != 2 * SOFT_TENSOR_CHUNK) {
        return tensor_map_wrong(reason, "slices of %u bytes", bytes);
    }
    if (map->rank < 3) {
        return tensor_map_wrong(reason, "an interleaved tensor of rank %u, not 3 to 5", map->rank);
    }
    if (map->address % bytes != 0) {
        return tensor_map_wrong(reason, "the global address 0x%llx is not a multiple of %u",
                                (unsigned long long)map->address, bytes);
    }
    for (unsigned i = 1; i < map->rank; i++) {
        if (map->strides[i] % bytes == 0) continue;
        return tensor_map_wrong(
            reason, "the stride of dimension %u is %llu bytes, which is not a multiple of %u", i,
            (unsigned long long)map->strides[i], bytes);
    }
    return true;
}

bool soft_tensor_map_is_valid(const struct soft_tensor_map *map, char *why, size_t bytes) {
    const struct reason reason = {why, bytes};
    snprintf(why, bytes, "%s", "");
    if (map->address % SOFT_TENSOR_ALIGNMENT != 0) {
        return tensor_map_wrong(&reason, "the global address 0x%llx is not a multiple of 16",
                                (unsigned long long)map->address);
    }
    if (map->type >= SOFT_TENSOR_MAP_TYPES)
        return tensor_map_wrong(&reason, "%u is no data type", map->type);
    if (map->element_bytes != soft_tensor_element_bytes(map->type)) {
        return tensor_map_wrong(&reason, "elements of %u bytes of data type %u", map->element_bytes,
                                map->type);
    }
    if (map->im2col > 1) return tensor_map_wrong(&reason, "%u is no mode", map->im2col);
    if (map->rank < 1 || map->rank > SOFT_TENSOR_RANK_MAX) {
        return tensor_map_wrong(&reason, "a rank of %u, not 1 to 5", map->rank);
    }
    if (map->swizzle == 0 || map->swizzle > SWIZZLE_MAX ||
        (map->swizzle & (map->swizzle - 1)) != 0) {
        return tensor_map_wrong(&reason, "a swizzle of %u chunks", map->swizzle);
    }
    for (unsigned i = 0; i < map->rank; i++) {
        if (!is_valid_dimension(map, i, &reason)) return false;
    }
    if (map->im2col && !is_valid_image(map, &reason)) return false;
    if (map->interleave != 0 && !is_valid_interleave(map, &reason)) return false;
    unsigned inner = map->box[0] * map->element_bytes;
    unsigned span = map->swizzle * (unsigned)SOFT_TENSOR_CHUNK;
    if (inner % SOFT_TENSOR_ALIGNMENT != 0) {
        return tensor_map_wrong(&reason, "the box is %u bytes wide, which is not a multiple of 16",
                                inner);
    }
    if (map->swizzle > 1 && inner > span && map->interleave == 0) {
        return tensor_map_wrong(
            &reason, "the box is %u bytes wide, more than the %u of its swizzle", inner, span);
    }
    return true;
}

unsigned soft_tensor_taken(const struct soft_tensor_map *map, unsigned dimension) {
    unsigned step = map->steps[dimension];
    /* Its box counts channels, several per slice. */
    if (map->interleave != 0 && dimension + 2 == map->rank) return 1;
    return (map->box[dimension] + step - 1) / step;
}

uint64_t soft_tensor_box_rows(const struct soft_tensor_map *map) {
    uint64_t rows = map->im2col ? map->box[1] : 1;
    for (unsigned i = soft_tensor_first(map); i < map->rank && !map->im2col; i++) {
        rows *= soft_tensor_taken(map, i);
    }
    return rows;
}

unsigned soft_tensor_row_bytes(const struct soft_tensor_map *map) {
    return map->interleave != 0 ? map->interleave : (unsigned)map->box[0] * map->element_bytes;
}

unsigned soft_tensor_row_pitch(const struct soft_tensor_map *map) {
    unsigned bytes = soft_tensor_row_bytes(map), span = map->swizzle * (unsigned)SOFT_TENSOR_CHUNK;
    return map->interleave == 0 && bytes < span ? span : bytes;
}

uint64_t soft_tensor_box_bytes(const struct soft_tensor_map *map) {
    return soft_tensor_box_rows(map) * soft_tensor_row_bytes(map);
}

uint64_t soft_tensor_box_extent(const struct soft_tensor_map *map) {
    uint64_t span = (uint64_t)map->swizzle * SOFT_TENSOR_CHUNK;
    uint64_t bytes = soft_tensor_box_rows(map) * soft_tensor_row_pitch(map);
    return (bytes + span - 1) / span * span;
}

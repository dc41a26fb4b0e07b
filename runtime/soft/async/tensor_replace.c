/*
 * Changes of tensor maps by kernels. Source: PTX ISA 9.0, sections 9.7.9.28 (tensormap.replace) and
 * 9.7.13.16 (tensormap.cp_fenceproxy).
 *
 * Compilers make a map from 128 zeros by replacing every field: zeros are a map without fields. A
 * copy that reads the map checks that the fields are consistent.
 */
#include "async.h"

#include "tollens/cuda_abi.h"
#include "machine/finding.h"

#include <string.h>

enum { MORE_FIELD, MORE_DIMENSION };
enum { MAP_ALIGNMENT = 64, BULK_ALIGNMENT = 16 };

static bool tensor_replace_fail(struct soft_warp *warp, const struct soft_instruction *in,
                                uint32_t lane, uint64_t address, const char *what) {
    soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, address,
                     "the tensor map at 0x%llx %s", (unsigned long long)address, what);
    return false;
}

static bool fail_value(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                       const char *what, uint64_t value) {
    soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, 0, "%llu is no %s",
                     (unsigned long long)value, what);
    return false;
}

/* The instruction has an order of types that differs from that of CUtensorMapDataType. */
static bool replace_type(struct soft_tensor_map *map, uint64_t value) {
    static const uint8_t types[SOFT_TENSOR_MAP_TYPES] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12};
    if (value >= SOFT_TENSOR_MAP_TYPES) return false;
    map->type = types[value];
    map->element_bytes = (uint8_t)soft_tensor_element_bytes(map->type);
    if (map->interleave == 0) map->strides[0] = map->element_bytes;
    return true;
}

/* A number that does not fit into the field is as invalid as the field's largest one. */
static uint16_t tensor_replace_narrow(uint64_t value) {
    return value < UINT16_MAX ? (uint16_t)value : UINT16_MAX;
}

static bool tensor_replace_replace(struct soft_warp *warp, const struct soft_instruction *in,
                                   uint32_t lane, struct soft_tensor_map *map, uint64_t value) {
    const uint32_t *more = warp->split->frame->code->operands + in->more;
    uint32_t i = more[MORE_DIMENSION];
    switch ((enum soft_map_field)more[MORE_FIELD]) {
    case SOFT_MAP_ADDRESS:
        map->address = value;
        return true;
    case SOFT_MAP_RANK:
        map->rank = value < SOFT_TENSOR_RANK_MAX ? (uint8_t)(value + 1) : UINT8_MAX;
        return true;
    case SOFT_MAP_BOX:
        map->box[i] = tensor_replace_narrow(value);
        return true;
    case SOFT_MAP_SIZE:
        map->last[i] = (uint32_t)(value - 1);
        return value != 0 || fail_value(warp, in, lane, "size of a dimension", value);
    case SOFT_MAP_STRIDE:
        map->strides[i + 1] = value;
        return true;
    case SOFT_MAP_STEP:
        /* As when a map is made: without interleaving, the first one is ignored. */
        if (i > 0 || map->interleave != 0)
            map->steps[i] = value < UINT8_MAX ? (uint8_t)value : UINT8_MAX;
        return true;
    case SOFT_MAP_TYPE:
        return replace_type(map, value) ||
               fail_value(warp, in, lane, "element type that is modelled", value);
    case SOFT_MAP_INTERLEAVE:
        if (value > 2) return fail_value(warp, in, lane, "interleave", value);
        map->interleave = (uint8_t)(value * SOFT_TENSOR_CHUNK);
        map->strides[0] = value == 0 ? map->element_bytes : map->interleave;
        return true;
    case SOFT_MAP_SWIZZLE:
        map->swizzle = (uint8_t)(1 << (value & 3));
        return value < 4 || fail_value(warp, in, lane, "swizzle of compute capability 9.0", value);
    case SOFT_MAP_FILL:
        map->fills_nan = value == 1;
        return value < 2 || fail_value(warp, in, lane, "fill mode", value);
    }
    return true;
}

static bool is_zero(const struct soft_tensor_map *map) {
    static const struct soft_tensor_map zero;
    return memcmp(map, &zero, sizeof zero) == 0;
}

static bool replace_lane(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane) {
    const uint32_t *more = warp->split->frame->code->operands + in->more;
    uint64_t address = soft_access_address(warp, in, lane);
    enum soft_access_space space = soft_access_space(in->mode), found = space;
    bool wide = more[MORE_FIELD] == SOFT_MAP_ADDRESS || more[MORE_FIELD] == SOFT_MAP_STRIDE;
    uint64_t value = wide ? SLOT(uint64_t, in->b)[lane] : SLOT(uint32_t, in->b)[lane];
    uint64_t resolved = address;
    struct soft_place place;
    struct soft_tensor_map map;
    if (found == SOFT_SPACE_GENERIC) found = soft_access_resolve(&resolved);
    if (found != SOFT_SPACE_GLOBAL && found != SOFT_SPACE_SHARED) {
        return tensor_replace_fail(warp, in, lane, address,
                                   "is neither in global nor in shared memory");
    }
    if (!soft_access_range(warp, in, lane, resolved, sizeof map, MAP_ALIGNMENT, found,
                           SOFT_ACCESS_WRITE, &place)) {
        return false;
    }
    if (place.view.high != 0) warp->views[in->site] = place.view;
    memcpy(&map, place.host, sizeof map);
    if (is_zero(&map)) {
        map = (struct soft_tensor_map){.mark = SOFT_TENSOR_MAP_MARK, .swizzle = 1};
        (void)replace_type(&map, 0);
        memset(map.steps, 1, sizeof map.steps);
    }
    if (map.mark != SOFT_TENSOR_MAP_MARK) {
        return tensor_replace_fail(warp, in, lane, address,
                                   "is none: no call of this driver made it");
    }
    if (map.im2col)
        return tensor_replace_fail(warp, in, lane, address, "is for im2col, and .tile for others");
    if (!tensor_replace_replace(warp, in, lane, &map, value)) return false;
    memcpy(place.host, &map, sizeof map);
    soft_shadow_mark(place.shadow, place.offset, sizeof map);
    return true;
}

const struct soft_instruction *soft_map_replace(struct soft_warp *warp,
                                                const struct soft_instruction *in) {
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        if (!replace_lane(warp, in, (uint32_t)__builtin_ctz(left))) return NULL;
    }
    return in + 1;
}

/* All lanes name the same addresses; the first one copies. */
const struct soft_instruction *soft_map_copy(struct soft_warp *warp,
                                             const struct soft_instruction *in) {
    const uint32_t *more = warp->split->frame->code->operands + in->more;
    uint32_t lane = (uint32_t)__builtin_ctz(warp->mask);
    uint64_t to = soft_access_address(warp, in, lane);
    uint32_t from = SLOT(uint32_t, in->b)[lane] + more[0];
    struct soft_place source, target;
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        uint32_t other = (uint32_t)__builtin_ctz(left);
        if (soft_access_address(warp, in, other) == to &&
            SLOT(uint32_t, in->b)[other] + more[0] == from) {
            continue;
        }
        return soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << other, to,
                                "lane %u copies another tensor map than lane %u", other, lane);
    }
    if (!soft_access_range(warp, in, lane, from, sizeof(struct soft_tensor_map), BULK_ALIGNMENT,
                           SOFT_SPACE_SHARED, SOFT_ACCESS_READ, &source)) {
        return NULL;
    }
    soft_access_check_read(warp, in, lane, from, sizeof(struct soft_tensor_map), &source);
    if (!soft_access_range(warp, in, lane, to, sizeof(struct soft_tensor_map), BULK_ALIGNMENT,
                           SOFT_SPACE_GLOBAL, SOFT_ACCESS_WRITE, &target)) {
        return NULL;
    }
    warp->views[in->site] = target.view;
    memcpy(target.host, source.host, sizeof(struct soft_tensor_map));
    soft_shadow_mark(target.shadow, target.offset, sizeof(struct soft_tensor_map));
    return in + 1;
}

/*
 * Copies of boxes of tensors between global and shared memory. Source: PTX ISA 9.0, sections 5.5
 * (tensors), 9.7.9.27.1.2 and 9.7.9.27.1.3.
 *
 * A box lies in shared memory row by row without gaps; where the map has a swizzle, the chunks of
 * 16 bytes of each 128 change places by the bits of their address. Elements outside the tensor
 * come as zeros or NaN, count as bytes that have come, and are never written. The map is read when
 * the copy begins, the elements when it is carried out.
 */
#include "async.h"

#include "tollens/cuda_abi.h"
#include "finding.h"
#include "mbarrier.h"
#include "shared_layout.h"
#include "ptx/ptx.h"
#include "tensor_walk.h"

#include <stdlib.h>
#include <string.h>

enum { MORE_OFFSET, MORE_RANK, MORE_MBARRIER, MORE_MBARRIER_OFFSET, MORE_BLOCKS, MORE_COORDINATES };
enum { ALIGNMENT = 128, MAP_ALIGNMENT = 64, CHUNK = SOFT_TENSOR_CHUNK };
enum { ROW_MAX = SOFT_TENSOR_BOX_MAX * SOFT_TENSOR_ELEMENT_MAX };

static bool fail(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                 uint64_t address, const char *what) {
    soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, address,
                     "the tensor map at 0x%llx %s", (unsigned long long)address, what);
    return false;
}

static bool read_map(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                     struct soft_async_op *copy) {
    const uint32_t *more = warp->split->frame->code->operands + in->more;
    uint64_t address = SLOT(uint64_t, in->b)[lane] + (uint64_t)(int64_t)(int32_t)more[MORE_OFFSET];
    struct soft_place place;
    if (!soft_access_range(warp, in, lane, address, sizeof copy->map, MAP_ALIGNMENT,
                           SOFT_SPACE_GENERIC, SOFT_ACCESS_READ, &place)) {
        return false;
    }
    memcpy(&copy->map, place.host, sizeof copy->map);
    char why[160];
    if (copy->map.mark != SOFT_TENSOR_MAP_MARK) {
        return fail(warp, in, lane, address, "is none: cuTensorMapEncodeTiled did not make it");
    }
    if (!soft_tensor_map_is_valid(&copy->map, why, sizeof why)) {
        soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, address,
                         "the tensor map at 0x%llx is not valid: %s", (unsigned long long)address,
                         why);
        return false;
    }
    if (copy->map.rank != more[MORE_RANK]) {
        return fail(warp, in, lane, address, "has another rank than the instruction");
    }
    for (unsigned i = 0; i < copy->map.rank; i++) {
        copy->begin[i] = SLOT(int32_t, more[MORE_COORDINATES + i])[lane];
    }
    return true;
}

/* It is allowed, and hardly ever meant. */
static void note_outside(struct soft_warp *warp, const struct soft_async_op *copy, uint32_t lane) {
    const struct soft_tensor_map *map = &copy->map;
    for (unsigned i = 0; i < map->rank; i++) {
        int64_t first = copy->begin[i], size = (int64_t)map->last[i] + 1;
        if (first < size && first + map->box[i] > 0) continue;
        struct soft_finding finding = {
            .kind = "box outside tensor", .lanes = 1u << lane, .minor = true};
        soft_launch_find(warp, copy->in, &finding,
                         "the box begins at %lld along dimension %u, which has %lld elements: "
                         "nothing of it is in the tensor",
                         (long long)first, i, (long long)size);
        return;
    }
}

/* The mbarrier, and for what blocks the copy is. */
static bool read_targets(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                         struct soft_async_op *copy) {
    const uint32_t *more = warp->split->frame->code->operands + in->more;
    if ((in->mode & SOFT_BULK_MULTICAST) != 0 && SLOT(uint32_t, more[MORE_BLOCKS])[lane] != 1) {
        soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, 0,
                         "a multicast copy to the blocks 0x%x of a cluster of one block",
                         SLOT(uint32_t, more[MORE_BLOCKS])[lane]);
        return false;
    }
    uint32_t object = SLOT(uint32_t, more[MORE_MBARRIER])[lane] + more[MORE_MBARRIER_OFFSET];
    return soft_mbarrier_find(warp, in, lane, object, SOFT_SPACE_SHARED, &copy->mbarrier[lane]);
}

/* Whether the box fits into shared memory at an address. */
static bool find_box(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                     struct soft_async_op *copy, uint32_t shared) {
    struct soft_place place;
    bool out = (in->mode & SOFT_BULK_GROUP) != 0;
    uint64_t extent = soft_tensor_box_extent(&copy->map);
    if (extent > warp->cta->shared_bytes) {
        soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_ADDRESS, 1u << lane, shared,
                         "a box of %llu bytes, and the block has %u bytes of shared memory",
                         (unsigned long long)extent, warp->cta->shared_bytes);
        return false;
    }
    copy->bytes[lane] = (uint32_t)soft_tensor_box_bytes(&copy->map);
    return soft_access_range(warp, in, lane, shared, (unsigned)extent, ALIGNMENT, SOFT_SPACE_SHARED,
                             out ? SOFT_ACCESS_READ : SOFT_ACCESS_WRITE, &place);
}

static bool add_lane(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                     struct soft_async_op *copy) {
    bool out = (in->mode & SOFT_BULK_GROUP) != 0;
    uint32_t shared = (uint32_t)(SLOT(uint32_t, in->a)[lane] + (uint64_t)in->u.immediate);
    if (!read_map(warp, in, lane, copy)) return false;
    copy->mask = 1u << lane;
    copy->destination[lane] = copy->source[lane] = shared;
    if (!find_box(warp, in, lane, copy, shared)) return false;
    note_outside(warp, copy, lane);
    return out || read_targets(warp, in, lane, copy);
}

const struct soft_instruction *soft_tensor_copy(struct soft_warp *warp,
                                                const struct soft_instruction *in) {
    bool out = (in->mode & SOFT_BULK_GROUP) != 0;
    unsigned list = out ? SOFT_COPIES_BULK : SOFT_COPIES_MBARRIER;
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        struct soft_async_op *copy = soft_async_op_new(warp, in);
        if (copy == NULL) return NULL;
        copy->group = warp->async->lists[list].committed[lane];
        copy->to = out ? SOFT_SPACE_GLOBAL : SOFT_SPACE_SHARED;
        copy->from = out ? SOFT_SPACE_SHARED : SOFT_SPACE_GLOBAL;
        copy->alignment = ALIGNMENT;
        copy->width = 0;
        if (!add_lane(warp, in, lane, copy)) {
            free(copy);
            return NULL;
        }
        if (!soft_async_op_begin(warp, copy, list)) return NULL;
    }
    return in + 1;
}

/* ---- carrying out ---- */

/* The PTX type of a map's elements in a sum, by CUtensorMapDataType; 0: none has sums. */
static enum ptx_modifier type_of_sum(const struct soft_tensor_map *map) {
    static const enum ptx_modifier types[] = {
        PTX_b8,  PTX_b16, PTX_u32,  PTX_s32, PTX_u64, PTX_s64, PTX_f16,
        PTX_f32, PTX_f64, PTX_bf16, PTX_f32, PTX_b32, PTX_b32,
    };
    return types[map->type];
}

static bool has_sum(enum soft_atomic operation, enum ptx_modifier type) {
    bool whole = type == PTX_u32 || type == PTX_s32 || type == PTX_u64 || type == PTX_s64;
    bool half = type == PTX_f16 || type == PTX_bf16;
    switch (operation) {
    case SOFT_ATOMIC_ADD:
        return (whole && type != PTX_s64) || half || type == PTX_f32;
    case SOFT_ATOMIC_MIN:
    case SOFT_ATOMIC_MAX:
        return whole || half;
    case SOFT_ATOMIC_INC:
    case SOFT_ATOMIC_DEC:
        return type == PTX_u32;
    default:
        return whole;
    }
}

/* What is out of bounds: zeros, or a NaN of the type. */
static void fill(const struct soft_tensor_map *map, uint8_t *bytes, unsigned count) {
    static const uint8_t nan64[8] = {255, 255, 255, 255, 255, 255, 255, 127};
    unsigned each = map->element_bytes;
    for (unsigned i = 0; i < count; i++) {
        bytes[i] = map->fills_nan ? nan64[8 - each + i % each] : 0;
    }
}

/* Reads or writes the row's place in shared memory, chunk by chunk. */
static void move_shared(struct soft_cta *cta, const struct soft_tensor_map *map, uint32_t at,
                        uint8_t *bytes, unsigned count, bool writes) {
    for (unsigned i = 0; i < count; i += CHUNK) {
        uint32_t place = soft_tensor_swizzled(map, at + i);
        if (writes) {
            memcpy(cta->shared + place, bytes + i, CHUNK);
            soft_shadow_mark(cta->shared_shadow, place, CHUNK);
            soft_layout_note(cta, place, map->swizzle);
        } else {
            memcpy(bytes + i, cta->shared + place, CHUNK);
        }
    }
}

static bool reduce_row(struct soft_warp *warp, const struct soft_async_op *copy, uint32_t lane,
                       uint64_t address, const uint8_t *bytes, unsigned count) {
    enum ptx_modifier type = type_of_sum(&copy->map);
    uint32_t operation = copy->in->mode >> SOFT_BULK_OPERATION_SHIFT & 0xff;
    bool bits = operation >= SOFT_ATOMIC_AND;
    if (!has_sum((enum soft_atomic)operation, type)) {
        soft_launch_fail(warp, copy->in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, address,
                         "elements of the tensor map's type %u have no such reduction",
                         copy->map.type);
        return false;
    }
    if (bits) type = copy->map.element_bytes == 8 ? PTX_b64 : PTX_b32;
    struct soft_instruction like = *copy->in;
    like.mode |= (uint32_t)type << SOFT_BULK_TYPE_SHIFT;
    const struct soft_async_op sum = {.in = &like, .to = SOFT_SPACE_GLOBAL};
    soft_reduce(warp, &sum, address, bytes, count);
    return true;
}

static bool move_row(struct soft_warp *warp, const struct soft_async_op *copy, uint32_t lane,
                     const struct soft_tensor_walk *row) {
    uint8_t bytes[ROW_MAX];
    const struct soft_tensor_map *map = &copy->map;
    bool out = copy->to == SOFT_SPACE_GLOBAL;
    uint32_t shared = (uint32_t)copy->source[lane] + row->at;
    struct soft_place place = {0};
    if (row->bytes > 0) {
        if (!soft_access_range(warp, copy->in, lane, row->address, row->bytes, map->element_bytes,
                               SOFT_SPACE_GLOBAL, out ? SOFT_ACCESS_WRITE : SOFT_ACCESS_READ,
                               &place)) {
            return false;
        }
        warp->views[copy->in->site] = place.view;
    }
    if (!out) {
        fill(map, bytes, row->row_bytes);
        if (row->bytes > 0) {
            soft_access_check_read(warp, copy->in, lane, row->address, row->bytes, &place);
            memcpy(bytes + row->from, place.host, row->bytes);
        }
        move_shared(warp->cta, map, shared, bytes, row->row_bytes, true);
        return true;
    }
    move_shared(warp->cta, map, shared, bytes, row->row_bytes, false);
    if (row->bytes == 0) return true;
    soft_shadow_mark(place.shadow, place.offset, row->bytes);
    if ((copy->in->mode & SOFT_BULK_REDUCE) != 0) {
        return reduce_row(warp, copy, lane, row->address, bytes + row->from, row->bytes);
    }
    memcpy(place.host, bytes + row->from, row->bytes);
    return true;
}

bool soft_tensor_carry_out(struct soft_warp *warp, const struct soft_async_op *copy,
                           uint32_t lane) {
    struct soft_tensor_walk row;
    soft_tensor_walk_begin(&row, &copy->map, copy->begin);
    while (soft_tensor_walk_next(&row)) {
        if (!move_row(warp, copy, lane, &row)) return false;
    }
    return true;
}

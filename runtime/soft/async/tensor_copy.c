/*
 * Copies of boxes of tensors between global and shared memory. Source: PTX ISA 9.0, sections 5.5
 * (tensors), 9.7.9.27.1.2 (cp.async.bulk.tensor), 9.7.9.27.1.3 (cp.reduce.async.bulk.tensor) and
 * 9.7.9.27.1.4 (cp.async.bulk.prefetch.tensor).
 *
 * The rows of a box follow each other in shared memory. If the map has a swizzle, a row takes at
 * least the bytes of the swizzle span, and the address bits select where in its 128 bytes a chunk
 * of 16 bytes is stored. Elements outside the tensor are zeros or NaN, and count as arrived bytes.
 * The map is read when the copy starts, the elements when it is executed. A multicast copy is one
 * copy per block.
 *
 * Where the manual is silent, the device does what an H200 does (README.md): a box must begin at a
 * multiple of 16 bytes of a row; a stored box must not begin before the tensor; and a stored tile
 * is written in whole units of 16 bytes.
 */
#include "async.h"

#include "tollens/cuda_abi.h"
#include "machine/cluster_member.h"
#include "machine/finding.h"
#include "machine/shared_layout.h"
#include "ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

enum { MORE_OFFSET, MORE_RANK, MORE_MBARRIER, MORE_MBARRIER_OFFSET, MORE_BLOCKS, MORE_COORDINATES };
enum { ALIGNMENT = 128, MAP_ALIGNMENT = 64, CHUNK = SOFT_TENSOR_CHUNK };
enum { ROW_MAX = SOFT_TENSOR_BOX_MAX * SOFT_TENSOR_ELEMENT_MAX };

static bool tensor_copy_fail(struct soft_warp *warp, const struct soft_instruction *in,
                             uint32_t lane, uint64_t address, const char *what) {
    soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, address,
                     "the tensor map at 0x%llx %s", (unsigned long long)address, what);
    return false;
}

static uint64_t map_address(const struct soft_warp *warp, const struct soft_instruction *in,
                            uint32_t lane) {
    const uint32_t *more = warp->split->frame->code->operands + in->more;
    return SLOT(uint64_t, in->b)[lane] + (uint64_t)(int64_t)(int32_t)more[MORE_OFFSET];
}

static bool read_map(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                     struct soft_tensor_map *map) {
    const uint32_t *more = warp->split->frame->code->operands + in->more;
    uint64_t address = map_address(warp, in, lane);
    bool im2col = (in->mode & SOFT_BULK_IM2COL) != 0;
    struct soft_place place;
    char why[160];
    uint64_t resolved = address;
    enum soft_access_space space = soft_access_resolve(&resolved);
    if (space == SOFT_SPACE_SHARED || space == SOFT_SPACE_LOCAL) {
        return tensor_copy_fail(warp, in, lane, address,
                                "is in shared or local memory, where no copy reads it");
    }
    if (!soft_access_range(warp, in, lane, address, sizeof *map, MAP_ALIGNMENT, SOFT_SPACE_GENERIC,
                           SOFT_ACCESS_READ, &place)) {
        return false;
    }
    memcpy(map, place.host, sizeof *map);
    if (map->mark != SOFT_TENSOR_MAP_MARK) {
        return tensor_copy_fail(warp, in, lane, address, "is none: no call of this driver made it");
    }
    if (!soft_tensor_map_is_valid(map, why, sizeof why)) {
        soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, address,
                         "the tensor map at 0x%llx is not valid: %s", (unsigned long long)address,
                         why);
        return false;
    }
    if (map->rank != more[MORE_RANK]) {
        return tensor_copy_fail(warp, in, lane, address, "has another rank than the instruction");
    }
    if ((map->im2col != 0) != im2col) {
        return tensor_copy_fail(warp, in, lane, address,
                                im2col ? "is for tiles, and the instruction copies by im2col"
                                       : "is for im2col, and the instruction copies tiles");
    }
    return true;
}

/* The coordinates, and the im2col offsets of loads. */
static bool read_place(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                       struct soft_box_place *place) {
    const uint32_t *more = warp->split->frame->code->operands + in->more;
    uint32_t rank = more[MORE_RANK], most = (1u << soft_tensor_image_bits(rank)) - 1;
    *place = (struct soft_box_place){{0}, {0}};
    for (uint32_t i = 0; i < rank; i++) {
        place->begin[i] = SLOT(int32_t, more[MORE_COORDINATES + i])[lane];
    }
    if ((in->mode & SOFT_BULK_IM2COL) == 0 || (in->mode & SOFT_BULK_GROUP) != 0) return true;
    for (uint32_t i = 0; i + 2 < rank; i++) {
        uint32_t offset = SLOT(uint32_t, more[MORE_COORDINATES + rank + i])[lane] & UINT16_MAX;
        if (offset > most) {
            soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, 0,
                             "an im2col offset of %u along dimension %u, not 0 to %u", offset,
                             i + 1, most);
            return false;
        }
        place->offsets[i] = (uint16_t)offset;
    }
    return true;
}

/* Whether the hardware copies a tile at this place. If not, the launch has failed. */
static bool tensor_copy_check_place(struct soft_warp *warp, const struct soft_async_op *copy,
                                    uint32_t lane) {
    const struct soft_tensor_map *map = &copy->map;
    bool writes = copy->to == SOFT_SPACE_GLOBAL;
    long long first = copy->place.begin[0], byte = first * map->element_bytes;
    unsigned dimension = 0;
    if (map->interleave == 0 && byte % CHUNK != 0) {
        soft_launch_fail(warp, copy->in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, 0,
                         "the box begins at %lld along dimension 0, which is byte %lld of the "
                         "tensor's row, not a multiple of 16",
                         first, byte);
        return false;
    }
    for (unsigned i = 0; i < map->rank && writes; i++) {
        if (copy->place.begin[i] >= 0) continue;
        soft_launch_fail(warp, copy->in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, 0,
                         "the box begins at %d along dimension %u, before the tensor, where only "
                         "loads may begin",
                         copy->place.begin[i], i);
        return false;
    }
    for (unsigned i = 0; i + 2 < map->rank && writes && map->im2col; i++) {
        if (map->lower[i] >= 0) continue;
        soft_launch_fail(warp, copy->in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, 0,
                         "the bounding box begins at %d, before the tensor, which only loads allow",
                         map->lower[i]);
        return false;
    }
    if (map->im2col && !soft_tensor_is_in_bounds(map, &copy->place, &dimension)) {
        unsigned k = dimension - soft_tensor_first(map);
        soft_launch_fail(warp, copy->in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, 0,
                         "the filter begins at %d along dimension %u, and the bounding box goes "
                         "from %d to %lld",
                         copy->place.begin[dimension], dimension, map->lower[k],
                         (long long)map->last[dimension] + map->upper[k]);
        return false;
    }
    return true;
}

/* It is allowed, and hardly ever meant. */
static void note_outside(struct soft_warp *warp, const struct soft_async_op *copy, uint32_t lane) {
    const struct soft_tensor_map *map = &copy->map;
    for (unsigned i = 0; i < map->rank; i++) {
        int64_t first = copy->place.begin[i], size = (int64_t)map->last[i] + 1;
        if (map->im2col && i >= soft_tensor_first(map) &&
            i < soft_tensor_first(map) + map->rank - 2) {
            continue;
        }
        bool one = (map->im2col && i > 0) || (map->interleave != 0 && i + 2 == map->rank);
        if (first < size && first + (one ? 1 : map->box[i]) > 0) continue;
        struct soft_finding finding = {
            .kind = "box outside tensor", .lanes = 1u << lane, .minor = true};
        soft_launch_find(warp, copy->in, &finding,
                         "the box begins at %lld along dimension %u, which has %lld elements: "
                         "nothing of it is in the tensor",
                         (long long)first, i, (long long)size);
        return;
    }
}

/* Finds the box's place in shared memory, of the block itself or of another one. false: it does not
 * fit there, and the launch has failed. */
static bool find_box(struct soft_warp *warp, const struct soft_async_op *copy, uint32_t lane,
                     struct soft_place *place) {
    bool out = copy->to == SOFT_SPACE_GLOBAL;
    uint64_t extent = soft_tensor_box_extent(&copy->map);
    uint64_t address = out ? copy->source[lane] : copy->destination[lane];
    if (extent > warp->cta->shared_bytes) {
        soft_launch_fail(warp, copy->in, CUDA_ERROR_ILLEGAL_ADDRESS, 1u << lane, address,
                         "a box of %llu bytes, and the block has %u bytes of shared memory",
                         (unsigned long long)extent, warp->cta->shared_bytes);
        return false;
    }
    return soft_access_range(warp, copy->in, lane, address, (unsigned)extent, ALIGNMENT,
                             out ? copy->from : copy->to,
                             out ? SOFT_ACCESS_READ : SOFT_ACCESS_WRITE, place);
}

/* The copy's destination and mbarrier: in the block of a rank, if it is multicast. */
static bool tensor_copy_read_targets(struct soft_warp *warp, const struct soft_instruction *in,
                                     uint32_t lane, uint32_t rank, struct soft_async_op *copy) {
    const uint32_t *more = warp->split->frame->code->operands + in->more;
    uint32_t object = SLOT(uint32_t, more[MORE_MBARRIER])[lane] + more[MORE_MBARRIER_OFFSET];
    if ((in->mode & SOFT_BULK_MULTICAST) != 0) {
        copy->destination[lane] = soft_async_in_block(warp->cta, rank, copy->destination[lane]);
        object = soft_async_in_block(warp->cta, rank, object);
    }
    return soft_async_find_mbarrier(warp, in, copy, lane, object);
}

static bool tensor_copy_add_lane(struct soft_warp *warp, const struct soft_instruction *in,
                                 uint32_t lane, uint32_t rank, struct soft_async_op *copy) {
    bool out = (in->mode & SOFT_BULK_GROUP) != 0;
    struct soft_place place;
    copy->mask = 1u << lane;
    copy->destination[lane] = copy->source[lane] =
        (uint32_t)(SLOT(uint32_t, in->a)[lane] + (uint64_t)in->u.immediate);
    copy->map_address = map_address(warp, in, lane);
    if (!read_map(warp, in, lane, &copy->map) || !read_place(warp, in, lane, &copy->place)) {
        return false;
    }
    if (!tensor_copy_check_place(warp, copy, lane)) return false;
    if (!out && !tensor_copy_read_targets(warp, in, lane, rank, copy)) return false;
    if (!find_box(warp, copy, lane, &place)) return false;
    copy->bytes[lane] = (uint32_t)soft_tensor_box_bytes(&copy->map);
    note_outside(warp, copy, lane);
    return true;
}

/* The copy of a lane, into or out of the shared memory of one block. */
static bool tensor_copy_begin_copy(struct soft_warp *warp, const struct soft_instruction *in,
                                   uint32_t lane, uint32_t rank) {
    bool out = (in->mode & SOFT_BULK_GROUP) != 0;
    unsigned list = out ? SOFT_COPIES_BULK : SOFT_COPIES_MBARRIER;
    struct soft_async_op *copy = soft_async_op_new(warp, in);
    if (copy == NULL) return false;
    copy->group = warp->async->lists[list].committed[lane];
    copy->to = out                                   ? SOFT_SPACE_GLOBAL
               : (in->mode & SOFT_BULK_CLUSTER) != 0 ? SOFT_SPACE_CLUSTER
                                                     : SOFT_SPACE_SHARED;
    copy->from = out ? SOFT_SPACE_SHARED : SOFT_SPACE_GLOBAL;
    copy->alignment = ALIGNMENT;
    copy->width = 0;
    if (!tensor_copy_add_lane(warp, in, lane, rank, copy)) {
        free(copy);
        return false;
    }
    return soft_async_op_begin(warp, copy, list);
}

/* A prefetch does nothing, but its map must be valid. */
static bool tensor_copy_prefetch(struct soft_warp *warp, const struct soft_instruction *in,
                                 uint32_t lane) {
    struct soft_async_op like = {.in = in, .to = SOFT_SPACE_SHARED};
    return read_map(warp, in, lane, &like.map) && read_place(warp, in, lane, &like.place) &&
           tensor_copy_check_place(warp, &like, lane);
}

const struct soft_instruction *soft_tensor_copy(struct soft_warp *warp,
                                                const struct soft_instruction *in) {
    const uint32_t *more = warp->split->frame->code->operands + in->more;
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left), blocks = 1;
        if ((in->mode & SOFT_BULK_PREFETCH) != 0) {
            if (!tensor_copy_prefetch(warp, in, lane)) return NULL;
            continue;
        }
        if ((in->mode & SOFT_BULK_MULTICAST) != 0 &&
            !soft_async_blocks(warp, in, lane, SLOT(uint32_t, more[MORE_BLOCKS])[lane], &blocks)) {
            return NULL;
        }
        for (uint32_t rest = blocks; rest != 0; rest &= rest - 1) {
            if (!tensor_copy_begin_copy(warp, in, lane, (uint32_t)__builtin_ctz(rest))) return NULL;
        }
    }
    return in + 1;
}

/* ---- carrying out ---- */

/* The PTX type of a map's elements in a reduction, by CUtensorMapDataType; 0: no reductions. */
static enum ptx_modifier type_of_sum(const struct soft_tensor_map *map) {
    static const enum ptx_modifier types[] = {
        PTX_b8,  PTX_b16, PTX_u32,  PTX_s32, PTX_u64, PTX_s64, PTX_f16,
        PTX_f32, PTX_f64, PTX_bf16, PTX_f32, PTX_f32, PTX_f32,
    };
    return types[map->type];
}

static bool has_sum(enum soft_atomic operation, enum ptx_modifier type) {
    bool whole = type == PTX_u32 || type == PTX_s32 || type == PTX_u64 || type == PTX_s64;
    bool half = type == PTX_f16 || type == PTX_bf16;
    switch (operation) {
    case SOFT_ATOMIC_ADD:
        return (whole && type != PTX_s64) || half || type == PTX_f32 || type == PTX_f64;
    case SOFT_ATOMIC_MIN:
    case SOFT_ATOMIC_MAX:
        return whole || half;
    case SOFT_ATOMIC_INC:
    case SOFT_ATOMIC_DEC:
        return type == PTX_u32;
    default:
        return whole && type != PTX_s64;
    }
}

/* Elements out of bounds: zeros, or a NaN whose 16-bit words are equal for every type. */
static void tensor_copy_fill(const struct soft_tensor_map *map, uint8_t *bytes, unsigned count) {
    static const uint8_t nan[2] = {0xf7, 0x7f};
    for (unsigned i = 0; i < count; i++) bytes[i] = map->fills_nan ? nan[i % 2] : 0;
}

/* Loads of TFLOAT32 are rounded to nearest, ties to even, and a NaN gets all digits; an H200
 * flushes no subnormal number, not even with FTZ. */
static void tensor_copy_convert(const struct soft_tensor_map *map, uint8_t *bytes, unsigned count) {
    enum { TFLOAT32 = 11, CUT_BITS = 13, NAN_BITS = 0x7fffe000 };
    if (map->type < TFLOAT32) return;
    for (unsigned i = 0; i < count; i += sizeof(uint32_t)) {
        uint32_t word;
        memcpy(&word, bytes + i, sizeof word);
        if ((word & 0x7fffffff) > 0x7f800000) {
            word = NAN_BITS;
        } else if ((word & 0x7f800000) != 0x7f800000) {
            word += (1u << (CUT_BITS - 1)) - 1 + (word >> CUT_BITS & 1);
            word &= ~((1u << CUT_BITS) - 1);
        }
        memcpy(bytes + i, &word, sizeof word);
    }
}

/* The place of a box in shared memory, and the owning block. */
struct shared_box {
    struct soft_cta *cta;
    struct soft_place place;
};

/* Reads or writes a row at an offset of a box, chunk by chunk. */
static void move_shared(const struct shared_box *box, const struct soft_tensor_map *map,
                        uint32_t at, uint8_t *bytes, unsigned count, bool writes) {
    const struct soft_place *place = &box->place;
    for (unsigned i = 0; i < count; i += CHUNK) {
        uint32_t to = soft_tensor_swizzled(map, (uint32_t)place->offset + at + i);
        uint8_t *host = place->host - place->offset + to;
        if (writes) {
            memcpy(host, bytes + i, CHUNK);
            soft_shadow_mark(place->shadow, to, CHUNK);
            soft_layout_note(box->cta, to, map->swizzle);
        } else {
            memcpy(bytes + i, host, CHUNK);
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

/* The hardware does this too, and may overwrite unrelated data. */
static void note_behind(struct soft_warp *warp, const struct soft_async_op *copy, uint32_t lane,
                        const struct soft_tensor_walk *row) {
    uint64_t bytes = ((uint64_t)copy->map.last[0] + 1) * copy->map.element_bytes;
    uint64_t address = row->address + row->bytes - row->behind;
    struct soft_finding finding = {
        .kind = "box behind row", .lanes = 1u << lane, .address = address, .minor = true};
    if (row->behind == 0) return;
    soft_launch_find(warp, copy->in, &finding,
                     "a row of %llu bytes is written in units of 16 bytes, so the %u bytes after "
                     "it at 0x%llx are %s",
                     (unsigned long long)bytes, row->behind, (unsigned long long)address,
                     (copy->in->mode & SOFT_BULK_REDUCE) != 0 ? "changed" : "overwritten");
}

/* Finds the part of a row in global memory. */
static bool tensor_copy_find_row(struct soft_warp *warp, const struct soft_async_op *copy,
                                 uint32_t lane, const struct soft_tensor_walk *row,
                                 struct soft_place *place) {
    bool out = copy->to == SOFT_SPACE_GLOBAL;
    if (row->bytes == 0) return true;
    if (!soft_access_range(warp, copy->in, lane, row->address, row->bytes, copy->map.element_bytes,
                           SOFT_SPACE_GLOBAL, out ? SOFT_ACCESS_WRITE : SOFT_ACCESS_READ, place)) {
        return false;
    }
    warp->views[copy->in->site] = place->view;
    return true;
}

static bool tensor_copy_load_row(struct soft_warp *warp, const struct soft_async_op *copy,
                                 uint32_t lane, const struct soft_tensor_walk *row,
                                 const struct shared_box *shared) {
    uint8_t bytes[ROW_MAX];
    struct soft_place place = {0};
    if (!tensor_copy_find_row(warp, copy, lane, row, &place)) return false;
    tensor_copy_fill(&copy->map, bytes, row->row_bytes);
    if (row->bytes > 0) {
        soft_access_check_read(warp, copy->in, lane, row->address, row->bytes, &place);
        memcpy(bytes + row->from, place.host, row->bytes);
        tensor_copy_convert(&copy->map, bytes + row->from, row->bytes);
    }
    move_shared(shared, &copy->map, row->at, bytes, row->row_bytes, true);
    return true;
}

static bool store_row(struct soft_warp *warp, const struct soft_async_op *copy, uint32_t lane,
                      const struct soft_tensor_walk *row, const struct shared_box *shared) {
    uint8_t bytes[ROW_MAX];
    struct soft_place place = {0};
    if (row->bytes == 0) return true;
    note_behind(warp, copy, lane, row);
    if (!tensor_copy_find_row(warp, copy, lane, row, &place)) return false;
    move_shared(shared, &copy->map, row->at, bytes, row->row_bytes, false);
    soft_shadow_mark(place.shadow, place.offset, row->bytes);
    if ((copy->in->mode & SOFT_BULK_REDUCE) != 0) {
        return reduce_row(warp, copy, lane, row->address, bytes + row->from, row->bytes);
    }
    memcpy(place.host, bytes + row->from, row->bytes);
    return true;
}

bool soft_tensor_carry_out(struct soft_warp *warp, const struct soft_async_op *copy,
                           uint32_t lane) {
    bool out = copy->to == SOFT_SPACE_GLOBAL;
    struct shared_box shared = {.cta = warp->cta};
    struct soft_tensor_walk row;
    uint32_t offset;
    if (!find_box(warp, copy, lane, &shared.place)) return false;
    /* The bytes between separate rows are not read. */
    bool gaps = soft_tensor_row_pitch(&copy->map) != soft_tensor_row_bytes(&copy->map);
    if (out && !gaps) {
        soft_access_check_read(warp, copy->in, lane, copy->source[lane], copy->bytes[lane],
                               &shared.place);
    } else if (!out) {
        shared.cta = soft_cluster_find(warp->cta, (uint32_t)copy->destination[lane], &offset);
    }
    soft_tensor_walk_begin(&row, &copy->map, &copy->place, out);
    while (soft_tensor_walk_next(&row)) {
        if (!(out ? store_row : tensor_copy_load_row)(warp, copy, lane, &row, &shared))
            return false;
    }
    return true;
}

/*
 * Instructions on textures and surfaces: the object, a tuple of registers, a tuple of coordinates.
 * Source: PTX ISA 9.0, section 9.7.10 (Texture Instructions) and 9.7.11 (Surface Instructions).
 *
 *     tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];
 *
 * A name instead of the object is a .texref or a .surfref, whose address is used: the texture unit
 * finds the object that is bound to it.
 */
#include "lower.h"
#include "modes.h"
#include "texture_mode.h"

enum { COORDINATES_MAX = 4 };

struct parts {
    uint32_t object;
    uint32_t data[4];
    unsigned data_count;
    bool writes;                                                 /* data are results */
    uint32_t coordinates[COORDINATES_MAX], offsets[3], level[6]; /* or two gradients */
    unsigned coordinate_count, offset_count, level_count;
};

static enum soft_geometry geometry_of(const struct ptx_opcode *opcode) {
    static const enum ptx_modifier words[] = {PTX_d1,  PTX_d2,   PTX_d3,   PTX_a1d,
                                              PTX_a2d, PTX_cube, PTX_acube};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (ptx_has(opcode, words[i])) return (enum soft_geometry)i;
    }
    return SOFT_GEOMETRY_1D;
}

/* [object] or [object, coordinates] */
static bool texture_read_object(struct soft_lowering *lowering, const struct ptx_operand *operand,
                                unsigned count, uint32_t *object) {
    if (operand->kind != PTX_OPERAND_ADDRESS || operand->count != count) {
        return count == 1 ? LOWER_FAIL(lowering, operand, "expected an object in brackets")
                          : LOWER_FAIL(lowering, operand,
                                       "expected an object and coordinates in brackets; separate "
                                       "samplers are not supported by this device");
    }
    const struct ptx_operand *base = &operand->items[0];
    bool named = base->kind == PTX_OPERAND_SYMBOL && base->symbol->kind == PTX_VARIABLE;
    if (named && !base->symbol->is.variable->is_opaque) {
        return LOWER_FAIL(lowering, base, "'%.*s' is not a texture or surface reference",
                          (int)base->symbol->length, base->symbol->name);
    }
    return soft_source(lowering, base, 64, PTX_u64, object);
}

/* A tuple of at least count registers, of which the first count are read. One alone needs no
 * braces. */
static bool read_tuple(struct soft_lowering *lowering, const struct ptx_operand *operand,
                       unsigned count, const enum ptx_modifier *types, uint32_t *values) {
    bool vector = operand->kind == PTX_OPERAND_VECTOR;
    const struct ptx_operand *items = vector ? operand->items : operand;
    unsigned there = vector ? operand->count : 1;
    if (there < count || there > COORDINATES_MAX) {
        return LOWER_FAIL(lowering, operand, "expected %u values, not %u", count, there);
    }
    for (unsigned i = 0; i < count; i++) {
        if (!soft_source(lowering, &items[i], 32, types[i], &values[i])) return false;
    }
    return true;
}

static bool read_coordinates(struct soft_lowering *lowering, const struct ptx_operand *operand,
                             enum soft_geometry geometry, enum ptx_modifier type,
                             struct parts *parts) {
    enum ptx_modifier types[COORDINATES_MAX] = {type, type, type, type};
    if (soft_geometry_is_layered(geometry)) types[0] = PTX_u32;
    parts->coordinate_count =
        soft_geometry_dimensions(geometry) + (soft_geometry_is_layered(geometry) ? 1 : 0);
    return read_tuple(lowering, &operand->items[1], parts->coordinate_count, types,
                      parts->coordinates);
}

static bool texture_read_data(struct soft_lowering *lowering, const struct ptx_operand *operand,
                              unsigned count, unsigned bits, enum ptx_modifier type,
                              struct parts *parts) {
    bool vector = operand->kind == PTX_OPERAND_VECTOR;
    const struct ptx_operand *items = vector ? operand->items : operand;
    unsigned there = vector ? operand->count : 1;
    if (there != count) {
        return LOWER_FAIL(lowering, operand, "expected %u registers, not %u", count, there);
    }
    parts->data_count = count;
    for (unsigned i = 0; i < count; i++) {
        bool ok = parts->writes ? soft_destination(lowering, &items[i], bits, type, &parts->data[i])
                                : soft_source(lowering, &items[i], bits, type, &parts->data[i]);
        if (!ok) return false;
    }
    return true;
}

static bool texture_emit(struct soft_lowering *lowering, enum soft_op op, uint32_t mode,
                         const struct parts *parts) {
    struct soft_draft *draft = soft_draft(lowering, op);
    if (draft == NULL) return false;
    draft->mode = mode | parts->data_count << SOFT_TEXTURE_DATA_SHIFT;
    draft->has_site = true;
    bool ok = soft_extra(lowering, draft, SOFT_EXTRA_USE, parts->object);
    for (unsigned i = 0; ok && i < parts->data_count; i++) {
        ok = soft_extra(lowering, draft, parts->writes ? SOFT_EXTRA_DEFINE : SOFT_EXTRA_USE,
                        parts->data[i]);
    }
    for (unsigned i = 0; ok && i < parts->coordinate_count; i++) {
        ok = soft_extra(lowering, draft, SOFT_EXTRA_USE, parts->coordinates[i]);
    }
    for (unsigned i = 0; ok && i < parts->offset_count; i++) {
        ok = soft_extra(lowering, draft, SOFT_EXTRA_USE, parts->offsets[i]);
    }
    for (unsigned i = 0; ok && i < parts->level_count; i++) {
        ok = soft_extra(lowering, draft, SOFT_EXTRA_USE, parts->level[i]);
    }
    return ok;
}

/* The operands after the coordinates: a level or gradients; offsets. */
static bool read_rest(struct soft_lowering *lowering, const struct ptx_instruction *in,
                      enum soft_geometry geometry, struct parts *parts) {
    static const enum ptx_modifier floats[] = {PTX_f32, PTX_f32, PTX_f32, PTX_f32};
    static const enum ptx_modifier whole[] = {PTX_s32, PTX_s32, PTX_s32};
    unsigned dimensions = soft_geometry_dimensions(geometry);
    uint32_t next = 2;
    unsigned gradients = ptx_has(in->opcode, PTX_grad) ? 2 : 0;
    if (ptx_has(in->opcode, PTX_level)) {
        enum ptx_modifier type = in->opcode->type[1] == PTX_f32 ? PTX_f32 : PTX_s32;
        if (next >= in->operand_count) return LOWER_FAIL(lowering, in, "expected a level");
        if (!soft_source(lowering, &in->operands[next++], 32, type, parts->level)) return false;
        parts->level_count = 1;
    }
    for (unsigned i = 0; i < gradients; i++) {
        if (next >= in->operand_count) return LOWER_FAIL(lowering, in, "expected two gradients");
        uint32_t *gradient = parts->level + i * dimensions;
        if (!read_tuple(lowering, &in->operands[next++], dimensions, floats, gradient)) {
            return false;
        }
        parts->level_count += dimensions;
    }
    if (next == in->operand_count) return true;
    bool cube = geometry == SOFT_GEOMETRY_CUBE || geometry == SOFT_GEOMETRY_ACUBE;
    const struct ptx_operand *last = &in->operands[next];
    bool compares = last->kind == PTX_OPERAND_REGISTER && ptx_types[last->type].kind[0] == 'F';
    if (cube || compares || next + 1 < in->operand_count) {
        return LOWER_FAIL(lowering, last, "comparison of depths is not supported by this device");
    }
    parts->offset_count = dimensions;
    return read_tuple(lowering, last, dimensions, whole, parts->offsets);
}

bool soft_lower_tex(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum ptx_modifier type = in->opcode->type[0], coordinates = in->opcode->type[1];
    enum soft_geometry geometry = geometry_of(in->opcode);
    struct parts parts = {.writes = true};
    uint32_t mode = (uint32_t)geometry;
    if (in->operand_count < 2) return LOWER_FAIL(lowering, in, "expected at least two operands");
    if (coordinates == PTX_f32) mode |= SOFT_TEXTURE_FLOAT;
    if (type == PTX_f16) mode |= SOFT_TEXTURE_F16;
    if (type == PTX_f16x2) mode |= SOFT_TEXTURE_F16X2;
    static const enum ptx_modifier components[] = {PTX_r, PTX_g, PTX_b, PTX_a};
    for (uint32_t i = 0; i < 4; i++) {
        if (ptx_has(in->opcode, components[i])) mode |= i << SOFT_TEXTURE_COMPONENT_SHIFT;
    }
    if (!texture_read_data(lowering, &in->operands[0], type == PTX_f16x2 ? 2 : 4, soft_bits(type),
                           type, &parts) ||
        !texture_read_object(lowering, &in->operands[1], 2, &parts.object) ||
        !read_coordinates(lowering, &in->operands[1], geometry, coordinates, &parts) ||
        !read_rest(lowering, in, geometry, &parts)) {
        return false;
    }
    if (parts.offset_count > 0) mode |= SOFT_TEXTURE_OFFSETS;
    if (parts.level_count == 1 && !ptx_has(in->opcode, PTX_grad)) mode |= SOFT_TEXTURE_LEVEL;
    if (ptx_has(in->opcode, PTX_grad)) mode |= SOFT_TEXTURE_GRADIENTS;
    return texture_emit(lowering, soft_first_op(in), mode, &parts);
}

bool soft_lower_txq(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    static const enum ptx_modifier words[] = {PTX_width,         PTX_height,
                                              PTX_depth,         PTX_channel_data_type,
                                              PTX_channel_order, PTX_normalized_coords,
                                              PTX_array_size,    PTX_num_mipmap_levels,
                                              PTX_num_samples};
    bool level = ptx_has(in->opcode, PTX_level), surface = in->opcode->row->name[0] == 's';
    struct parts parts = {.writes = true};
    uint32_t mode = surface ? SOFT_TEXTURE_SURFACE : 0;
    if (in->operand_count != (level ? 3u : 2u)) {
        return LOWER_FAIL(lowering, in, "wrong number of operands");
    }
    if (level) {
        mode |= SOFT_TEXTURE_LEVEL;
        parts.level_count = 1;
    }
    for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (ptx_has(in->opcode, words[i])) mode |= i << SOFT_TEXTURE_QUERY_SHIFT;
    }
    return texture_read_data(lowering, &in->operands[0], 1, 32, PTX_b32, &parts) &&
           texture_read_object(lowering, &in->operands[1], 1, &parts.object) &&
           (!level || soft_source(lowering, &in->operands[2], 32, PTX_s32, parts.level)) &&
           texture_emit(lowering, SOFT_OP_txq, mode, &parts);
}

/* The mode of an access to a surface, except for the number of components. */
static uint32_t surface_mode(const struct ptx_opcode *opcode) {
    uint32_t mode = (uint32_t)geometry_of(opcode) | SOFT_TEXTURE_SURFACE;
    mode |= ptx_types[opcode->type[0]].bits / 8u << SOFT_TEXTURE_BYTES_SHIFT;
    if (ptx_has(opcode, PTX_clamp)) mode |= SOFT_TEXTURE_CLAMP;
    if (ptx_has(opcode, PTX_zero)) mode |= SOFT_TEXTURE_ZERO;
    if (ptx_has(opcode, PTX_p)) mode |= SOFT_TEXTURE_FORMATTED;
    return mode;
}

static unsigned surface_count(const struct ptx_opcode *opcode) {
    return ptx_has(opcode, PTX_v2) ? 2 : ptx_has(opcode, PTX_v4) ? 4 : 1;
}

static bool lower_surface(struct soft_lowering *lowering, const struct ptx_instruction *in,
                          uint32_t mode, unsigned address, unsigned data, unsigned count,
                          bool writes) {
    enum ptx_modifier type = in->opcode->type[0];
    struct parts parts = {.writes = writes};
    if (in->operand_count != 2) return LOWER_FAIL(lowering, in, "expected two operands");
    if (ptx_types[type].bits / 8u * count > 16) {
        return LOWER_FAIL(lowering, in, "the vector is larger than 16 bytes");
    }
    return texture_read_data(lowering, &in->operands[data], count, soft_bits(type), type, &parts) &&
           texture_read_object(lowering, &in->operands[address], 2, &parts.object) &&
           read_coordinates(lowering, &in->operands[address], geometry_of(in->opcode), PTX_s32,
                            &parts) &&
           texture_emit(lowering, soft_first_op(in), mode, &parts);
}

bool soft_lower_suld(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    return lower_surface(lowering, in, surface_mode(in->opcode), 1, 0, surface_count(in->opcode),
                         true);
}

bool soft_lower_sust(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    return lower_surface(lowering, in, surface_mode(in->opcode), 0, 1, surface_count(in->opcode),
                         false);
}

bool soft_lower_sured(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    static const struct {
        enum ptx_modifier word;
        enum soft_atomic operation;
    } words[] = {{PTX_add, SOFT_ATOMIC_ADD},
                 {PTX_min, SOFT_ATOMIC_MIN},
                 {PTX_max, SOFT_ATOMIC_MAX},
                 {PTX_and, SOFT_ATOMIC_AND},
                 {PTX_or, SOFT_ATOMIC_OR}};
    uint32_t mode = surface_mode(in->opcode);
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!ptx_has(in->opcode, words[i].word)) continue;
        mode |= (uint32_t)words[i].operation << SOFT_TEXTURE_OPERATION_SHIFT;
    }
    if (ptx_types[in->opcode->type[0]].kind[0] == 'S') mode |= SOFT_TEXTURE_SIGNED;
    return lower_surface(lowering, in, mode, 0, 1, 1, false);
}

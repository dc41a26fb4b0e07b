/*
 * Loads, stores and atomics: which space, which width, which address.
 * Source: PTX ISA 9.0, sections 6.4.1 (Addresses), 9.7.9.8 (ld),
 * 9.7.9.11 (st), 9.7.13.5 (atom). */
#include "lower.h"

#include "access.h"

static enum soft_access_space space_of(const struct ptx_opcode *opcode) {
    if (ptx_has(opcode, PTX_shared) || ptx_has(opcode, PTX_shared_cta) ||
        ptx_has(opcode, PTX_shared_cluster)) {
        return SOFT_SPACE_SHARED;
    }
    if (ptx_has(opcode, PTX_local)) return SOFT_SPACE_LOCAL;
    if (ptx_has(opcode, PTX_param) || ptx_has(opcode, PTX_param_entry) ||
        ptx_has(opcode, PTX_param_func)) {
        return SOFT_SPACE_PARAM;
    }
    if (ptx_has(opcode, PTX_global) || ptx_has(opcode, PTX_constant)) return SOFT_SPACE_GLOBAL;
    return SOFT_SPACE_GENERIC;
}

/* An address: the value of the base, and the number added to it. */
struct address {
    uint32_t base;
    int64_t offset;
    bool wide;
};

static bool is_variable_of(const struct ptx_variable *variable, enum soft_access_space space) {
    switch ((int)variable->space) {
    case PTX_shared:
        return space == SOFT_SPACE_SHARED;
    case PTX_local:
        return space == SOFT_SPACE_LOCAL;
    case PTX_param:
        return space == SOFT_SPACE_PARAM;
    default:
        return space == SOFT_SPACE_GLOBAL || space == SOFT_SPACE_GENERIC;
    }
}

static bool read_address(struct soft_lowering *lowering, const struct ptx_operand *operand,
                         enum soft_access_space space, struct address *address) {
    if (operand->kind != PTX_OPERAND_ADDRESS || operand->count != 1) {
        return LOWER_FAIL(lowering, operand, "an address in brackets is needed");
    }
    const struct ptx_operand *base = &operand->items[0];
    *address = (struct address){.wide = space != SOFT_SPACE_SHARED};
    unsigned bits = address->wide ? 64 : 32;
    switch (base->kind) {
    case PTX_OPERAND_REGISTER: {
        unsigned own = soft_bits(base->type);
        address->base = base->reg;
        address->offset = base->integer;
        if (own == bits) return true;
        /* Offsets in small spaces come in registers of either width. */
        if (own == 64 && space == SOFT_SPACE_SHARED) {
            address->base = soft_convert(lowering, SOFT_OP_cvt_low_32, 32, base->reg);
            return address->base != SOFT_NO_VALUE;
        }
        if (own == 32 && (space == SOFT_SPACE_LOCAL || space == SOFT_SPACE_PARAM)) {
            address->base = soft_convert(lowering, SOFT_OP_cvt_u64_u32, 64, base->reg);
            return address->base != SOFT_NO_VALUE;
        }
        return LOWER_FAIL(lowering, base, "an address in a register of %u bits", own);
    }
    case PTX_OPERAND_INTEGER:
        address->base = soft_value_constant(lowering, bits, (uint64_t)base->integer);
        return address->base != SOFT_NO_VALUE;
    case PTX_OPERAND_SYMBOL:
        if (base->symbol->kind != PTX_VARIABLE ||
            !is_variable_of(base->symbol->is.variable, space)) {
            return LOWER_FAIL(lowering, base, "'%.*s' is no variable of this space",
                              (int)base->symbol->length, base->symbol->name);
        }
        return soft_variable_address(lowering, base, base->symbol->is.variable, base->integer, bits,
                                     &address->base);
    default:
        return LOWER_FAIL(lowering, base, "this is no address");
    }
}

/* A parameter read at a place known now is a value of the launch. */
static bool parameter_value(struct soft_lowering *lowering, const struct ptx_instruction *in,
                            enum ptx_modifier type, const struct ptx_operand *operand,
                            unsigned component, unsigned bits, uint32_t *value) {
    const struct ptx_operand *base = &operand->items[0];
    const struct ptx_variable *parameter = base->symbol->is.variable;
    uint64_t bytes = ptx_types[type].bits / 8;
    uint64_t at = (uint64_t)base->integer + component * bytes;
    if (at > parameter->bytes || bytes > parameter->bytes - at) {
        return LOWER_FAIL(lowering, in,
                          "%llu bytes at offset %llu lie outside the parameter '%.*s' "
                          "of %llu bytes",
                          (unsigned long long)bytes, (unsigned long long)at,
                          (int)base->symbol->length, base->symbol->name,
                          (unsigned long long)parameter->bytes);
    }
    *value = soft_value_find(lowering, SOFT_VALUE_PARAMETER, bits, parameter->address + at,
                             (unsigned)bytes, ptx_types[type].kind[0] == 'S');
    return *value != SOFT_NO_VALUE;
}

static bool is_static_parameter(const struct ptx_operand *operand) {
    return operand->kind == PTX_OPERAND_ADDRESS && operand->count == 1 &&
           operand->items[0].kind == PTX_OPERAND_SYMBOL &&
           operand->items[0].symbol->kind == PTX_VARIABLE &&
           operand->items[0].symbol->is.variable->space == PTX_param;
}

/* The registers of a load or store: one, or a vector's. They may be wider than the type. */
struct data {
    const struct ptx_operand *items;
    unsigned count, bits;
};

static bool read_data(struct soft_lowering *lowering, const struct ptx_instruction *in,
                      const struct ptx_operand *operand, struct data *data) {
    enum ptx_modifier type = in->opcode->type[0];
    unsigned wanted = ptx_has(in->opcode, PTX_v2) ? 2 : ptx_has(in->opcode, PTX_v4) ? 4 : 1;
    bool vector = operand->kind == PTX_OPERAND_VECTOR;
    *data = (struct data){.items = vector ? operand->items : operand,
                          .count = vector ? operand->count : 1,
                          .bits = soft_bits(type)};
    if (data->count != wanted) {
        return LOWER_FAIL(lowering, operand, "%u registers are needed here, not %u", wanted,
                          data->count);
    }
    if (ptx_types[type].bits / 8 * wanted > 16) {
        return LOWER_FAIL(lowering, in, "a vector of more than 16 bytes");
    }
    for (unsigned i = 0; i < data->count; i++) {
        const struct ptx_operand *item = &data->items[i];
        if (item->kind == PTX_OPERAND_REGISTER && soft_bits(item->type) > data->bits) {
            data->bits = soft_bits(item->type);
        }
    }
    return true;
}

static uint32_t access_mode(const struct ptx_instruction *in, const struct data *data,
                            enum soft_access_space space, bool wide_address) {
    enum ptx_modifier type = in->opcode->type[0];
    uint32_t mode = ptx_types[type].bits / 8u;
    mode |= data->count << SOFT_ACCESS_COUNT_SHIFT;
    mode |= (uint32_t)space << SOFT_ACCESS_SPACE_SHIFT;
    if (ptx_types[type].kind[0] == 'S') mode |= SOFT_ACCESS_SIGNED;
    if (wide_address) mode |= SOFT_ACCESS_WIDE_ADDRESS;
    if (data->bits == 64) mode |= SOFT_ACCESS_WIDE_DATA;
    if (data->bits == 16) mode |= SOFT_ACCESS_SHORT_DATA;
    return mode;
}

/* Whether registers and memory hold components of one width, so that they can be copied whole, and
 * where the operation is in the groups of loads and stores behind the narrow ones. */
static bool is_plain(const struct ptx_instruction *in, const struct data *data, unsigned *place) {
    unsigned bits = ptx_types[in->opcode->type[0]].bits;
    if (data->bits != bits || bits < 32) return false;
    bool wide = bits == 64;
    if (data->count == 4 && wide) return false;
    *place = data->count == 1 ? wide : data->count == 2 ? 2u + wide : 4;
    return true;
}

bool soft_lower_ld(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum soft_access_space space = space_of(in->opcode);
    enum ptx_modifier type = in->opcode->type[0];
    struct data data;
    struct address address;
    if (in->operand_count < 2) return LOWER_FAIL(lowering, in, "ld takes 2 operands");
    if (!read_data(lowering, in, &in->operands[0], &data)) return false;
    uint32_t registers[4];
    for (unsigned i = 0; i < data.count; i++) {
        if (!soft_destination(lowering, &data.items[i], data.bits, type, &registers[i]))
            return false;
    }
    if (space == SOFT_SPACE_PARAM && is_static_parameter(&in->operands[1])) {
        for (unsigned i = 0; i < data.count; i++) {
            uint32_t value = 0;
            if (!parameter_value(lowering, in, type, &in->operands[1], i, data.bits, &value)) {
                return false;
            }
            if (soft_value_alias(lowering, in, registers[i], value)) continue;
            struct soft_draft *move =
                soft_draft(lowering, data.bits == 64 ? SOFT_OP_mov_64 : SOFT_OP_mov_32);
            if (move == NULL) return false;
            move->d = registers[i];
            move->a = value;
        }
        return true;
    }
    if (!read_address(lowering, &in->operands[1], space, &address)) return false;
    unsigned place = 0;
    enum soft_op op = SOFT_OP_ld_slow;
    if (space == SOFT_SPACE_SHARED || space == SOFT_SPACE_GLOBAL || space == SOFT_SPACE_GENERIC) {
        enum soft_op base =
            space == SOFT_SPACE_SHARED ? SOFT_OP_ld_shared_32 : SOFT_OP_ld_global_32;
        if (is_plain(in, &data, &place)) op = (enum soft_op)(base + place);
    }
    struct soft_draft *draft = soft_draft(lowering, op);
    if (draft == NULL) return false;
    draft->d = data.count == 1 ? registers[0] : SOFT_NO_VALUE;
    draft->a = address.base;
    draft->immediate = address.offset;
    draft->mode = access_mode(in, &data, space, address.wide);
    draft->has_site = true;
    for (unsigned i = 0; i < data.count && data.count > 1; i++) {
        if (!soft_extra(lowering, draft, SOFT_EXTRA_DEFINE, registers[i])) return false;
    }
    return true;
}

bool soft_lower_st(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum soft_access_space space = space_of(in->opcode);
    struct data data;
    struct address address;
    if (in->operand_count < 2) return LOWER_FAIL(lowering, in, "st takes 2 operands");
    if (space == SOFT_SPACE_PARAM || ptx_has(in->opcode, PTX_constant)) {
        return LOWER_FAIL(lowering, in, "this space cannot be written in a kernel");
    }
    if (!read_data(lowering, in, &in->operands[1], &data) ||
        !read_address(lowering, &in->operands[0], space, &address)) {
        return false;
    }
    uint32_t registers[4];
    for (unsigned i = 0; i < data.count; i++) {
        enum ptx_modifier type = in->opcode->type[0];
        if (!soft_source(lowering, &data.items[i], data.bits, type, &registers[i])) return false;
    }
    unsigned place = 0;
    enum soft_op op = SOFT_OP_st_slow;
    if (space != SOFT_SPACE_LOCAL && is_plain(in, &data, &place)) {
        enum soft_op base =
            space == SOFT_SPACE_SHARED ? SOFT_OP_st_shared_32 : SOFT_OP_st_global_32;
        op = (enum soft_op)(base + place);
    }
    struct soft_draft *draft = soft_draft(lowering, op);
    if (draft == NULL) return false;
    draft->d = data.count == 1 ? registers[0] : SOFT_NO_VALUE;
    draft->d_is_read = true;
    draft->a = address.base;
    draft->immediate = address.offset;
    draft->mode = access_mode(in, &data, space, address.wide) | SOFT_ACCESS_STORE;
    draft->has_site = true;
    for (unsigned i = 0; i < data.count && data.count > 1; i++) {
        if (!soft_extra(lowering, draft, SOFT_EXTRA_USE, registers[i])) return false;
    }
    return true;
}

/* What an atomic may do to a type (PTX ISA 9.0, table in section 9.7.13.5). */
static bool atomic_fits(enum soft_atomic operation, enum ptx_modifier type) {
    char kind = ptx_types[type].kind[0];
    unsigned bits = ptx_types[type].bits;
    switch (operation) {
    case SOFT_ATOMIC_ADD:
        return kind != 'B' && type != PTX_s64;
    case SOFT_ATOMIC_MIN:
    case SOFT_ATOMIC_MAX:
        return kind == 'U' || kind == 'S';
    case SOFT_ATOMIC_INC:
    case SOFT_ATOMIC_DEC:
        return type == PTX_u32;
    case SOFT_ATOMIC_AND:
    case SOFT_ATOMIC_OR:
    case SOFT_ATOMIC_XOR:
        return kind == 'B' && bits >= 32;
    default:
        return kind == 'B';
    }
}

bool soft_lower_atom(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    static const enum ptx_modifier words[] = {PTX_add, PTX_min, PTX_max, PTX_inc,  PTX_dec,
                                              PTX_and, PTX_or,  PTX_xor, PTX_exch, PTX_cas};
    bool reduces = in->opcode->row->name[0] == 'r';
    enum ptx_modifier type = in->opcode->type[0];
    enum soft_access_space space = space_of(in->opcode);
    uint32_t operation = 0;
    for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (ptx_has(in->opcode, words[i])) operation = i;
    }
    if (!atomic_fits((enum soft_atomic)operation, type)) {
        return LOWER_FAIL(lowering, in, "this atomic does not work on .%s", ptx_types[type].text);
    }
    uint32_t begin = reduces ? 0 : 1, sources = operation == SOFT_ATOMIC_CAS ? 2 : 1;
    if (in->operand_count != begin + 1 + sources) {
        return LOWER_FAIL(lowering, in, "this takes %u operands, and has %u", begin + 1 + sources,
                          in->operand_count);
    }
    unsigned bits = soft_bits(type);
    struct data data = {.count = 1, .bits = bits};
    struct address address;
    uint32_t d = SOFT_NO_VALUE, b = SOFT_NO_VALUE, c = SOFT_NO_VALUE;
    bool unused = reduces || in->operands[0].kind == PTX_OPERAND_NONE;
    if (!unused && !soft_destination(lowering, &in->operands[0], bits, type, &d)) return false;
    if (!read_address(lowering, &in->operands[begin], space, &address) ||
        !soft_source(lowering, &in->operands[begin + 1], bits, type, &b) ||
        (sources == 2 && !soft_source(lowering, &in->operands[begin + 2], bits, type, &c))) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_atom);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = address.base;
    draft->b = b;
    draft->c = c;
    draft->immediate = address.offset;
    draft->mode = access_mode(in, &data, space, address.wide) | SOFT_ACCESS_STORE;
    if (unused) draft->mode |= SOFT_ACCESS_NO_RESULT;
    draft->has_site = true;
    return soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, operation) &&
           soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, type);
}

bool soft_lower_isspacep(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    uint32_t d = 0, a = 0;
    if (in->operand_count != 2) return LOWER_FAIL(lowering, in, "isspacep takes 2 operands");
    if (!soft_source(lowering, &in->operands[1], 64, PTX_u64, &a) ||
        !soft_destination(lowering, &in->operands[0], 1, PTX_pred, &d)) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_isspacep);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = a;
    draft->mode = space_of(in->opcode);
    return true;
}

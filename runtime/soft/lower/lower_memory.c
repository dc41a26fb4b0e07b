/*
 * Loads, stores and atomics: their space, width and address. Source: PTX ISA 9.0, sections 6.4.1
 * (Addresses), 9.7.9.8 (ld), 9.7.9.11 (st), 9.7.13.5 (atom).
 */
#include "lower_memory.h"

#include "lower_order.h"

enum soft_access_space soft_space_of(const struct ptx_opcode *opcode) {
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

enum soft_access_space soft_space_meant(const struct ptx_opcode *opcode,
                                        enum soft_access_space space) {
    bool cluster = space == SOFT_SPACE_SHARED && ptx_has(opcode, PTX_shared_cluster);
    return cluster ? SOFT_SPACE_CLUSTER : space;
}

/* The base of an address: [base + 4], or x[1]; NULL if it is no address. */
static const struct ptx_operand *memory_base_of(const struct ptx_operand *operand) {
    if (operand->kind == PTX_OPERAND_ADDRESS && operand->count == 1) return &operand->items[0];
    return operand->kind == PTX_OPERAND_SYMBOL && operand->indexed ? operand : NULL;
}

enum soft_access_space soft_space_at(const struct ptx_opcode *opcode,
                                     const struct ptx_operand *address) {
    enum soft_access_space space = soft_space_of(opcode);
    const struct ptx_operand *base = memory_base_of(address);
    if (space != SOFT_SPACE_GENERIC || base == NULL || base->kind != PTX_OPERAND_SYMBOL ||
        base->symbol->kind != PTX_VARIABLE) {
        return space;
    }
    enum ptx_modifier own = base->symbol->is.variable->space;
    return own == PTX_shared ? SOFT_SPACE_SHARED : own == PTX_local ? SOFT_SPACE_LOCAL : space;
}

static bool is_variable_of(const struct ptx_variable *variable, enum soft_access_space space) {
    switch ((int)variable->space) {
    case PTX_shared:
        return space == SOFT_SPACE_SHARED;
    case PTX_local:
        return space == SOFT_SPACE_LOCAL;
    case PTX_param:
        return space == (soft_is_passed(variable) ? SOFT_SPACE_LOCAL : SOFT_SPACE_PARAM);
    default:
        return space == SOFT_SPACE_GLOBAL || space == SOFT_SPACE_GENERIC;
    }
}

bool soft_read_address(struct soft_lowering *lowering, const struct ptx_operand *operand,
                       enum soft_access_space space, struct soft_address *address) {
    const struct ptx_operand *base = memory_base_of(operand);
    if (base == NULL) return LOWER_FAIL(lowering, operand, "expected an address in brackets");
    *address = (struct soft_address){.wide = space != SOFT_SPACE_SHARED};
    unsigned bits = address->wide ? 64 : 32;
    switch (base->kind) {
    case PTX_OPERAND_REGISTER: {
        unsigned own = soft_bits(base->type);
        address->base = base->reg;
        address->offset = base->integer;
        if (own == bits) return true;
        /* Offsets in small spaces may be in registers of either width. */
        if (own == 64 && space == SOFT_SPACE_SHARED) {
            address->base = soft_convert(lowering, SOFT_OP_cvt_low_32, 32, base->reg);
            return address->base != SOFT_NO_VALUE;
        }
        if (own == 32 && (space == SOFT_SPACE_LOCAL || space == SOFT_SPACE_PARAM)) {
            address->base = soft_convert(lowering, SOFT_OP_cvt_u64_u32, 64, base->reg);
            return address->base != SOFT_NO_VALUE;
        }
        return LOWER_FAIL(lowering, base, "a register of %u bits cannot hold this address", own);
    }
    case PTX_OPERAND_INTEGER:
        address->base = soft_value_constant(lowering, bits, (uint64_t)base->integer);
        return address->base != SOFT_NO_VALUE;
    case PTX_OPERAND_SYMBOL:
        if (base->symbol->kind != PTX_VARIABLE ||
            !is_variable_of(base->symbol->is.variable, space)) {
            return LOWER_FAIL(lowering, base, "'%.*s' is not a variable in this state space",
                              (int)base->symbol->length, base->symbol->name);
        }
        return soft_variable_address(lowering, base, base->symbol->is.variable, base->integer, bits,
                                     &address->base);
    default:
        return LOWER_FAIL(lowering, base, "this is not an address");
    }
}

/* A parameter read at a constant offset is a value of the launch. */
static bool parameter_value(struct soft_lowering *lowering, const struct ptx_instruction *in,
                            enum ptx_modifier type, const struct ptx_operand *operand,
                            unsigned component, unsigned bits, uint32_t *value) {
    const struct ptx_operand *base = &operand->items[0];
    const struct ptx_variable *parameter = base->symbol->is.variable;
    uint64_t bytes = ptx_types[type].bits / 8;
    uint64_t at = (uint64_t)base->integer + component * bytes;
    if (at > parameter->bytes || bytes > parameter->bytes - at) {
        return LOWER_FAIL(
            lowering, in,
            "%llu bytes at offset %llu are outside the parameter '%.*s' of %llu bytes",
            (unsigned long long)bytes, (unsigned long long)at, (int)base->symbol->length,
            base->symbol->name, (unsigned long long)parameter->bytes);
    }
    *value = soft_value_find(lowering, SOFT_VALUE_PARAMETER, bits, parameter->address + at,
                             (unsigned)bytes, ptx_types[type].kind[0] == 'S');
    return *value != SOFT_NO_VALUE;
}

/* The parameter that an address names; NULL if it is something else. */
static struct ptx_variable *named_parameter(const struct ptx_operand *operand) {
    bool named = operand->kind == PTX_OPERAND_ADDRESS && operand->count == 1 &&
                 operand->items[0].kind == PTX_OPERAND_SYMBOL &&
                 operand->items[0].symbol->kind == PTX_VARIABLE &&
                 operand->items[0].symbol->is.variable->space == PTX_param;
    return named ? operand->items[0].symbol->is.variable : NULL;
}

/* In a function, the addresses of parameters are in local memory; a kernel's have a separate
 * space. */
static enum soft_access_space parameter_space(const struct soft_lowering *lowering,
                                              const struct ptx_variable *named) {
    bool moved = named != NULL ? soft_is_passed(named) : !lowering->function->entry;
    return moved ? SOFT_SPACE_LOCAL : SOFT_SPACE_PARAM;
}

/* Vectors of 32 bytes: four of 64 bits or eight of 32, in global memory, since sm_100. */
static bool check_wide(struct soft_lowering *lowering, const struct ptx_instruction *in,
                       unsigned bits) {
    const enum soft_access_space space = soft_space_of(in->opcode);
    const bool is_there = (space == SOFT_SPACE_GENERIC || space == SOFT_SPACE_GLOBAL) &&
                          !ptx_has(in->opcode, PTX_constant) && in->opcode->row->name[2] != 'u';
    if (bits < 32 || !is_there) {
        return LOWER_FAIL(lowering, in, "the vector is larger than 16 bytes");
    }
    if (lowering->module->target >= 100 && lowering->module->version >= 88) return true;
    return LOWER_FAIL(lowering, in,
                      "the vector is larger than 16 bytes, which needs .target sm_100 and "
                      ".version 8.8 or newer");
}

/* The registers of a load or store: one, or a vector's. They may be wider than the type. */
struct data {
    const struct ptx_operand *items;
    unsigned count, bits;
};

static bool memory_read_data(struct soft_lowering *lowering, const struct ptx_instruction *in,
                             const struct ptx_operand *operand, struct data *data) {
    enum ptx_modifier type = in->opcode->type[0];
    unsigned wanted = ptx_has(in->opcode, PTX_v2)   ? 2
                      : ptx_has(in->opcode, PTX_v4) ? 4
                      : ptx_has(in->opcode, PTX_v8) ? 8
                                                    : 1;
    bool vector = operand->kind == PTX_OPERAND_VECTOR;
    *data = (struct data){.items = vector ? operand->items : operand,
                          .count = vector ? operand->count : 1,
                          .bits = soft_bits(type)};
    if (data->count != wanted) {
        return LOWER_FAIL(lowering, operand, "expected %u registers, not %u", wanted, data->count);
    }
    if (type == PTX_b128 && soft_space_of(in->opcode) == SOFT_SPACE_PARAM) {
        return LOWER_FAIL(lowering, in, "a parameter cannot be read or written as .b128");
    }
    const bool is_wide = ptx_types[type].bits / 8 * wanted > 16;
    if (is_wide && !check_wide(lowering, in, ptx_types[type].bits)) return false;
    for (unsigned i = 0; i < data->count; i++) {
        const struct ptx_operand *item = &data->items[i];
        if (item->kind == PTX_OPERAND_REGISTER && soft_bits(item->type) > data->bits && !is_wide) {
            data->bits = soft_bits(item->type);
        }
    }
    return true;
}

/* A load or a store has two operands, and a cache policy if its spelling has one. */
static bool check_policy(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    uint32_t count = ptx_has(in->opcode, PTX_l2_cache_hint) ? 3 : 2, policy = 0;
    if (in->operand_count != count) {
        return LOWER_FAIL(lowering, in, "%s needs %u operands here, not %u", in->opcode->row->name,
                          count, in->operand_count);
    }
    return count == 2 || soft_source(lowering, &in->operands[2], 64, PTX_b64, &policy);
}

static uint32_t access_mode(const struct ptx_instruction *in, const struct data *data,
                            enum soft_access_space space, bool wide_address) {
    enum ptx_modifier type = in->opcode->type[0];
    uint32_t mode = ptx_types[type].bits / 8u;
    mode |= data->count << SOFT_ACCESS_COUNT_SHIFT;
    mode |= (uint32_t)soft_space_meant(in->opcode, space) << SOFT_ACCESS_SPACE_SHIFT;
    if (ptx_types[type].kind[0] == 'S') mode |= SOFT_ACCESS_SIGNED;
    if (wide_address) mode |= SOFT_ACCESS_WIDE_ADDRESS;
    if (data->bits == 64) mode |= SOFT_ACCESS_WIDE_DATA;
    if (data->bits == 16) mode |= SOFT_ACCESS_SHORT_DATA;
    return mode | soft_order_of(in->opcode);
}

/* Whether registers and memory hold components of one width, so that they can be copied whole, and
 * the position of the operation in its group of loads and stores, after the narrow ones. */
static bool memory_is_plain(const struct ptx_instruction *in, const struct data *data,
                            unsigned *place) {
    unsigned bits = ptx_types[in->opcode->type[0]].bits;
    if (data->bits != bits || bits < 32 || bits > 64) return false;
    bool wide = bits == 64;
    if (data->count * bits > 128) return false;
    *place = data->count == 1 ? wide : data->count == 2 ? 2u + wide : 4;
    return true;
}

/* The same for components narrower than their register, of 16 or 32 bits. */
static bool is_narrow(const struct ptx_instruction *in, const struct data *data) {
    return data->count == 1 && ptx_types[in->opcode->type[0]].bits < 32 && data->bits <= 32;
}

static enum soft_op load_of(const struct ptx_instruction *in, const struct data *data,
                            enum soft_access_space space) {
    enum ptx_modifier type = in->opcode->type[0];
    unsigned place = 0;
    bool plain = memory_is_plain(in, data, &place);
    if (space == SOFT_SPACE_LOCAL && plain && place < 2) return SOFT_OP_ld_local_32 + place;
    if (space == SOFT_SPACE_LOCAL || space == SOFT_SPACE_PARAM) return SOFT_OP_ld_slow;
    bool shared = space == SOFT_SPACE_SHARED;
    if (plain) return (shared ? SOFT_OP_ld_shared_32 : SOFT_OP_ld_global_32) + place;
    if (!is_narrow(in, data)) return SOFT_OP_ld_slow;
    place = (ptx_types[type].bits == 16 ? 2u : 0u) + (ptx_types[type].kind[0] == 'S');
    return (shared ? SOFT_OP_ld_shared_u8 : SOFT_OP_ld_global_u8) + place;
}

static enum soft_op store_of(const struct ptx_instruction *in, const struct data *data,
                             enum soft_access_space space) {
    unsigned place = 0;
    bool plain = memory_is_plain(in, data, &place);
    if (space == SOFT_SPACE_LOCAL) {
        return plain && place < 2 ? SOFT_OP_st_local_32 + place : SOFT_OP_st_slow;
    }
    bool shared = space == SOFT_SPACE_SHARED;
    if (plain) return (shared ? SOFT_OP_st_shared_32 : SOFT_OP_st_global_32) + place;
    if (!is_narrow(in, data)) return SOFT_OP_st_slow;
    place = ptx_types[in->opcode->type[0]].bits == 16;
    return (shared ? SOFT_OP_st_shared_8 : SOFT_OP_st_global_8) + place;
}

static struct soft_passed_access passed_access(const struct ptx_instruction *in,
                                               const struct data *data,
                                               struct ptx_variable *parameter,
                                               const uint32_t *registers) {
    enum ptx_modifier type = in->opcode->type[0];
    return (struct soft_passed_access){.variable = parameter,
                                       .bytes = ptx_types[type].bits / 8u,
                                       .bits = data->bits,
                                       .count = data->count,
                                       .is_signed = ptx_types[type].kind[0] == 'S',
                                       .registers = registers};
}

bool soft_lower_ld(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum ptx_modifier type = in->opcode->type[0];
    struct data data;
    struct soft_address address = {.base = SOFT_NO_VALUE};
    if (!check_policy(lowering, in)) return false;
    enum soft_access_space space = soft_space_at(in->opcode, &in->operands[1]);
    if (!memory_read_data(lowering, in, &in->operands[0], &data)) return false;
    uint32_t registers[8] = {SOFT_NO_VALUE};
    for (unsigned i = 0; i < data.count; i++) {
        if (!soft_destination(lowering, &data.items[i], data.bits, type, &registers[i]))
            return false;
    }
    struct ptx_variable *parameter =
        space == SOFT_SPACE_PARAM ? named_parameter(&in->operands[1]) : NULL;
    if (parameter != NULL && soft_is_passed(parameter) && !parameter->is_spilled) {
        struct soft_passed_access access = passed_access(in, &data, parameter, registers);
        access.offset = in->operands[1].items[0].integer;
        return soft_load_passed(lowering, in, &access);
    }
    if (space == SOFT_SPACE_PARAM) space = parameter_space(lowering, parameter);
    if (space == SOFT_SPACE_PARAM && parameter != NULL) {
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
    if (!soft_read_address(lowering, &in->operands[1], space, &address)) return false;
    struct soft_draft *draft = soft_draft(lowering, load_of(in, &data, space));
    if (draft == NULL) return false;
    draft->d = data.count == 1 ? registers[0] : SOFT_NO_VALUE;
    draft->a = address.base;
    draft->immediate = address.offset;
    draft->mode = access_mode(in, &data, space, address.wide);
    draft->has_site = true;
    draft->polls = ptx_has(in->opcode, PTX_volatile_) || ptx_has(in->opcode, PTX_relaxed) ||
                   ptx_has(in->opcode, PTX_acquire);
    for (unsigned i = 0; i < data.count && data.count > 1; i++) {
        if (!soft_extra(lowering, draft, SOFT_EXTRA_DEFINE, registers[i])) return false;
    }
    return true;
}

bool soft_lower_st(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct data data;
    struct soft_address address = {.base = SOFT_NO_VALUE};
    if (!check_policy(lowering, in)) return false;
    enum soft_access_space space = soft_space_at(in->opcode, &in->operands[0]);
    struct ptx_variable *parameter =
        space == SOFT_SPACE_PARAM ? named_parameter(&in->operands[0]) : NULL;
    bool passed = parameter != NULL && soft_is_passed(parameter);
    if ((space == SOFT_SPACE_PARAM && !passed) || ptx_has(in->opcode, PTX_constant)) {
        return LOWER_FAIL(lowering, in, "a kernel cannot write this state space");
    }
    if (!memory_read_data(lowering, in, &in->operands[1], &data) ||
        (!passed && !soft_read_address(lowering, &in->operands[0], space, &address))) {
        return false;
    }
    uint32_t registers[8] = {SOFT_NO_VALUE};
    for (unsigned i = 0; i < data.count; i++) {
        enum ptx_modifier type = in->opcode->type[0];
        if (!soft_source(lowering, &data.items[i], data.bits, type, &registers[i])) return false;
    }
    if (passed) {
        struct soft_passed_access access = passed_access(in, &data, parameter, registers);
        access.offset = in->operands[0].items[0].integer;
        return soft_store_passed(lowering, in, &access);
    }
    struct soft_draft *draft = soft_draft(lowering, store_of(in, &data, space));
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

/* The registers of an atomic's operand: one, or a vector's. */
static const struct ptx_operand *memory_components(const struct ptx_operand *operand,
                                                   unsigned count) {
    bool fits = count == 1 ? operand->kind != PTX_OPERAND_VECTOR
                           : operand->kind == PTX_OPERAND_VECTOR && operand->count == count;
    return !fits ? NULL : count == 1 ? operand : operand->items;
}

struct atomic {
    enum soft_atomic operation;
    enum ptx_modifier type;
    bool reduces, silent; /* red; no result is wanted */
    unsigned count;       /* components */
    uint32_t d[8], b[8], c;
};

/* The sources and results: d, [a], b, or b and c, then perhaps a cache policy, which is a hint. */
static bool read_atomic(struct soft_lowering *lowering, const struct ptx_instruction *in,
                        struct atomic *atomic) {
    uint32_t begin = atomic->reduces ? 0 : 1;
    uint32_t sources = atomic->operation == SOFT_ATOMIC_CAS ? 2 : 1;
    uint32_t hints = ptx_has(in->opcode, PTX_l2_cache_hint) ? 1 : 0, policy = 0;
    unsigned bits = soft_bits(atomic->type);
    if (in->operand_count != begin + 1 + sources + hints) {
        return LOWER_FAIL(lowering, in, "expected %u operands, not %u", begin + 1 + sources + hints,
                          in->operand_count);
    }
    const struct ptx_operand *b = memory_components(&in->operands[begin + 1], atomic->count);
    atomic->silent =
        atomic->reduces || (in->operands[0].kind == PTX_OPERAND_NONE && atomic->type != PTX_b128);
    const struct ptx_operand *d =
        atomic->silent ? &in->operands[0] : memory_components(&in->operands[0], atomic->count);
    if (b == NULL || d == NULL) {
        return LOWER_FAIL(lowering, in, "expected %u registers", atomic->count);
    }
    for (unsigned i = 0; i < atomic->count; i++) {
        if ((!atomic->silent &&
             !soft_destination(lowering, &d[i], bits, atomic->type, &atomic->d[i])) ||
            !soft_source(lowering, &b[i], bits, atomic->type, &atomic->b[i])) {
            return false;
        }
    }
    const struct ptx_operand *last = &in->operands[in->operand_count - 1];
    return (sources < 2 ||
            soft_source(lowering, &in->operands[begin + 2], bits, atomic->type, &atomic->c)) &&
           (hints == 0 || soft_source(lowering, last, 64, PTX_b64, &policy));
}

bool soft_lower_atom(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    static const enum ptx_modifier words[] = {PTX_add, PTX_min, PTX_max, PTX_inc,  PTX_dec,
                                              PTX_and, PTX_or,  PTX_xor, PTX_exch, PTX_cas};
    struct atomic atomic = {.type = in->opcode->type[0],
                            .reduces = in->opcode->row->name[0] == 'r',
                            .count = 1,
                            .c = SOFT_NO_VALUE};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (ptx_has(in->opcode, words[i])) atomic.operation = (enum soft_atomic)i;
    }
    if (ptx_has(in->opcode, PTX_v2)) atomic.count = 2;
    if (ptx_has(in->opcode, PTX_v4)) atomic.count = 4;
    if (ptx_has(in->opcode, PTX_v8)) atomic.count = 8;
    if (atomic.count * ptx_types[atomic.type].bits > 128) {
        return LOWER_FAIL(lowering, in, "the vector is larger than 16 bytes");
    }
    struct data data = {.count = atomic.count, .bits = soft_bits(atomic.type)};
    struct soft_address address = {.base = SOFT_NO_VALUE};
    if (!read_atomic(lowering, in, &atomic)) return false;
    const struct ptx_operand *place = &in->operands[atomic.reduces ? 0 : 1];
    enum soft_access_space space = soft_space_at(in->opcode, place);
    if (space == SOFT_SPACE_LOCAL) {
        return LOWER_FAIL(lowering, place, "atomic operations are not allowed on local memory");
    }
    if (!soft_read_address(lowering, place, space, &address)) return false;
    bool whole = atomic.type == PTX_b128;
    struct soft_draft *draft = soft_draft(lowering, whole ? SOFT_OP_atom_128 : SOFT_OP_atom);
    if (draft == NULL) return false;
    bool vector = atomic.count > 1;
    draft->d = vector || atomic.silent ? SOFT_NO_VALUE : atomic.d[0];
    draft->a = address.base;
    draft->b = vector ? SOFT_NO_VALUE : atomic.b[0];
    draft->c = atomic.c;
    draft->immediate = address.offset;
    draft->mode = access_mode(in, &data, space, address.wide) | SOFT_ACCESS_STORE;
    if (atomic.silent) draft->mode |= SOFT_ACCESS_NO_RESULT;
    draft->has_site = draft->polls = true;
    bool ok = soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, atomic.operation) &&
              soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, atomic.type);
    for (unsigned i = 0; i < atomic.count && vector && !atomic.silent && ok; i++) {
        ok = soft_extra(lowering, draft, SOFT_EXTRA_DEFINE, atomic.d[i]);
    }
    for (unsigned i = 0; i < atomic.count && vector && ok; i++) {
        ok = soft_extra(lowering, draft, SOFT_EXTRA_USE, atomic.b[i]);
    }
    return ok;
}

bool soft_lower_isspacep(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    uint32_t d = 0, a = 0;
    if (in->operand_count != 2) return LOWER_FAIL(lowering, in, "isspacep needs 2 operands");
    if (!soft_source(lowering, &in->operands[1], 64, PTX_u64, &a) ||
        !soft_destination(lowering, &in->operands[0], 1, PTX_pred, &d)) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_isspacep);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = a;
    draft->mode = soft_space_meant(in->opcode, soft_space_of(in->opcode));
    return true;
}

/*
 * Operands: the sources and destinations of an instruction, checked against the widths it needs.
 *
 * These checks prevent invalid PTX from reading another register's lanes: a 64-bit operation never
 * gets a 32-bit slot. Source: PTX ISA 9.0, section 6.4 and 9.2 (operand type and size rules).
 */
#include "lower.h"

#include <string.h>

/* The bits of a floating point literal in a format. */
static uint64_t operand_literal(const struct ptx_operand *operand, enum ptx_modifier type,
                                unsigned bits) {
    if (operand->kind == PTX_OPERAND_FLOAT64 && bits == 32 && type != PTX_b64) {
        double wide;
        memcpy(&wide, &operand->bits, sizeof wide);
        float narrow = (float)wide;
        uint32_t result;
        memcpy(&result, &narrow, sizeof result);
        return result;
    }
    if (operand->kind == PTX_OPERAND_FLOAT32 && bits == 64) {
        uint32_t low = (uint32_t)operand->bits;
        float narrow;
        memcpy(&narrow, &low, sizeof narrow);
        double wide = (double)narrow;
        uint64_t result;
        memcpy(&result, &wide, sizeof result);
        return result;
    }
    return operand->bits;
}

static unsigned special_bits(enum ptx_special special) {
    static const uint8_t bits[PTX_SPECIALS] = {
#define PTX_SPECIAL(name, text, bits) bits,
#include "ptx/special.def"
    };
    return bits[special];
}

uint32_t soft_convert(struct soft_lowering *lowering, enum soft_op op, unsigned bits,
                      uint32_t source) {
    uint32_t temporary = soft_value_temporary(lowering, bits);
    struct soft_draft *draft = soft_draft(lowering, op);
    if (draft == NULL) return SOFT_NO_VALUE;
    draft->d = temporary;
    draft->a = source;
    return temporary;
}

/* Special registers that change while a kernel runs, including all 64-bit ones, are read at each
 * use; the others are ordinary values. */
static bool is_read_late(enum ptx_special special) {
    switch (special) {
    case PTX_SPECIAL_clock:
    case PTX_SPECIAL_clock_hi:
    case PTX_SPECIAL_globaltimer_lo:
    case PTX_SPECIAL_globaltimer_hi:
        return true;
    default:
        return special_bits(special) == 64;
    }
}

static bool special_source(struct soft_lowering *lowering, const struct ptx_operand *operand,
                           unsigned bits, uint32_t *value) {
    unsigned own = special_bits(operand->special);
    if (is_read_late(operand->special)) {
        *value = soft_convert(lowering, SOFT_OP_special, own, SOFT_NO_VALUE);
        if (*value == SOFT_NO_VALUE) return false;
        lowering->drafts[lowering->draft_count - 1].mode =
            (uint32_t)operand->special | (own == 64 ? SOFT_SPECIAL_WIDE : 0);
    } else {
        *value = soft_value_special(lowering, operand->special);
    }
    if (*value != SOFT_NO_VALUE && own != bits) {
        enum soft_op op = bits == 64   ? SOFT_OP_cvt_u64_u32
                          : bits == 16 ? SOFT_OP_low_16
                                       : SOFT_OP_cvt_low_32;
        *value = soft_convert(lowering, op, bits, *value);
    }
    return *value != SOFT_NO_VALUE;
}

bool soft_local_room(struct soft_lowering *lowering, const struct ptx_operand *where,
                     uint64_t bytes, uint32_t alignment, uint64_t *offset) {
    enum { LOCAL_BYTES_MAX = 512 * 1024 };
    uint64_t at = (lowering->local_bytes + (uint64_t)alignment - 1) / alignment * alignment;
    if (bytes > LOCAL_BYTES_MAX || at + bytes > LOCAL_BYTES_MAX) {
        return LOWER_FAIL(lowering, where, "more than %d bytes of local memory", LOCAL_BYTES_MAX);
    }
    *offset = at;
    lowering->local_bytes = (uint32_t)(at + bytes);
    return true;
}

/* A kernel's local memory begins at 0, a function's at the end of its caller's. */
static bool local_address(struct soft_lowering *lowering, uint64_t offset, unsigned bits,
                          uint32_t *value) {
    *value = lowering->function->entry
                 ? soft_value_constant(lowering, bits, offset)
                 : soft_value_find(lowering, SOFT_VALUE_LOCAL, bits, offset, 0, false);
    return *value != SOFT_NO_VALUE;
}

bool soft_variable_address(struct soft_lowering *lowering, const struct ptx_operand *operand,
                           const struct ptx_variable *variable, int64_t addend, unsigned bits,
                           uint32_t *value) {
    struct ptx_variable *place = variable->symbol->is.variable;
    uint64_t address = 0;
    switch ((int)place->space) {
    case PTX_shared:
        if (place->external && place->is_unsized) {
            *value = soft_value_find(lowering, SOFT_VALUE_DYNAMIC_SHARED, bits, (uint64_t)addend, 0,
                                     false);
            return *value != SOFT_NO_VALUE;
        }
        address = place->address;
        break;
    case PTX_local:
        if (!place->placed &&
            !soft_local_room(lowering, operand, place->bytes, place->alignment, &place->address)) {
            return false;
        }
        place->placed = true;
        return local_address(lowering, place->address + (uint64_t)addend, bits, value);
    case PTX_param:
        if (!soft_is_passed(place)) {
            address = place->address;
            break;
        }
        if (!place->is_spilled) {
            return LOWER_FAIL(lowering, operand, "'%.*s' is a call parameter and has no address",
                              (int)place->symbol->length, place->symbol->name);
        }
        return local_address(lowering, place->address + (uint64_t)addend, bits, value);
    default:
        if (!place->placed) {
            return LOWER_FAIL(lowering, operand, "'%.*s' is declared but not defined",
                              (int)place->symbol->length, place->symbol->name);
        }
        address = place->address;
        break;
    }
    *value = soft_value_constant(lowering, bits, address + (uint64_t)addend);
    return *value != SOFT_NO_VALUE;
}

/* Bit types agree with all types, signed and unsigned integers with each other, and floating point
 * types with themselves. */
static bool operand_agree(enum ptx_modifier a, enum ptx_modifier b) {
    char kinds[2] = {ptx_types[a].kind[0], ptx_types[b].kind[0]};
    for (int i = 0; i < 2; i++) {
        if (kinds[i] == 'B') return a != PTX_pred && b != PTX_pred;
        if (kinds[i] == 'S') kinds[i] = 'U';
    }
    return kinds[0] == kinds[1];
}

/* Checks the width and the type of a register against the instruction's. */
static bool check_register(struct soft_lowering *lowering, const struct ptx_operand *operand,
                           unsigned bits, enum ptx_modifier type) {
    const char *own = ptx_types[operand->type].text;
    if (operand->picked != 0) {
        return LOWER_FAIL(lowering, operand, "this operand cannot select part of a register");
    }
    if (soft_bits(operand->type) != bits) {
        return LOWER_FAIL(lowering, operand, "a register of %u bits, and %u are needed (type .%s)",
                          soft_bits(operand->type), bits, own);
    }
    return operand_agree(operand->type, type) ||
           LOWER_FAIL(lowering, operand, "a register of type .%s, and .%s is needed", own,
                      ptx_types[type].text);
}

/* A register and a number, r+4, is their sum, as in an address. */
static bool add_to_register(struct soft_lowering *lowering, const struct ptx_operand *operand,
                            unsigned bits, uint32_t *value) {
    if (bits < 16 || ptx_types[operand->type].kind[0] == 'F') {
        return LOWER_FAIL(lowering, operand, "only an integer register can have an offset");
    }
    uint32_t addend = soft_value_constant(lowering, bits, (uint64_t)operand->integer);
    uint32_t sum = soft_value_temporary(lowering, bits);
    enum soft_op op = bits == 16 ? SOFT_OP_add_16 : bits == 32 ? SOFT_OP_add_32 : SOFT_OP_add_64;
    struct soft_draft *draft = soft_draft(lowering, op);
    if (draft == NULL || addend == SOFT_NO_VALUE || sum == SOFT_NO_VALUE) return false;
    draft->d = sum;
    draft->a = *value;
    draft->b = addend;
    *value = sum;
    return true;
}

bool soft_source(struct soft_lowering *lowering, const struct ptx_operand *operand, unsigned bits,
                 enum ptx_modifier type, uint32_t *value) {
    if (bits == 128 && operand->kind != PTX_OPERAND_REGISTER) {
        return LOWER_FAIL(lowering, operand, "expected a register of 128 bits");
    }
    switch (operand->kind) {
    case PTX_OPERAND_REGISTER:
        if (operand->negated) return LOWER_FAIL(lowering, operand, "'!' is not allowed here");
        if (!check_register(lowering, operand, bits, type)) return false;
        *value = operand->reg;
        return operand->integer == 0 || add_to_register(lowering, operand, bits, value);
    case PTX_OPERAND_INTEGER:
        if (type == PTX_f32 || type == PTX_f64) {
            return LOWER_FAIL(lowering, operand, "expected a floating-point number such as 1.0");
        }
        *value = soft_value_constant(lowering, bits, (uint64_t)operand->integer);
        return *value != SOFT_NO_VALUE;
    case PTX_OPERAND_FLOAT32:
    case PTX_OPERAND_FLOAT64:
        if (bits < 32 || ptx_types[type].kind[0] == 'U' || ptx_types[type].kind[0] == 'S') {
            return LOWER_FAIL(lowering, operand, "a floating-point number is not allowed here");
        }
        *value = soft_value_constant(lowering, bits, operand_literal(operand, type, bits));
        return *value != SOFT_NO_VALUE;
    case PTX_OPERAND_SPECIAL:
        return special_source(lowering, operand, bits, value);
    case PTX_OPERAND_SYMBOL:
        if (operand->symbol->kind == PTX_VARIABLE && bits >= 32) {
            return soft_variable_address(lowering, operand, operand->symbol->is.variable,
                                         operand->integer, bits, value);
        }
        if (operand->symbol->kind == PTX_FUNCTION && bits == 64 &&
            operand->symbol->is.function->has_body) {
            *value = soft_value_constant(
                lowering, bits, operand->symbol->is.function->address + (uint64_t)operand->integer);
            return *value != SOFT_NO_VALUE;
        }
        return LOWER_FAIL(lowering, operand, "'%.*s' is not a value", (int)operand->symbol->length,
                          operand->symbol->name);
    default:
        return LOWER_FAIL(lowering, operand, "expected a register or a number");
    }
}

bool soft_destination(struct soft_lowering *lowering, const struct ptx_operand *operand,
                      unsigned bits, enum ptx_modifier type, uint32_t *value) {
    if (operand->kind == PTX_OPERAND_NONE) {
        *value = soft_value_temporary(lowering, bits);
        return *value != SOFT_NO_VALUE;
    }
    if (operand->kind != PTX_OPERAND_REGISTER || operand->negated || operand->integer != 0) {
        return LOWER_FAIL(lowering, operand, "expected a destination register");
    }
    if (!check_register(lowering, operand, bits, type)) return false;
    *value = operand->reg;
    return true;
}

bool soft_predicate(struct soft_lowering *lowering, const struct ptx_operand *operand,
                    uint32_t *value, bool *negated) {
    if (operand->kind == PTX_OPERAND_INTEGER) {
        /* A constant predicate: 0 is false. */
        *value = soft_value_constant(lowering, 1, operand->integer != 0);
        *negated = operand->negated;
        return *value != SOFT_NO_VALUE;
    }
    if (operand->kind == PTX_OPERAND_SPECIAL &&
        operand->special == PTX_SPECIAL_is_explicit_cluster) {
        *value = soft_value_special(lowering, operand->special);
        *negated = operand->negated;
        return *value != SOFT_NO_VALUE;
    }
    if (operand->kind != PTX_OPERAND_REGISTER || operand->type != PTX_pred) {
        return LOWER_FAIL(lowering, operand, "expected a predicate");
    }
    *value = operand->reg;
    *negated = operand->negated;
    return true;
}

bool soft_operands(struct soft_lowering *lowering, const struct ptx_instruction *in,
                   struct soft_operands *operands) {
    const char *letters = in->opcode->row->operands;
    enum ptx_modifier first = in->opcode->type[0], second = in->opcode->type[1];
    memset(operands, 0, sizeof *operands);
    operands->d = operands->q = SOFT_NO_VALUE;
    if (strlen(letters) != in->operand_count) {
        return LOWER_FAIL(lowering, in, "'%s' needs %zu operands here, not %u",
                          in->opcode->row->name, strlen(letters), in->operand_count);
    }
    for (uint32_t i = 0; i < in->operand_count; i++) {
        const struct ptx_operand *operand = &in->operands[i];
        uint32_t *source = &operands->source[operands->count];
        bool ok = true;
        switch (letters[i]) {
        case 'd':
            ok = soft_destination(lowering, operand, soft_bits(first), first, &operands->d);
            break;
        case 'i':
            ok = soft_destination(lowering, operand, 32, PTX_u32, &operands->d);
            break;
        case 'w':
            ok = i == 0 ? soft_destination(lowering, operand, 2 * soft_bits(first), first,
                                           &operands->d)
                        : soft_source(lowering, operand, 2 * soft_bits(first), first, source);
            operands->count += i > 0;
            break;
        case 'q':
            ok = soft_destination(lowering, operand, 1, PTX_pred, &operands->d);
            break;
        case 'a':
            ok = soft_source(lowering, operand, soft_bits(first), first, source);
            operands->count++;
            break;
        case 'b':
            ok = soft_source(lowering, operand, soft_bits(second), second, source);
            operands->count++;
            break;
        case 'u':
            ok = soft_source(lowering, operand, 32, PTX_u32, source);
            operands->count++;
            break;
        default:
            ok = soft_predicate(lowering, operand, source, &operands->negated[operands->count]);
            operands->count++;
            break;
        }
        if (!ok) return false;
    }
    return true;
}

uint32_t soft_mode_of(const struct ptx_opcode *opcode) {
    uint32_t mode = 0;
    if (ptx_has(opcode, PTX_rz) || ptx_has(opcode, PTX_rzi)) mode |= SOFT_MODE_RZ;
    if (ptx_has(opcode, PTX_rm) || ptx_has(opcode, PTX_rmi)) mode |= SOFT_MODE_RM;
    if (ptx_has(opcode, PTX_rp) || ptx_has(opcode, PTX_rpi)) mode |= SOFT_MODE_RP;
    if (ptx_has(opcode, PTX_rna)) mode |= SOFT_MODE_RNA;
    if (ptx_has(opcode, PTX_ftz)) mode |= SOFT_MODE_FTZ;
    if (ptx_has(opcode, PTX_sat)) mode |= SOFT_MODE_SAT;
    if (ptx_has(opcode, PTX_satfinite)) mode |= SOFT_MODE_SATFINITE;
    if (ptx_has(opcode, PTX_relu)) mode |= SOFT_MODE_RELU;
    if (ptx_has(opcode, PTX_nan)) mode |= SOFT_MODE_NAN;
    if (ptx_has(opcode, PTX_xorsign)) mode |= SOFT_MODE_XORSIGN;
    if (ptx_has(opcode, PTX_approx)) mode |= SOFT_MODE_APPROX;
    return mode;
}

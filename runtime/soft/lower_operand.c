/*
 * Operands: what an instruction reads and writes, checked against the widths it needs.
 *
 * The checks are what keeps a wrong PTX from reading a neighbour's lanes: a 64-bit operation never
 * meets a 32-bit slot. Source: PTX ISA 9.0, section 6.4 and 9.2 (operand
 * type and size rules). */
#include "lower.h"

#include <string.h>

/* The bits of a floating point literal in the format wanted. */
static uint64_t literal(const struct ptx_operand *operand, enum ptx_modifier type, unsigned bits) {
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
#include "special.def"
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

/* Special registers that change while a kernel runs are read where they are written; the rest are
 * values like any other. */
static bool is_read_late(enum ptx_special special) {
    switch (special) {
    case PTX_SPECIAL_clock:
    case PTX_SPECIAL_clock_hi:
    case PTX_SPECIAL_clock64:
    case PTX_SPECIAL_globaltimer:
    case PTX_SPECIAL_globaltimer_lo:
    case PTX_SPECIAL_globaltimer_hi:
    case PTX_SPECIAL_gridid:
        return true;
    default:
        return false;
    }
}

static bool special_source(struct soft_lowering *lowering, const struct ptx_operand *operand,
                           unsigned bits, uint32_t *value) {
    unsigned own = special_bits(operand->special);
    if (is_read_late(operand->special)) {
        *value = soft_convert(lowering, SOFT_OP_special, own, SOFT_NO_VALUE);
        if (*value == SOFT_NO_VALUE) return false;
        lowering->drafts[lowering->draft_count - 1].mode = operand->special;
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
        if (!place->placed) {
            uint64_t at = (lowering->shared_bytes + place->alignment - 1) / place->alignment *
                          place->alignment;
            enum { SHARED_BYTES_MAX = 227 * 1024 };
            if (place->bytes > SHARED_BYTES_MAX || at + place->bytes > SHARED_BYTES_MAX) {
                return LOWER_FAIL(lowering, operand, "more than %d bytes of shared memory",
                                  SHARED_BYTES_MAX);
            }
            place->address = at;
            place->placed = true;
            lowering->shared_bytes = (uint32_t)(at + place->bytes);
        }
        address = place->address;
        break;
    case PTX_local:
        if (!place->placed) {
            uint64_t at = (lowering->local_bytes + place->alignment - 1) / place->alignment *
                          place->alignment;
            enum { LOCAL_BYTES_MAX = 512 * 1024 };
            if (place->bytes > LOCAL_BYTES_MAX || at + place->bytes > LOCAL_BYTES_MAX) {
                return LOWER_FAIL(lowering, operand, "more than %d bytes of local memory",
                                  LOCAL_BYTES_MAX);
            }
            place->address = at;
            place->placed = true;
            lowering->local_bytes = (uint32_t)(at + place->bytes);
        }
        address = place->address;
        break;
    default:
        if (!place->placed) {
            return LOWER_FAIL(lowering, operand, "'%.*s' is declared and defined nowhere",
                              (int)place->symbol->length, place->symbol->name);
        }
        address = place->address;
        break;
    }
    *value = soft_value_constant(lowering, bits, address + (uint64_t)addend);
    return *value != SOFT_NO_VALUE;
}

/* Bits go with everything, whole numbers with and without a sign with each other, and floating
 * point numbers with themselves. */
static bool agree(enum ptx_modifier a, enum ptx_modifier b) {
    char kinds[2] = {ptx_types[a].kind[0], ptx_types[b].kind[0]};
    for (int i = 0; i < 2; i++) {
        if (kinds[i] == 'B') return a != PTX_pred && b != PTX_pred;
        if (kinds[i] == 'S') kinds[i] = 'U';
    }
    return kinds[0] == kinds[1];
}

/* The width and the type of a register, against what the instruction needs. */
static bool check_register(struct soft_lowering *lowering, const struct ptx_operand *operand,
                           unsigned bits, enum ptx_modifier type) {
    const char *own = ptx_types[operand->type].text;
    if (soft_bits(operand->type) != bits) {
        return LOWER_FAIL(lowering, operand, "a register of %u bits where %u are needed (type .%s)",
                          soft_bits(operand->type), bits, own);
    }
    return agree(operand->type, type) ||
           LOWER_FAIL(lowering, operand, "a register of type .%s where .%s is needed", own,
                      ptx_types[type].text);
}

bool soft_source(struct soft_lowering *lowering, const struct ptx_operand *operand, unsigned bits,
                 enum ptx_modifier type, uint32_t *value) {
    switch (operand->kind) {
    case PTX_OPERAND_REGISTER:
        if (operand->negated) return LOWER_FAIL(lowering, operand, "'!' has no place here");
        if (operand->integer != 0) {
            return LOWER_FAIL(lowering, operand, "a register with an offset is an address");
        }
        if (!check_register(lowering, operand, bits, type)) return false;
        *value = operand->reg;
        return true;
    case PTX_OPERAND_INTEGER:
        if (type == PTX_f32 || type == PTX_f64) {
            return LOWER_FAIL(lowering, operand, "a floating point number is needed, such as 1.0");
        }
        *value = soft_value_constant(lowering, bits, (uint64_t)operand->integer);
        return *value != SOFT_NO_VALUE;
    case PTX_OPERAND_FLOAT32:
    case PTX_OPERAND_FLOAT64:
        if (bits < 32 || ptx_types[type].kind[0] == 'U' || ptx_types[type].kind[0] == 'S') {
            return LOWER_FAIL(lowering, operand, "a floating point number has no place here");
        }
        *value = soft_value_constant(lowering, bits, literal(operand, type, bits));
        return *value != SOFT_NO_VALUE;
    case PTX_OPERAND_SPECIAL:
        return special_source(lowering, operand, bits, value);
    case PTX_OPERAND_SYMBOL:
        if (operand->symbol->kind == PTX_VARIABLE && bits >= 32) {
            return soft_variable_address(lowering, operand, operand->symbol->is.variable,
                                         operand->integer, bits, value);
        }
        return LOWER_FAIL(lowering, operand, "'%.*s' is no value", (int)operand->symbol->length,
                          operand->symbol->name);
    default:
        return LOWER_FAIL(lowering, operand, "a register or a number is needed");
    }
}

bool soft_destination(struct soft_lowering *lowering, const struct ptx_operand *operand,
                      unsigned bits, enum ptx_modifier type, uint32_t *value) {
    if (operand->kind == PTX_OPERAND_NONE) {
        *value = soft_value_temporary(lowering, bits);
        return *value != SOFT_NO_VALUE;
    }
    if (operand->kind != PTX_OPERAND_REGISTER || operand->negated || operand->integer != 0) {
        return LOWER_FAIL(lowering, operand, "a register to write to is needed");
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
    if (operand->kind != PTX_OPERAND_REGISTER || operand->type != PTX_pred) {
        return LOWER_FAIL(lowering, operand, "a predicate is needed");
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
        return LOWER_FAIL(lowering, in, "'%s' takes %zu operands here, and has %u",
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

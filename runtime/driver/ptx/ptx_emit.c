/*
 * Instructions of the PTX builder that compute. PTX ISA 9.0, sections 9.7.1 to 9.7.9.
 */
#include "ptx_state.h"

/* ---- operations of one type ---- */

struct form {
    tol_ptx_op op;
    tol_ptx_type type;
    const char *spelling;
    unsigned operands;
    int capability, version;
};

static const struct form forms[] = {
#define TOL_PTX_FORM(op, type, spelling, operands, capability, version)                            \
    {TOL_PTX_OP_##op, TOL_PTX_##type, spelling, operands, capability, version},
#include "ptx_forms.def"
#undef TOL_PTX_FORM
};

static const char *const op_names[] = {
#define TOL_PTX_OP(name) #name,
#include "tollens/ptx_builder.def"
#undef TOL_PTX_OP
};

static const struct form *form_of(tol_ptx_op op, tol_ptx_type type) {
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (forms[i].op == op && forms[i].type == type) return &forms[i];
    }
    return NULL;
}

tol_ptx_value tol_ptx_op_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_op op,
                            tol_ptx_value a, tol_ptx_value b, tol_ptx_value c) {
    static const char *const which[] = {"the first operand", "the second operand",
                                        "the third operand"};
    const tol_ptx_value operands[] = {a, b, c};
    const char *name = (unsigned)op < TOL_PTX_OP_COUNT ? op_names[op] : "an unknown operation";
    if (!tol_ptx_may(ptx, at, name)) return tol_ptx_none();
    const struct tol_ptx_entry *entry = tol_ptx_use(ptx, at, name, which[0], a);
    if (entry == NULL) return tol_ptx_none();
    tol_ptx_type type = entry->type;
    const struct form *form = form_of(op, type);
    if (form == NULL) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "%s: there is no form for .%s", name,
                        tol_ptx_type_name(type));
        return tol_ptx_none();
    }
    if (!tol_ptx_has(ptx, at, form->spelling, form->capability, form->version))
        return tol_ptx_none();
    for (unsigned i = 1; i < form->operands; i++) {
        if (!tol_ptx_use_type(ptx, at, name, which[i], operands[i], type)) return tol_ptx_none();
    }
    tol_ptx_value d = tol_ptx_new(ptx, type);
    if (ptx->mistake != TOL_OK) return tol_ptx_none();
    fprintf(ptx->body.file, "\t%s %s", form->spelling, TOL_PTX_WORD(ptx, d));
    for (unsigned i = 0; i < form->operands; i++) {
        fprintf(ptx->body.file, ", %s", TOL_PTX_WORD(ptx, operands[i]));
    }
    fputs(";\n", ptx->body.file);
    ptx->has_body = true;
    return d;
}

/* ---- others ---- */

tol_ptx_value tol_ptx_mul_wide_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_value a,
                                  tol_ptx_value b) {
    if (!tol_ptx_may(ptx, at, "mul_wide")) return tol_ptx_none();
    const struct tol_ptx_entry *entry = tol_ptx_use(ptx, at, "mul_wide", "the first operand", a);
    if (entry == NULL) return tol_ptx_none();
    tol_ptx_type type = entry->type, wide = TOL_PTX_TYPE_COUNT;
    if (type == TOL_PTX_U16) wide = TOL_PTX_U32;
    if (type == TOL_PTX_S16) wide = TOL_PTX_S32;
    if (type == TOL_PTX_U32) wide = TOL_PTX_U64;
    if (type == TOL_PTX_S32) wide = TOL_PTX_S64;
    if (wide == TOL_PTX_TYPE_COUNT) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "mul_wide: there is no form for .%s",
                        tol_ptx_type_name(type));
        return tol_ptx_none();
    }
    if (!tol_ptx_use_type(ptx, at, "mul_wide", "the second operand", b, type))
        return tol_ptx_none();
    tol_ptx_value d = tol_ptx_new(ptx, wide);
    if (ptx->mistake != TOL_OK) return tol_ptx_none();
    tol_ptx_line(ptx, "mul.wide.%s %s, %s, %s", tol_ptx_type_name(type), TOL_PTX_WORD(ptx, d),
                 TOL_PTX_WORD(ptx, a), TOL_PTX_WORD(ptx, b));
    return d;
}

tol_ptx_value tol_ptx_shift_at(struct tol_ptx *ptx, struct tol_ptx_place at, bool left,
                               tol_ptx_value a, tol_ptx_value by) {
    const char *name = left ? "shift_left" : "shift_right";
    if (!tol_ptx_may(ptx, at, name)) return tol_ptx_none();
    const struct tol_ptx_entry *entry = tol_ptx_use(ptx, at, name, "the first operand", a);
    if (entry == NULL) return tol_ptx_none();
    tol_ptx_type type = entry->type;
    bool bits = type == TOL_PTX_B16 || type == TOL_PTX_B32 || type == TOL_PTX_B64;
    if (!bits && !tol_ptx_is_whole(type)) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "%s: there is no form for .%s", name,
                        tol_ptx_type_name(type));
        return tol_ptx_none();
    }
    if (!tol_ptx_use_type(ptx, at, name, "the second operand", by, TOL_PTX_U32))
        return tol_ptx_none();
    tol_ptx_value d = tol_ptx_new(ptx, type);
    if (ptx->mistake != TOL_OK) return tol_ptx_none();
    tol_ptx_line(ptx, "%s.%s %s, %s, %s", left ? "shl" : "shr",
                 left ? tol_ptx_bits_name(tol_ptx_bytes(type)) : tol_ptx_type_name(type),
                 TOL_PTX_WORD(ptx, d), TOL_PTX_WORD(ptx, a), TOL_PTX_WORD(ptx, by));
    return d;
}

tol_ptx_value tol_ptx_compare_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                 tol_ptx_comparison comparison, tol_ptx_value a, tol_ptx_value b) {
    static const char *const words[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    if (!tol_ptx_may(ptx, at, "compare")) return tol_ptx_none();
    const struct tol_ptx_entry *entry = tol_ptx_use(ptx, at, "compare", "the first operand", a);
    if (entry == NULL) return tol_ptx_none();
    tol_ptx_type type = entry->type;
    bool is_float = type == TOL_PTX_F32 || type == TOL_PTX_F64 || type == TOL_PTX_F16;
    if ((unsigned)comparison >= TOL_PTX_COMPARISON_COUNT ||
        (!is_float && !tol_ptx_is_whole(type))) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "compare: there is no form for .%s",
                        tol_ptx_type_name(type));
        return tol_ptx_none();
    }
    if (!tol_ptx_use_type(ptx, at, "compare", "the second operand", b, type)) return tol_ptx_none();
    tol_ptx_value d = tol_ptx_new(ptx, TOL_PTX_PRED);
    if (ptx->mistake != TOL_OK) return tol_ptx_none();
    /* Of numbers in floating point only neu is true of a NaN. */
    const char *unordered = is_float && comparison == TOL_PTX_NE ? "u" : "";
    tol_ptx_line(ptx, "setp.%s%s.%s %s, %s, %s", words[comparison], unordered,
                 tol_ptx_type_name(type), TOL_PTX_WORD(ptx, d), TOL_PTX_WORD(ptx, a),
                 TOL_PTX_WORD(ptx, b));
    return d;
}

tol_ptx_value tol_ptx_select_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                tol_ptx_value predicate, tol_ptx_value a, tol_ptx_value b) {
    if (!tol_ptx_may(ptx, at, "select")) return tol_ptx_none();
    const struct tol_ptx_entry *entry = tol_ptx_use(ptx, at, "select", "the first value", a);
    if (entry == NULL) return tol_ptx_none();
    tol_ptx_type type = entry->type;
    if (type == TOL_PTX_PRED) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "select: there is no form for .pred");
        return tol_ptx_none();
    }
    if (!tol_ptx_use_type(ptx, at, "select", "the second value", b, type) ||
        !tol_ptx_use_type(ptx, at, "select", "the condition", predicate, TOL_PTX_PRED)) {
        return tol_ptx_none();
    }
    tol_ptx_value d = tol_ptx_new(ptx, type);
    if (ptx->mistake != TOL_OK) return tol_ptx_none();
    tol_ptx_line(ptx, "selp.%s %s, %s, %s, %s", tol_ptx_bits_name(tol_ptx_bytes(type)),
                 TOL_PTX_WORD(ptx, d), TOL_PTX_WORD(ptx, a), TOL_PTX_WORD(ptx, b),
                 TOL_PTX_WORD(ptx, predicate));
    return d;
}

tol_ptx_value tol_ptx_special_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                 tol_ptx_register which) {
    static const char *const names[] = {"tid.x",    "tid.y",    "tid.z",   "ntid.x",  "ntid.y",
                                        "ntid.z",   "ctaid.x",  "ctaid.y", "ctaid.z", "nctaid.x",
                                        "nctaid.y", "nctaid.z", "laneid"};
    _Static_assert(sizeof names / sizeof names[0] == TOL_PTX_REGISTER_COUNT, "a name for each");
    if (!tol_ptx_may(ptx, at, "special")) return tol_ptx_none();
    if ((unsigned)which >= TOL_PTX_REGISTER_COUNT) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "special: there is no such register");
        return tol_ptx_none();
    }
    tol_ptx_value d = tol_ptx_new(ptx, TOL_PTX_U32);
    if (ptx->mistake != TOL_OK) return tol_ptx_none();
    tol_ptx_line(ptx, "mov.u32 %s, %%%s", TOL_PTX_WORD(ptx, d), names[which]);
    return d;
}

static void ptx_emit_move(struct tol_ptx *ptx, tol_ptx_value d, tol_ptx_value a) {
    tol_ptx_type type = tol_ptx_type_of(ptx, d);
    tol_ptx_line(ptx, "mov.%s %s, %s", tol_ptx_bits_name(tol_ptx_bytes(type)), TOL_PTX_WORD(ptx, d),
                 TOL_PTX_WORD(ptx, a));
}

tol_ptx_value tol_ptx_variable_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                  tol_ptx_value initial) {
    if (!tol_ptx_may(ptx, at, "variable")) return tol_ptx_none();
    const struct tol_ptx_entry *entry =
        tol_ptx_use(ptx, at, "variable", "the initial value", initial);
    if (entry == NULL) return tol_ptx_none();
    tol_ptx_value d = tol_ptx_new(ptx, entry->type);
    if (ptx->mistake != TOL_OK) return tol_ptx_none();
    ptx->entries[d.id].variable = true;
    ptx_emit_move(ptx, d, initial);
    return d;
}

void tol_ptx_set_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_value variable,
                    tol_ptx_value value) {
    if (!tol_ptx_may(ptx, at, "set")) return;
    const struct tol_ptx_entry *entry = tol_ptx_use(ptx, at, "set", "the variable", variable);
    if (entry == NULL) return;
    if (!entry->variable) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "set: the value is not a variable");
        return;
    }
    if (!tol_ptx_use_type(ptx, at, "set", "the value", value, entry->type)) return;
    ptx_emit_move(ptx, variable, value);
}

/* ---- types ---- */

/* bf16 has the upper half of the bits of an f32; that cvt comes with compute capability 9.0. */
static tol_ptx_value widen_bf16(struct tol_ptx *ptx, tol_ptx_value value) {
    tol_ptx_value d = tol_ptx_new(ptx, TOL_PTX_F32);
    if (ptx->mistake != TOL_OK) return tol_ptx_none();
    tol_ptx_line(ptx, "cvt.u32.u16 %s, %s", TOL_PTX_WORD(ptx, d), TOL_PTX_WORD(ptx, value));
    tol_ptx_line(ptx, "shl.b32 %s, %s, 16", TOL_PTX_WORD(ptx, d), TOL_PTX_WORD(ptx, d));
    return d;
}

static bool has_conversion(tol_ptx_type to, tol_ptx_type from) {
    bool to_number = tol_ptx_is_float(to) || tol_ptx_is_whole(to);
    bool from_number = tol_ptx_is_float(from) || tol_ptx_is_whole(from);
    /* bf16 is made of f32 alone, and made into it. */
    if (to == TOL_PTX_BF16) return from == TOL_PTX_F32;
    if (from == TOL_PTX_BF16) return to == TOL_PTX_F32;
    return to_number && from_number && to != from;
}

tol_ptx_value tol_ptx_convert_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_type type,
                                 tol_ptx_value value) {
    if (!tol_ptx_may(ptx, at, "convert")) return tol_ptx_none();
    const struct tol_ptx_entry *entry = tol_ptx_use(ptx, at, "convert", "the value", value);
    if (entry == NULL) return tol_ptx_none();
    tol_ptx_type from = entry->type;
    if ((unsigned)type >= TOL_PTX_TYPE_COUNT || !has_conversion(type, from)) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT,
                        "convert: there is no conversion from .%s to .%s", tol_ptx_type_name(from),
                        tol_ptx_type_name(type));
        return tol_ptx_none();
    }
    if (from == TOL_PTX_BF16) return widen_bf16(ptx, value);
    if (type == TOL_PTX_BF16 && !tol_ptx_has(ptx, at, "cvt.rn.bf16.f32", 80, 70))
        return tol_ptx_none();
    const char *rounding = "";
    if (tol_ptx_is_float(type)) {
        bool loses = tol_ptx_is_whole(from) || tol_ptx_bytes(type) < tol_ptx_bytes(from);
        rounding = loses ? ".rn" : "";
    } else if (tol_ptx_is_float(from)) {
        rounding = ".rzi";
    }
    tol_ptx_value d = tol_ptx_new(ptx, type);
    if (ptx->mistake != TOL_OK) return tol_ptx_none();
    tol_ptx_line(ptx, "cvt%s.%s.%s %s, %s", rounding, tol_ptx_type_name(type),
                 tol_ptx_type_name(from), TOL_PTX_WORD(ptx, d), TOL_PTX_WORD(ptx, value));
    return d;
}

tol_ptx_value tol_ptx_as_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_type type,
                            tol_ptx_value value) {
    if (!tol_ptx_may(ptx, at, "as")) return tol_ptx_none();
    const struct tol_ptx_entry *entry = tol_ptx_use(ptx, at, "as", "the value", value);
    if (entry == NULL) return tol_ptx_none();
    if ((unsigned)type >= TOL_PTX_TYPE_COUNT || tol_ptx_bytes(type) == 0 ||
        tol_ptx_bytes(type) != tol_ptx_bytes(entry->type)) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "as: a .%s and a .%s differ in size",
                        tol_ptx_type_name(type), tol_ptx_type_name(entry->type));
        return tol_ptx_none();
    }
    /* A copy: a variable may be set again, and a constant be written as another type. */
    tol_ptx_value d = tol_ptx_new(ptx, type);
    if (ptx->mistake == TOL_OK) ptx_emit_move(ptx, d, value);
    return d;
}

tol_ptx_value tol_ptx_join_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_type type,
                              tol_ptx_value low, tol_ptx_value high) {
    if (!tol_ptx_may(ptx, at, "join")) return tol_ptx_none();
    const struct tol_ptx_entry *entry = tol_ptx_use(ptx, at, "join", "the lower half", low);
    if (entry == NULL) return tol_ptx_none();
    tol_ptx_type half = entry->type;
    if ((unsigned)type >= TOL_PTX_TYPE_COUNT || tol_ptx_bytes(half) == 0 ||
        tol_ptx_bytes(type) != 2 * tol_ptx_bytes(half)) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "join: a .%s is not half of a .%s",
                        tol_ptx_type_name(half), tol_ptx_type_name(type));
        return tol_ptx_none();
    }
    if (!tol_ptx_use_type(ptx, at, "join", "the upper half", high, half)) return tol_ptx_none();
    tol_ptx_value d = tol_ptx_new(ptx, type);
    if (ptx->mistake != TOL_OK) return tol_ptx_none();
    tol_ptx_line(ptx, "mov.%s %s, {%s, %s}", tol_ptx_bits_name(tol_ptx_bytes(type)),
                 TOL_PTX_WORD(ptx, d), TOL_PTX_WORD(ptx, low), TOL_PTX_WORD(ptx, high));
    return d;
}

void tol_ptx_split_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_type type,
                      tol_ptx_value value, tol_ptx_value halves[2]) {
    halves[0] = halves[1] = tol_ptx_none();
    if (!tol_ptx_may(ptx, at, "split")) return;
    const struct tol_ptx_entry *entry = tol_ptx_use(ptx, at, "split", "the value", value);
    if (entry == NULL) return;
    tol_ptx_type whole = entry->type;
    if ((unsigned)type >= TOL_PTX_TYPE_COUNT || tol_ptx_bytes(type) == 0 ||
        tol_ptx_bytes(whole) != 2 * tol_ptx_bytes(type)) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "split: a .%s is not half of a .%s",
                        tol_ptx_type_name(type), tol_ptx_type_name(whole));
        return;
    }
    for (int i = 0; i < 2; i++) halves[i] = tol_ptx_new(ptx, type);
    if (ptx->mistake != TOL_OK) return;
    tol_ptx_line(ptx, "mov.%s {%s, %s}, %s", tol_ptx_bits_name(tol_ptx_bytes(whole)),
                 TOL_PTX_WORD(ptx, halves[0]), TOL_PTX_WORD(ptx, halves[1]),
                 TOL_PTX_WORD(ptx, value));
}

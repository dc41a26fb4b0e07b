/*
 * cvt. Source: PTX ISA 9.0, section 9.7.9.21.
 */
#include "oracle_number.h"

#include <stdlib.h>
#include <string.h>

static oracle_wide convert_least(const struct table_type *type) {
    return type->kind == 'S' ? -((oracle_wide)1 << (type->bits - 1)) : 0;
}

static oracle_wide convert_most(const struct table_type *type) {
    return ((oracle_wide)1 << (type->bits - (type->kind == 'S' ? 1 : 0))) - 1;
}

/* An integer as its register has it: sign or zeros fill what the type does not. */
static void give_integer(const struct oracle_call *call, const struct table_type *to,
                         oracle_wide value) {
    oracle_wide modulus = (oracle_wide)1 << to->bits;
    value %= modulus;
    if (value < 0) value += modulus;
    if (to->kind == 'S' && value > convert_most(to)) value -= modulus;
    oracle_give(call, 0, (uint64_t)value);
}

static oracle_wide convert_clamped(const struct table_type *to, oracle_wide value) {
    return value < convert_least(to)  ? convert_least(to)
           : value > convert_most(to) ? convert_most(to)
                                      : value;
}

static struct oracle_number source_number(const struct oracle_call *call,
                                          const struct table_type *from, uint64_t bits) {
    struct oracle_format format = oracle_format_of(from);
    struct oracle_number x = oracle_decode(format, bits);
    bool tiny = x.kind == ORACLE_FINITE && x.significand >> format.fraction_bits == 0;
    /* The manual says that these are flushed on the way to f16 too; an H200 does not. */
    bool to_half = strcmp(call->type[0]->name, "f16") == 0;
    if (oracle_has(call, "ftz") && from->bits == 32 && tiny && !to_half) x.kind = ORACLE_ZERO;
    return x;
}

static void convert_float_to_integer(const struct oracle_call *call, const struct table_type *to,
                                     const struct table_type *from) {
    struct oracle_number x = source_number(call, from, call->source[0]);
    if (x.kind == ORACLE_NOT_A_NUMBER) {
        /* Zero, but for doubles and for 64-bit results the value with the top bit alone. */
        bool top = from->bits == 64 || to->bits == 64;
        give_integer(call, to, top ? (oracle_wide)1 << (to->bits - 1) : 0);
        return;
    }
    x = oracle_whole(x, oracle_rounding_of(call));
    oracle_wide value = 0;
    if (x.kind == ORACLE_INFINITE || (x.kind == ORACLE_FINITE && x.exponent > 64)) {
        value = (oracle_wide)1 << 100;
    } else if (x.kind == ORACLE_FINITE) {
        value = (oracle_wide)(x.significand << x.exponent);
    }
    if (x.negative) value = -value;
    give_integer(call, to, convert_clamped(to, value));
}

/* What comes out as a floating point number, from any number. */
static uint64_t to_float(const struct oracle_call *call, const struct table_type *to,
                         struct oracle_number x) {
    struct oracle_format format = oracle_format_of(to);
    uint64_t sign = 1ull << (format.exponent_bits + format.fraction_bits);
    enum oracle_rounding rounding = oracle_rounding_of(call);
    bool nan = x.kind == ORACLE_NOT_A_NUMBER;
    if (oracle_has(call, "sat") && (nan || x.negative)) return 0;
    if (oracle_has(call, "relu") && !nan && x.negative) return 0;
    uint64_t bits = oracle_encode(format, x, rounding);
    if (nan) return bits;
    if (oracle_has(call, "sat")) {
        uint64_t one = oracle_encode(format, oracle_from_integer(1), ORACLE_NEAREST);
        if (bits > one) bits = one;
    }
    if (oracle_has(call, "satfinite") && (bits & (sign - 1)) > oracle_largest(format)) {
        bits = (bits & sign) | oracle_largest(format);
    }
    bool tiny = (bits & (sign - 1)) < 1ull << format.fraction_bits;
    if (oracle_has(call, "ftz") && to->bits == 32 && to->elements == 1 && tiny) bits &= sign;
    return bits;
}

static bool is_packed(const struct table_type *type) {
    return type->elements == 2;
}

/* Two sources into the halves of one result, the first into the upper one; or a packed source. */
static void convert_packed(const struct oracle_call *call, const struct table_type *to,
                           const struct table_type *from) {
    unsigned width = to->bits / 2u;
    uint64_t all = 0;
    for (unsigned e = 0; e < 2; e++) {
        uint64_t bits =
            is_packed(from) ? call->source[0] >> (e * (from->bits / 2u)) : call->source[1 - e];
        if (is_packed(from)) bits &= (1ull << (from->bits / 2u)) - 1;
        all |= to_float(call, to, source_number(call, from, bits)) << (e * width);
    }
    oracle_give(call, 0, all);
}

/* Clamped numbers side by side, the last source lowest. */
static void convert_pack(const struct oracle_call *call) {
    const char *name = call->instruction->words[3]; /* cvt.pack.sat.u4 */
    int bits = (int)strtol(name + 1, NULL, 10);
    struct table_type to = {.bits = (uint8_t)bits, .kind = name[0] == 's' ? 'S' : 'U'};
    const struct table_type *from = table_type_find("s32", 3);
    uint64_t all = call->row->source_count > 2 ? call->source[2] : 0, size = 1ull << bits;
    for (int i = 0; i < 2; i++) {
        oracle_wide value = convert_clamped(&to, oracle_value(from, call->source[i]));
        all = all * size + ((uint64_t)value & (size - 1));
    }
    oracle_give(call, 0, all);
}

bool oracle_convert(const struct oracle_call *call) {
    const struct table_type *to = call->type[0], *from = call->type[1];
    if (!oracle_is(call, "cvt")) return false;
    if (oracle_has(call, "pack")) {
        convert_pack(call);
        return true;
    }
    if (from == NULL) return false;
    if (is_packed(to)) {
        convert_packed(call, to, from);
        return true;
    }
    if (from->kind != 'F') {
        oracle_wide value = oracle_value(from, call->source[0]);
        if (to->kind == 'F') {
            oracle_give(call, 0, to_float(call, to, oracle_from_integer(value)));
        } else {
            give_integer(call, to, oracle_has(call, "sat") ? convert_clamped(to, value) : value);
        }
        return true;
    }
    if (to->kind != 'F') {
        convert_float_to_integer(call, to, from);
        return true;
    }
    struct oracle_number x = source_number(call, from, call->source[0]);
    bool whole = oracle_has(call, "rni") || oracle_has(call, "rzi") || oracle_has(call, "rmi") ||
                 oracle_has(call, "rpi");
    if (whole) x = oracle_whole(x, oracle_rounding_of(call));
    uint64_t bits = to_float(call, to, x);
    bool tf32 = strcmp(to->name, "tf32") == 0;
    oracle_give(call, 0, tf32 ? bits << 13 : bits);
    if (x.kind == ORACLE_NOT_A_NUMBER && !oracle_has(call, "sat")) {
        /* Which NaN is left open, and to tf32, rounded away from zero, an H200 gives none. */
        bool away = tf32 && oracle_has(call, "rna");
        call->answer[0].kind = away ? ORACLE_ANY : ORACLE_NAN;
    }
    return true;
}

/*
 * Integer arithmetic in 128 bits. Source: PTX ISA 9.0, section 9.7.1.
 */
#include "oracle.h"

#include <string.h>

static oracle_wide integer_power(int bits) {
    return (oracle_wide)1 << bits;
}

static oracle_wide integer_clamp(oracle_wide value, oracle_wide least, oracle_wide most) {
    return value < least ? least : value > most ? most : value;
}

/* Division that rounds down, as shifts of negative numbers do. */
static oracle_wide floor_divide(oracle_wide a, oracle_wide b) {
    oracle_wide quotient = a / b;
    return quotient * b > a ? quotient - 1 : quotient;
}

/* The product of two 64-bit numbers with a sign does fit; of two without, only as unsigned. */
static uint64_t high_half(const struct oracle_call *call, int bits) {
    const struct table_type *type = call->type[0];
    oracle_wide a = oracle_value(type, call->source[0]), b = oracle_value(type, call->source[1]);
    if (type->kind == 'S' || bits < 64) return (uint64_t)floor_divide(a * b, integer_power(bits));
    return (uint64_t)((oracle_uwide)a * (oracle_uwide)b >> 64);
}

static bool integer_multiply(const struct oracle_call *call, bool adds) {
    const struct table_type *type = call->type[0];
    oracle_uwide a = (oracle_uwide)oracle_value(type, call->source[0]);
    oracle_uwide b = (oracle_uwide)oracle_value(type, call->source[1]);
    uint64_t c = adds ? call->source[2] : 0;
    if (!oracle_has(call, "hi")) {
        oracle_give(call, 0, (uint64_t)(a * b) + c);
    } else if (oracle_has(call, "sat")) {
        oracle_wide sum = (oracle_wide)(int64_t)high_half(call, type->bits) + (int32_t)(uint32_t)c;
        oracle_give(call, 0,
                    (uint64_t)integer_clamp(sum, -integer_power(31), integer_power(31) - 1));
    } else {
        oracle_give(call, 0, high_half(call, type->bits) + c);
    }
    return true;
}

static bool integer_multiply24(const struct oracle_call *call, bool adds) {
    bool is_signed = call->type[0]->kind == 'S';
    oracle_wide factor[2];
    for (int i = 0; i < 2; i++) {
        factor[i] = (oracle_wide)(call->source[i] % (1u << 24));
        if (is_signed && factor[i] >= integer_power(23)) factor[i] -= integer_power(24);
    }
    oracle_wide product = factor[0] * factor[1];
    if (oracle_has(call, "hi")) product = floor_divide(product, integer_power(16));
    if (adds) product += oracle_value(call->type[0], call->source[2]);
    if (oracle_has(call, "sat"))
        product = integer_clamp(product, -integer_power(31), integer_power(31) - 1);
    oracle_give(call, 0, (uint64_t)product);
    return true;
}

static bool integer_divide(const struct oracle_call *call, bool remainder) {
    oracle_wide a = oracle_value(call->type[0], call->source[0]);
    oracle_wide b = oracle_value(call->type[0], call->source[1]);
    if (b == 0) {
        call->answer[0].kind = ORACLE_ANY; /* the machine's own */
        return true;
    }
    oracle_give(call, 0, (uint64_t)(remainder ? a % b : a / b));
    return true;
}

static oracle_wide integer_part(uint64_t word, int width, int index, bool is_signed) {
    oracle_wide value = (oracle_wide)(word >> (width * index)) % integer_power(width);
    return is_signed && value >= integer_power(width - 1) ? value - integer_power(width) : value;
}

static bool integer_dot(const struct oracle_call *call) {
    bool a_signed = call->type[0]->kind == 'S', b_signed = call->type[1]->kind == 'S';
    bool two = oracle_is(call, "dp2a");
    int offset = two && oracle_has(call, "hi") ? 2 : 0;
    oracle_wide sum = (oracle_wide)call->source[2];
    for (int i = 0; i < (two ? 2 : 4); i++) {
        sum += integer_part(call->source[0], two ? 16 : 8, i, a_signed) *
               integer_part(call->source[1], 8, i + offset, b_signed);
    }
    oracle_give(call, 0, (uint64_t)sum);
    return true;
}

static bool integer_sum(const struct oracle_call *call, int sign) {
    oracle_wide a = oracle_value(call->type[0], call->source[0]);
    oracle_wide b = oracle_value(call->type[0], call->source[1]);
    oracle_wide result = a + sign * b;
    if (oracle_has(call, "sat"))
        result = integer_clamp(result, -integer_power(31), integer_power(31) - 1);
    oracle_give(call, 0, (uint64_t)result);
    return true;
}

static oracle_wide integer_chosen(const struct oracle_call *call, oracle_wide a, oracle_wide b) {
    oracle_wide result = oracle_is(call, "min") == (a < b) ? a : b;
    return oracle_has(call, "relu") && result < 0 ? 0 : result;
}

/* Two in a register. */
static bool integer_packed(const struct oracle_call *call) {
    bool is_signed = call->type[0]->kind == 'S';
    uint64_t all = 0;
    for (int i = 0; i < 2; i++) {
        oracle_wide a = integer_part(call->source[0], 16, i, is_signed);
        oracle_wide b = integer_part(call->source[1], 16, i, is_signed);
        oracle_wide result = oracle_is(call, "add") ? a + b : integer_chosen(call, a, b);
        all |= ((uint64_t)result & 0xffff) << (16 * i);
    }
    oracle_give(call, 0, all);
    return true;
}

bool oracle_integer(const struct oracle_call *call) {
    const struct table_type *type = call->type[0];
    if (type != NULL && type->elements == 2 && type->kind != 'F') return integer_packed(call);
    if (type == NULL || type->elements != 1 || (type->kind != 'U' && type->kind != 'S')) {
        return false;
    }
    if (oracle_is(call, "dp4a") || oracle_is(call, "dp2a")) return integer_dot(call);
    /* More may precede it, but not follow it. */
    const struct table_row *row = call->row;
    if (call->instruction + 1 < row->instructions + row->instruction_count) return false;
    oracle_wide a = oracle_value(type, call->source[0]);
    oracle_wide b = call->row->source_count > 1 ? oracle_value(type, call->source[1]) : a;
    if (oracle_is(call, "add")) return integer_sum(call, 1);
    if (oracle_is(call, "sub")) {
        if (call->row->source_count == 1) return oracle_give(call, 0, 0), true;
        return integer_sum(call, -1);
    }
    if (oracle_is(call, "mul")) return integer_multiply(call, false);
    if (oracle_is(call, "mad")) return integer_multiply(call, true);
    if (oracle_is(call, "mul24")) return integer_multiply24(call, false);
    if (oracle_is(call, "mad24")) return integer_multiply24(call, true);
    if (oracle_is(call, "div")) return integer_divide(call, false);
    if (oracle_is(call, "rem")) return integer_divide(call, true);
    if (oracle_is(call, "sad")) {
        oracle_wide difference = a < b ? b - a : a - b;
        oracle_give(call, 0, (uint64_t)(difference + (oracle_wide)call->source[2]));
    } else if (oracle_is(call, "abs")) {
        oracle_give(call, 0, (uint64_t)(a < 0 ? -a : a));
    } else if (oracle_is(call, "neg")) {
        oracle_give(call, 0, (uint64_t)-a);
    } else if (oracle_is(call, "min")) {
        oracle_give(call, 0, (uint64_t)integer_chosen(call, a, b));
    } else if (oracle_is(call, "max")) {
        oracle_give(call, 0, (uint64_t)integer_chosen(call, a, b));
    } else {
        return false;
    }
    return true;
}

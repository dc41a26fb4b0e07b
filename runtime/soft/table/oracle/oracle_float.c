/*
 * Floating point: exact arithmetic, rounded once. Source: PTX ISA 9.0, sections 9.7.3 to 9.7.5.
 *
 * Every format is the same here; packed ones are two of them.
 */
#include "oracle_number.h"

#include <string.h>

enum oracle_rounding oracle_rounding_of(const struct oracle_call *call) {
    static const struct {
        const char *word;
        enum oracle_rounding rounding;
    } words[] = {{"rz", ORACLE_TOWARD_ZERO},  {"rm", ORACLE_DOWN},  {"rp", ORACLE_UP},
                 {"rzi", ORACLE_TOWARD_ZERO}, {"rmi", ORACLE_DOWN}, {"rpi", ORACLE_UP},
                 {"rna", ORACLE_NEAREST_AWAY}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (oracle_has(call, words[i].word)) return words[i].rounding;
    }
    return ORACLE_NEAREST;
}

/* A subnormal, as a zero of its sign. */
static struct oracle_number float_flushed(struct oracle_format format, uint64_t bits) {
    struct oracle_number a = oracle_decode(format, bits);
    uint64_t exponent = bits >> format.fraction_bits & ((1ull << format.exponent_bits) - 1);
    if (a.kind == ORACLE_FINITE && exponent == 0) a.kind = ORACLE_ZERO;
    return a;
}

static uint64_t sign_bit(struct oracle_format format) {
    return 1ull << (format.exponent_bits + format.fraction_bits);
}

/* The sum, product, ... as a number that is not yet rounded. */
static bool float_compute(const struct oracle_call *call, const struct oracle_number *x,
                          enum oracle_rounding rounding, struct oracle_number *result) {
    static const struct oracle_number one = {.kind = ORACLE_FINITE, .significand = 1};
    struct oracle_number minus = x[1];
    minus.negative = !minus.negative;
    if (oracle_is(call, "add")) {
        *result = oracle_add(x[0], x[1], rounding);
    } else if (oracle_is(call, "sub")) {
        *result = oracle_add(x[0], minus, rounding);
    } else if (oracle_is(call, "mul")) {
        *result = oracle_multiply(x[0], x[1]);
    } else if (oracle_is(call, "fma") || oracle_is(call, "mad")) {
        *result = oracle_add(oracle_multiply(x[0], x[1]), x[2], rounding);
    } else if (oracle_is(call, "div")) {
        *result = oracle_divide(x[0], x[1]);
    } else if (oracle_is(call, "rcp")) {
        *result = oracle_divide(one, x[0]);
    } else if (oracle_is(call, "sqrt")) {
        *result = oracle_root(x[0]);
    } else {
        return false;
    }
    return true;
}

/* Rounds, and does what the modifiers ask for afterwards. */
static uint64_t float_finish(const struct oracle_call *call, struct oracle_format format,
                             struct oracle_number number, enum oracle_rounding rounding) {
    uint64_t bits = oracle_encode(format, number, rounding);
    /* What is flushed is small when rounded to the format's digits, whatever its exponent: among
     * subnormals, which have fewer, rounding may have made it normal. */
    struct oracle_number larger = number;
    larger.exponent += 16;
    uint64_t size = oracle_encode(format, larger, rounding) & (sign_bit(format) - 1);
    bool small = (number.kind == ORACLE_FINITE && size < 17ull << format.fraction_bits);
    if (oracle_has(call, "ftz") && small) bits &= sign_bit(format);
    bool nan = number.kind == ORACLE_NOT_A_NUMBER;
    if (oracle_has(call, "sat") || oracle_has(call, "relu")) {
        if (nan) return oracle_has(call, "sat") ? 0 : bits;
        if ((bits & sign_bit(format)) != 0) return 0;
        uint64_t one = oracle_encode(format, oracle_from_integer(1), ORACLE_NEAREST);
        if (oracle_has(call, "sat") && bits > one) return one;
    }
    return bits;
}

static bool float_is_nan(struct oracle_number a) {
    return a.kind == ORACLE_NOT_A_NUMBER;
}

/* min and max: -0 is less than +0. */
static uint64_t float_choose(const struct oracle_call *call, struct oracle_format format,
                             const uint64_t *bits) {
    uint64_t sign = sign_bit(format), all_ones = sign - 1, own[2];
    struct oracle_number x[2];
    bool by_size = oracle_has(call, "abs");
    for (int i = 0; i < 2; i++) {
        own[i] = bits[i];
        x[i] =
            oracle_has(call, "ftz") ? float_flushed(format, own[i]) : oracle_decode(format, own[i]);
        if (x[i].kind == ORACLE_ZERO) own[i] &= sign;
        if (by_size) own[i] &= ~sign, x[i].negative = false;
    }
    if (float_is_nan(x[0]) && float_is_nan(x[1])) return all_ones;
    if (oracle_has(call, "NaN") && (float_is_nan(x[0]) || float_is_nan(x[1]))) return all_ones;
    uint64_t product_sign = oracle_has(call, "xorsign") ? (bits[0] ^ bits[1]) & sign : 0;
    if (float_is_nan(x[0])) return own[1] | product_sign;
    if (float_is_nan(x[1])) return own[0] | product_sign;
    int order = oracle_order(x[0], x[1]);
    if (order == 0) order = (int)x[1].negative - (int)x[0].negative;
    bool first = oracle_is(call, "min") ? order <= 0 : order >= 0;
    return own[first ? 0 : 1] | product_sign;
}

/* min and max of three: the first two, and then the third. */
static uint64_t float_choose_three(const struct oracle_call *call, struct oracle_format format,
                                   const uint64_t *bits) {
    const uint64_t rest[2] = {float_choose(call, format, bits), bits[2]};
    return float_choose(call, format, rest);
}

/* One element: the sources' bits are given. */
static bool float_element(const struct oracle_call *call, struct oracle_format format,
                          const uint64_t *bits, unsigned count, uint64_t *result) {
    struct oracle_number x[3] = {{.kind = ORACLE_ZERO}}, number;
    bool ftz = oracle_has(call, "ftz");
    uint64_t sign = sign_bit(format);
    for (unsigned i = 0; i < count && i < 3; i++) {
        x[i] = ftz ? float_flushed(format, bits[i]) : oracle_decode(format, bits[i]);
    }
    if (oracle_is(call, "min") || oracle_is(call, "max")) {
        *result =
            count == 3 ? float_choose_three(call, format, bits) : float_choose(call, format, bits);
        if (oracle_has(call, "relu") && (*result & sign) != 0) *result = 0;
        return true;
    }
    if (oracle_is(call, "abs") || oracle_is(call, "neg")) {
        uint64_t own = x[0].kind == ORACLE_ZERO ? bits[0] & sign : bits[0];
        *result = oracle_is(call, "abs") ? own & ~sign : own ^ sign;
        if (float_is_nan(x[0])) *result = sign - 1;
        return true;
    }
    enum oracle_rounding rounding = oracle_rounding_of(call);
    if (!float_compute(call, x, rounding, &number)) return false;
    *result = float_finish(call, format, number, rounding);
    return true;
}

/* A NaN of a double keeps what the machine makes of it; all others are the canonical one. */
static void float_give(const struct oracle_call *call, const struct table_type *type,
                       uint64_t bits) {
    oracle_give(call, 0, bits);
    if (type->bits == 64 && float_is_nan(oracle_decode(oracle_format_of(type), bits))) {
        call->answer[0].kind = ORACLE_NAN;
    }
}

/* mul; add: rounded twice. */
static bool float_twice(const struct oracle_call *call, struct oracle_format format) {
    struct oracle_number x[3];
    for (int i = 0; i < 3; i++) x[i] = oracle_decode(format, call->source[i]);
    uint64_t product = oracle_encode(format, oracle_multiply(x[0], x[1]), ORACLE_NEAREST);
    struct oracle_number sum = oracle_add(oracle_decode(format, product), x[2], ORACLE_NEAREST);
    oracle_give(call, 0, product);
    if (call->type[0]->bits == 64 && float_is_nan(oracle_decode(format, product))) {
        call->answer[0].kind = ORACLE_NAN;
    }
    oracle_give(call, 1, oracle_encode(format, sum, ORACLE_NEAREST));
    if (call->type[0]->bits == 64 && float_is_nan(sum)) call->answer[1].kind = ORACLE_NAN;
    return true;
}

/* A half, or two, and a single: every source is exact, and the result is rounded once. */
static bool float_mixed(const struct oracle_call *call) {
    struct oracle_format single = oracle_format_of(call->type[0]);
    struct oracle_format half = oracle_format_of(call->type[1]);
    struct oracle_number x[3] = {{.kind = ORACLE_ZERO}}, number;
    enum oracle_rounding rounding = oracle_rounding_of(call);
    const unsigned count = call->row->source_count;
    if (oracle_is(call, "cvt") || count < 2 || count > 3) return false;
    for (unsigned i = 0; i < count; i++) {
        x[i] = oracle_decode(i + 1 < count ? half : single, call->source[i]);
    }
    if (!float_compute(call, x, rounding, &number)) return false;
    float_give(call, call->type[0], float_finish(call, single, number, rounding));
    return true;
}

bool oracle_float(const struct oracle_call *call) {
    const struct table_type *type = call->type[0];
    if (type != NULL && type->kind == 'F' && call->type[1] != NULL && call->type[1]->bits == 16 &&
        type->bits == 32 && type->elements == 1 && call->instruction->type_count == 2) {
        return float_mixed(call);
    }
    if (type == NULL || type->kind != 'F' || call->instruction->type_count != 1 ||
        oracle_has(call, "approx") || oracle_has(call, "full") || oracle_has(call, "global") ||
        oracle_has(call, "shared")) {
        return false;
    }
    struct oracle_format format = oracle_format_of(type);
    if (call->row->instruction_count == 2) return float_twice(call, format);
    if (oracle_is(call, "copysign")) {
        uint64_t sign = sign_bit(format);
        oracle_give(call, 0, (call->source[1] & (sign - 1)) | (call->source[0] & sign));
        return true;
    }
    unsigned width = type->bits / type->elements;
    uint64_t mask = width == 64 ? UINT64_MAX : (1ull << width) - 1, all = 0;
    for (unsigned e = 0; e < type->elements; e++) {
        uint64_t bits[3] = {0}, result = 0;
        for (unsigned i = 0; i < call->row->source_count && i < 3; i++) {
            bits[i] = call->source[i] >> (e * width) & mask;
        }
        if (!float_element(call, format, bits, call->row->source_count, &result)) return false;
        all |= result << (e * width);
    }
    float_give(call, type, all);
    return true;
}

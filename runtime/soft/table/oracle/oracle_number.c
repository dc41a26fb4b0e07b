/*
 * Exact arithmetic on numbers, and rounding, without floating point.
 */
#include "oracle_number.h"

#include <math.h>

struct oracle_format oracle_format_of(const struct table_type *type) {
    struct oracle_format format = {type->exponent_bits, type->fraction_bits,
                                   type->exponent_bits == 4};
    return format;
}

struct oracle_number oracle_decode(struct oracle_format format, uint64_t bits) {
    uint64_t fraction = bits & ((1ull << format.fraction_bits) - 1);
    int top = (1 << format.exponent_bits) - 1;
    int exponent = (int)(bits >> format.fraction_bits) & top, bias = top / 2;
    struct oracle_number a = {.kind = ORACLE_FINITE,
                              .negative = bits >> (format.exponent_bits + format.fraction_bits) & 1,
                              .significand = fraction};
    bool all_ones = fraction == (1ull << format.fraction_bits) - 1;
    if (exponent == top && (!format.finite || all_ones)) {
        a.kind = fraction == 0 ? ORACLE_INFINITE : ORACLE_NOT_A_NUMBER;
        return a;
    }
    if (exponent == 0 && fraction == 0) a.kind = ORACLE_ZERO;
    if (exponent > 0) a.significand += (oracle_uwide)1 << format.fraction_bits;
    a.exponent = (exponent > 0 ? exponent : 1) - bias - (int)format.fraction_bits;
    return a;
}

struct oracle_number oracle_from_integer(oracle_wide value) {
    struct oracle_number a = {.kind = value == 0 ? ORACLE_ZERO : ORACLE_FINITE,
                              .negative = value < 0,
                              .significand = (oracle_uwide)(value < 0 ? -value : value)};
    return a;
}

/* Moves the leading one to bit 120. */
static struct oracle_number number_normal(struct oracle_number a) {
    if (a.kind != ORACLE_FINITE) return a;
    while (a.significand >> 120 == 0) a.significand *= 2, a.exponent--;
    while (a.significand >> 121 != 0) {
        a.inexact |= a.significand & 1;
        a.significand /= 2, a.exponent++;
    }
    return a;
}

static const struct oracle_number not_a_number = {.kind = ORACLE_NOT_A_NUMBER};

int oracle_order(struct oracle_number a, struct oracle_number b) {
    if (a.kind == ORACLE_ZERO) a.negative = false;
    if (b.kind == ORACLE_ZERO) b.negative = false;
    if (a.kind == ORACLE_ZERO && b.kind == ORACLE_ZERO) return 0;
    if (a.kind == ORACLE_ZERO) return b.negative ? 1 : -1;
    if (b.kind == ORACLE_ZERO || a.negative != b.negative) return a.negative ? -1 : 1;
    int sign = a.negative ? -1 : 1;
    if (a.kind != b.kind) return a.kind == ORACLE_INFINITE ? sign : -sign;
    if (a.kind == ORACLE_INFINITE) return 0;
    a = number_normal(a), b = number_normal(b);
    if (a.exponent != b.exponent) return a.exponent > b.exponent ? sign : -sign;
    if (a.significand != b.significand) return a.significand > b.significand ? sign : -sign;
    return 0;
}

struct oracle_number oracle_add(struct oracle_number a, struct oracle_number b,
                                enum oracle_rounding rounding) {
    if (a.kind == ORACLE_NOT_A_NUMBER || b.kind == ORACLE_NOT_A_NUMBER) return not_a_number;
    if (a.kind == ORACLE_INFINITE && b.kind == ORACLE_INFINITE && a.negative != b.negative) {
        return not_a_number;
    }
    if (a.kind == ORACLE_INFINITE || b.kind == ORACLE_INFINITE) {
        return a.kind == ORACLE_INFINITE ? a : b;
    }
    /* A zero sum of opposite signs is +0, but rounding down gives -0. */
    if (a.kind == ORACLE_ZERO && b.kind == ORACLE_ZERO) {
        if (a.negative != b.negative) a.negative = rounding == ORACLE_DOWN;
        return a;
    }
    if (a.kind == ORACLE_ZERO) return b;
    if (b.kind == ORACLE_ZERO) return a;
    a = number_normal(a), b = number_normal(b);
    struct oracle_number big = a, small = b;
    if (a.exponent < b.exponent || (a.exponent == b.exponent && a.significand < b.significand)) {
        big = b, small = a;
    }
    /* What the smaller one loses here is far below the last place of any format: at least 14 bits
     * below the last of a product's, and nothing is lost where leading digits cancel. */
    for (int d = big.exponent - small.exponent; d > 0; d--) {
        small.inexact |= small.significand & 1;
        small.significand /= 2;
        if (small.significand == 0) break;
    }
    struct oracle_number sum = big;
    sum.inexact |= small.inexact;
    if (big.negative == small.negative) {
        sum.significand += small.significand;
    } else {
        sum.significand -= small.significand;
        if (small.inexact) sum.significand--;
    }
    if (sum.significand == 0) {
        sum = (struct oracle_number){.kind = ORACLE_ZERO, .negative = rounding == ORACLE_DOWN};
    }
    return sum;
}

struct oracle_number oracle_multiply(struct oracle_number a, struct oracle_number b) {
    bool negative = a.negative != b.negative;
    if (a.kind == ORACLE_NOT_A_NUMBER || b.kind == ORACLE_NOT_A_NUMBER) return not_a_number;
    if (a.kind == ORACLE_INFINITE || b.kind == ORACLE_INFINITE) {
        if (a.kind == ORACLE_ZERO || b.kind == ORACLE_ZERO) return not_a_number;
        return (struct oracle_number){.kind = ORACLE_INFINITE, .negative = negative};
    }
    if (a.kind == ORACLE_ZERO || b.kind == ORACLE_ZERO) {
        return (struct oracle_number){.kind = ORACLE_ZERO, .negative = negative};
    }
    return (struct oracle_number){.kind = ORACLE_FINITE,
                                  .negative = negative,
                                  .exponent = a.exponent + b.exponent,
                                  .significand = a.significand * b.significand};
}

struct oracle_number oracle_divide(struct oracle_number a, struct oracle_number b) {
    bool negative = a.negative != b.negative;
    if (a.kind == ORACLE_NOT_A_NUMBER || b.kind == ORACLE_NOT_A_NUMBER) return not_a_number;
    if (a.kind == b.kind && a.kind != ORACLE_FINITE) return not_a_number;
    if (a.kind == ORACLE_INFINITE || b.kind == ORACLE_ZERO) {
        return (struct oracle_number){.kind = ORACLE_INFINITE, .negative = negative};
    }
    if (a.kind == ORACLE_ZERO || b.kind == ORACLE_INFINITE) {
        return (struct oracle_number){.kind = ORACLE_ZERO, .negative = negative};
    }
    a = number_normal(a);
    while ((b.significand & 1) == 0) b.significand /= 2, b.exponent++;
    return (struct oracle_number){.kind = ORACLE_FINITE,
                                  .negative = negative,
                                  .inexact = a.significand % b.significand != 0,
                                  .exponent = a.exponent - b.exponent,
                                  .significand = a.significand / b.significand};
}

struct oracle_number oracle_root(struct oracle_number a) {
    if (a.kind == ORACLE_ZERO || a.kind == ORACLE_NOT_A_NUMBER) return a;
    if (a.negative) return not_a_number;
    if (a.kind == ORACLE_INFINITE) return a;
    a = number_normal(a);
    if (a.exponent % 2 != 0) a.significand *= 2, a.exponent--;
    /* Bit by bit, from the top. */
    oracle_uwide root = 0;
    for (int bit = 63; bit >= 0; bit--) {
        oracle_uwide more = root + ((oracle_uwide)1 << bit);
        if (more * more <= a.significand) root = more;
    }
    a.inexact = root * root != a.significand;
    a.significand = root;
    a.exponent /= 2;
    return a;
}

/* Drops the low bits of a significand; what is left is rounded. */
static oracle_uwide number_rounded(struct oracle_number a, int drop,
                                   enum oracle_rounding rounding) {
    if (drop <= 0) return a.significand << -drop;
    oracle_uwide kept = drop > 127 ? 0 : a.significand >> drop;
    oracle_uwide rest = drop > 127 ? a.significand : a.significand - (kept << drop);
    oracle_uwide half = drop > 127 ? ~(oracle_uwide)0 : (oracle_uwide)1 << (drop - 1);
    bool exact = rest == 0 && !a.inexact, middle = rest == half && !a.inexact;
    switch (rounding) {
    case ORACLE_TOWARD_ZERO:
        return kept;
    case ORACLE_DOWN:
        return kept + (!exact && a.negative);
    case ORACLE_UP:
        return kept + (!exact && !a.negative);
    case ORACLE_NEAREST_AWAY:
        return kept + (rest >= half);
    default:
        return kept + (middle ? kept & 1 : rest >= half);
    }
}

struct oracle_number oracle_whole(struct oracle_number a, enum oracle_rounding rounding) {
    if (a.kind != ORACLE_FINITE || a.exponent >= 0) return a;
    a.significand = number_rounded(a, -a.exponent, rounding);
    a.exponent = 0;
    a.inexact = false;
    if (a.significand == 0) a.kind = ORACLE_ZERO;
    return a;
}

uint64_t oracle_largest(struct oracle_format format) {
    uint64_t top = ((1ull << format.exponent_bits) - 1) << format.fraction_bits;
    return format.finite ? top + (1ull << format.fraction_bits) - 2 : top - 1;
}

uint64_t oracle_encode(struct oracle_format format, struct oracle_number a,
                       enum oracle_rounding rounding) {
    unsigned width = format.exponent_bits + format.fraction_bits;
    uint64_t sign = a.negative ? 1ull << width : 0, infinity = oracle_largest(format) + 1;
    if (a.kind == ORACLE_NOT_A_NUMBER) return (1ull << width) - 1;
    if (a.kind == ORACLE_ZERO) return sign;
    if (a.kind == ORACLE_INFINITE) return sign | infinity;
    a = number_normal(a);
    int bias = (1 << (format.exponent_bits - 1)) - 1;
    int least = 1 - bias - (int)format.fraction_bits; /* exponent of the last place */
    int drop = 120 - (int)format.fraction_bits;
    if (a.exponent + drop < least) drop = least - a.exponent;
    int exponent = a.exponent + drop - least; /* 0 for subnormal and for the least normal */
    if (exponent <= 2 * bias + 1) {
        uint64_t kept = (uint64_t)number_rounded(a, drop, rounding);
        uint64_t bits = kept + ((uint64_t)exponent << format.fraction_bits);
        if (bits < infinity) return sign | bits;
    }
    bool stays = rounding == ORACLE_TOWARD_ZERO || (rounding == ORACLE_DOWN && !a.negative) ||
                 (rounding == ORACLE_UP && a.negative);
    return sign | (stays ? oracle_largest(format) : infinity);
}

double oracle_number_to_double(struct oracle_number a) {
    double sign = a.negative ? -1 : 1;
    if (a.kind == ORACLE_NOT_A_NUMBER) return (double)NAN;
    if (a.kind == ORACLE_INFINITE) return sign * (double)INFINITY;
    return a.kind == ORACLE_ZERO ? sign * 0.0 : sign * ldexp((double)a.significand, a.exponent);
}

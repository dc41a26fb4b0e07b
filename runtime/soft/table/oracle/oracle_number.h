/*
 * The oracle's numbers: exact, or exact except for a nonzero remainder.
 */
#ifndef SOFT_ORACLE_NUMBER_H
#define SOFT_ORACLE_NUMBER_H

#include "oracle.h"

/* significand x 2^exponent, plus something below one unit of the significand if inexact. */
struct oracle_number {
    enum { ORACLE_ZERO, ORACLE_FINITE, ORACLE_INFINITE, ORACLE_NOT_A_NUMBER } kind;
    bool negative, inexact;
    int exponent;
    oracle_uwide significand;
};

struct oracle_format {
    unsigned exponent_bits, fraction_bits;
    bool finite; /* no infinity: all ones is NaN, and what lies below it are numbers (e4m3) */
};

enum oracle_rounding {
    ORACLE_NEAREST,
    ORACLE_TOWARD_ZERO,
    ORACLE_DOWN,
    ORACLE_UP,
    ORACLE_NEAREST_AWAY
};

struct oracle_format oracle_format_of(const struct table_type *type);

struct oracle_number oracle_decode(struct oracle_format format, uint64_t bits);
struct oracle_number oracle_from_integer(oracle_wide value);
struct oracle_number oracle_add(struct oracle_number a, struct oracle_number b,
                                enum oracle_rounding rounding);
struct oracle_number oracle_multiply(struct oracle_number a, struct oracle_number b);
struct oracle_number oracle_divide(struct oracle_number a, struct oracle_number b);
struct oracle_number oracle_root(struct oracle_number a);
/* Rounds to a whole number. */
struct oracle_number oracle_whole(struct oracle_number a, enum oracle_rounding rounding);

/* Rounds into the format. A NaN becomes the one whose bits are all ones but the sign. */
uint64_t oracle_encode(struct oracle_format format, struct oracle_number a,
                       enum oracle_rounding rounding);

/* The rounding of the modifiers; nearest without one. */
enum oracle_rounding oracle_rounding_of(const struct oracle_call *call);

/* -1, 0, 1; neither is a NaN. Zeros are equal. */
int oracle_order(struct oracle_number a, struct oracle_number b);

uint64_t oracle_largest(struct oracle_format format);
/* For numbers of at most 53 bits. */
double oracle_number_to_double(struct oracle_number a);

#endif

/*
 * The elements of matrices: numbers with informative sums of products.
 *
 * With the values of single instructions nearly every sum would be NaN, or one product and nothing
 * else. So each warp has matrices of one kind, and the kinds take turns.
 */
#include "table.h"

enum kind {
    ABOUT_ONE,  /* every product takes part */
    SPREAD,     /* of very different sizes: small ones are cut off */
    CANCELLING, /* sums in which leading digits go */
    SMALL,      /* subnormal factors, subnormal products */
    LARGE,      /* sums that overflow */
    ZEROS,
    SPECIAL, /* now and then a NaN or an infinity */
    FINITE,  /* anything but those */
    KINDS
};

/* The exponent's field of a normal number, near the middle or an end of its range. */
static unsigned table_matrix_field_of(enum kind kind, unsigned top, uint64_t pick) {
    unsigned bias = top / 2, spread = top > 100 ? 30 : top > 20 ? 12 : 5;
    switch (kind) {
    case SPREAD:
        return bias - spread + (unsigned)(pick % (2 * spread + 1));
    case SMALL:
        /* Two factors of half the least exponent make a product near it. */
        return pick % 4 != 0 || top < 100 ? (unsigned)(pick >> 8) % 4
                                          : bias / 2 - 8 + (unsigned)(pick >> 8) % 16;
    case LARGE:
        return top - 1 - (unsigned)(pick % 3);
    case FINITE:
        return (unsigned)(pick % top);
    default:
        return bias - 2 + (unsigned)(pick % 5);
    }
}

static uint64_t table_matrix_element(enum kind kind, unsigned exponent_bits, unsigned fraction_bits,
                                     uint64_t *state) {
    uint64_t bits = table_random(state), pick = table_random(state);
    uint64_t sign = bits >> 63 << (exponent_bits + fraction_bits);
    uint64_t ones = (1ull << fraction_bits) - 1, fraction = bits & ones;
    unsigned top = (1u << exponent_bits) - 1, field = table_matrix_field_of(kind, top, pick >> 16);
    if (kind == CANCELLING) { /* near 1 and near 2, from both sides */
        fraction = (pick & 3) == 0 ? 0 : (pick & 3) == 1 ? 1 : (pick & 3) == 2 ? ones : fraction;
        field = top / 2 + (unsigned)(pick >> 2 & 1);
    }
    if (kind == ZEROS && pick % 4 == 0) field = 0, fraction = 0;
    if (kind == SPECIAL && pick % 128 == 0) {
        field = top;
        fraction = pick & 128 ? 0 : ones; /* all ones are a NaN in every format */
    }
    return sign | (uint64_t)field << fraction_bits | fraction;
}

uint64_t table_matrix_value(const struct table_operand *operand, uint32_t tuple, uint64_t *state) {
    const struct table_type *type = operand->type;
    enum kind kind = (enum kind)(tuple / 32 % KINDS);
    unsigned width = type->bits / type->elements;
    if (type->kind != 'F') return table_random(state);
    uint64_t value = 0;
    for (unsigned i = 0; i < type->elements; i++) {
        uint64_t one = table_matrix_element(kind, type->exponent_bits, type->fraction_bits, state);
        /* tf32 is in the upper bits of a single; the lower bits must not matter. */
        unsigned below = width - 1u - type->exponent_bits - type->fraction_bits;
        one <<= below;
        if (kind == FINITE) one |= table_random(state) & ((1ull << below) - 1);
        value |= one << (i * width);
    }
    return value;
}

/*
 * Matrix products that reveal how their sums are computed: one per property of the accumulator.
 *
 * All rows of A are the same, and all columns of B, so every element of the result is one sum: of C
 * and a few products. A warp has one such sum; tuple / 32 is its number. If the results of
 * tensor_model.table differ between the soft device and a GPU, the probe shows which property is
 * modelled wrongly.
 */
#include "table.h"

#include <math.h>
#include <string.h>

/* A number too large, or too small, is the largest, or the least, of its format. */
#define LARGEST 0x1p900
#define LEAST 0x1p-900

struct term {
    uint8_t k, end; /* the products k to end - 1 are the same; end 0: k alone */
    double a, b;
};

struct probe {
    double c;
    struct term terms[4];
};

/* Two large products that cancel, and a small one at k: it is gone if they are added together. */
#define SAME_BLOCK(k)                                                                              \
    {                                                                                              \
        0, {                                                                                       \
            {0, 0, 0x1p7, 0x1p7}, {1, 0, -0x1p7, 0x1p7}, {                                         \
                k, 0, 0x1p-6, 0x1p-7                                                               \
            }                                                                                      \
        }                                                                                          \
    }
#define SAME_BLOCK_LAST(k)                                                                         \
    {                                                                                              \
        0, {                                                                                       \
            {14, 0, 0x1p7, 0x1p7}, {15, 0, -0x1p7, 0x1p7}, {                                       \
                k, 0, 0x1p-6, 0x1p-7                                                               \
            }                                                                                      \
        }                                                                                          \
    }

static const struct probe probes[] = {
    /* 0: how many binary digits after the point of the largest are kept. One unit of 1 is the sum
     * of two halves of it, four quarters, ... if these are kept. */
    {1, {{0, 1, 0x1p-9, 0x1p-14}}},
    {1, {{0, 2, 0x1p-10, 0x1p-14}}},
    {1, {{0, 4, 0x1p-11, 0x1p-14}}},
    {1, {{0, 8, 0x1p-12, 0x1p-14}}},
    {1, {{0, 16, 0x1p-13, 0x1p-14}}},
    {-1, {{0, 2, -0x1p-10, 0x1p-14}}},
    {-1, {{0, 4, -0x1p-11, 0x1p-14}}},
    {-1, {{0, 8, -0x1p-12, 0x1p-14}}},
    /* 8: the same where a product is the largest, and C is not there */
    {0, {{0, 0, 1, 1}, {1, 3, 0x1p-10, 0x1p-14}}},
    {0, {{0, 0, 1, 1}, {1, 5, 0x1p-11, 0x1p-14}}},
    {0, {{0, 0, 1, 1}, {1, 9, 0x1p-12, 0x1p-14}}},
    /* 11: which products are added together */
    SAME_BLOCK(2),
    SAME_BLOCK(3),
    SAME_BLOCK(4),
    SAME_BLOCK(5),
    SAME_BLOCK(6),
    SAME_BLOCK(7),
    SAME_BLOCK(8),
    SAME_BLOCK(9),
    SAME_BLOCK(10),
    SAME_BLOCK(11),
    SAME_BLOCK(12),
    SAME_BLOCK(13),
    SAME_BLOCK(14),
    SAME_BLOCK(15),
    SAME_BLOCK(16),
    SAME_BLOCK(18),
    SAME_BLOCK(31),
    SAME_BLOCK_LAST(0),
    SAME_BLOCK_LAST(7),
    SAME_BLOCK_LAST(8),
    /* 31: and C with them */
    {0x1p14, {{0, 0, -0x1p7, 0x1p7}, {1, 0, 0x1p-6, 0x1p-7}}},
    {0x1p-13, {{0, 0, 0x1p7, 0x1p7}, {1, 0, -0x1p7, 0x1p7}}},
    {0x1p-13, {{14, 0, 0x1p7, 0x1p7}, {15, 0, -0x1p7, 0x1p7}}},
    /* 34: whether digits are cut off the size, or downwards */
    {-1, {{0, 15, -0x1p-13, 0x1p-14}}},
    {1, {{0, 15, -0x1p-13, 0x1p-14}}},
    {-1, {{0, 15, 0x1p-13, 0x1p-14}}},
    {1, {{0, 15, -0x1p-14, 0x1p-14}}},
    /* 38: how the sum is rounded: three quarters, a half, a quarter of a unit */
    {1, {{0, 3, 0x1p-11, 0x1p-14}}},
    {-1, {{0, 3, -0x1p-11, 0x1p-14}}},
    {1, {{0, 2, 0x1p-11, 0x1p-14}}},
    {0x1.000002p0, {{0, 2, 0x1p-11, 0x1p-14}}},
    {0x1.000002p0, {{0, 0, 1, 1}}},
    {-0x1.000002p0, {{0, 0, -1, 1}}},
    {0x1.fffffep0, {{0, 0, 1, 0x1p-6}}},
    /* 45: the exponent of a product of two numbers of 1.5, before it is one of 2.25 */
    {0, {{0, 0, 1.5, 1.5}, {1, 9, 0x1p-11, 0x1p-14}}},
    {0, {{0, 0, 1.5, 1.5}, {1, 5, 0x1p-10, 0x1p-14}}},
    {0, {{0, 0, 1.75, 1.75}, {1, 3, 0x1p-9, 0x1p-14}}},
    /* 48: the exponent of a product with zero, and of subnormal factors */
    {0, {{0, 0, LARGEST, 0}, {1, 0, 0x1p-13, 0x1p-14}}},
    {0, {{0, 0, 0, LARGEST}, {1, 0, 0x1p-13, 0x1p-14}}},
    {0, {{0, 0, LEAST, LARGEST}, {1, 0, 0x1p-13, 0x1p-14}}},
    {0, {{0, 0, LARGEST, LEAST}, {1, 0, 0x1p-13, 0x1p-14}}},
    {0, {{0, 0, LEAST, LEAST}}},
    /* 53: overflow */
    {LARGEST, {{0, 0, LARGEST, 1}}},
    {LARGEST, {{0, 16, LARGEST, LARGEST}}},
    {-LARGEST, {{0, 16, -LARGEST, LARGEST}}},
    {0, {{0, 8, LARGEST, LARGEST}, {8, 16, -LARGEST, LARGEST}}},
    /* 57: zeros */
    {-0.0, {{0, 32, -0.0, 1}}},
    {-0.0, {{0, 32, 0, 1}}},
    {-1, {{0, 0, 1, 1}}},
    /* 60: subnormal results, and what is beside a special one */
    {LEAST, {{0, 0, LEAST, LEAST}}},
    {-LEAST, {{0, 0, 0, 1}}},
    {0, {{0, 0, (double)INFINITY, 1}, {1, 0, -LARGEST, LARGEST}}},
    {0, {{0, 0, (double)INFINITY, 1}, {15, 0, -(double)INFINITY, 1}}},
};

uint32_t table_probe_count(void) {
    return sizeof probes / sizeof probes[0];
}

/* A number's bits in a format; the probes' numbers fit, or are LARGEST or LEAST. */
static uint64_t table_probe_encoded(double x, unsigned exponent_bits, unsigned fraction_bits) {
    int bias = (1 << (exponent_bits - 1)) - 1, exponent = 0;
    uint64_t sign = signbit(x) ? 1ull << (exponent_bits + fraction_bits) : 0;
    bool finite_only = exponent_bits == 4; /* e4m3: all ones are its NaN, and it has no infinity */
    uint64_t infinity = ((1ull << exponent_bits) - 1) << fraction_bits;
    uint64_t largest = finite_only ? infinity + (1u << fraction_bits) - 2 : infinity - 1;
    double size = fabs(x);
    if (isinf(x)) return sign | (finite_only ? largest + 1 : infinity);
    if (!(size > 0)) return sign;
    if (size > 0x1p200) return sign | largest;
    if (size < 0x1p-200) return sign | 1;
    frexp(size, &exponent);
    int least = 1 - bias - (int)fraction_bits; /* of the last place of a subnormal */
    int last = exponent - 1 - (int)fraction_bits;
    if (last < least) return sign | (uint64_t)ldexp(size, -least);
    uint64_t bits = (uint64_t)ldexp(size, -last) - (1ull << fraction_bits);
    return sign | (uint64_t)(exponent - 1 + bias) << fraction_bits | bits;
}

/* Factor k of the probe's A or B. */
static double factor_at(const struct probe *probe, bool of_a, unsigned k) {
    for (size_t i = 0; i < sizeof probe->terms / sizeof probe->terms[0]; i++) {
        const struct term *term = &probe->terms[i];
        unsigned end = term->end == 0 ? term->k + 1u : term->end;
        if (k >= term->k && k < end) return of_a ? term->a : term->b;
    }
    return 0;
}

uint64_t table_probe_value(const struct table_operand *operand, uint32_t tuple, unsigned index) {
    const struct table_type *type = operand->type;
    const struct probe *probe = &probes[tuple / 32 % table_probe_count()];
    char which = operand->set[strlen("probe_")];
    unsigned width = type->bits / type->elements, per = type->elements, lane = tuple % 32;
    /* tf32 is in the upper bits of a single. */
    unsigned below = width - 1u - type->exponent_bits - type->fraction_bits;
    uint64_t value = 0;
    for (unsigned i = 0; i < per; i++) {
        /* A has rows 8 further down in every second register; B and A go along k in the rest. */
        unsigned k = per * (lane % 4) + i + 4 * per * (which == 'a' ? index / 2 : index);
        double x = which == 'c' ? probe->c : factor_at(probe, which == 'a', k);
        value |= table_probe_encoded(x, type->exponent_bits, type->fraction_bits)
                 << (below + i * width);
    }
    return value;
}

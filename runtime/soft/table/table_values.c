/*
 * The operands: for each type the values at which instructions go wrong, crossed, then random ones.
 *
 * Purely random bits are not enough: two random singles differ so much in size that their sum is
 * one of them. So a random operand is of one of several kinds, most of them near a special value.
 */
#include "table.h"

#include <string.h>

uint64_t table_random(uint64_t *state) {
    /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint64_t table_hash(uint64_t hash, const void *bytes, size_t count) {
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < count; i++) hash = (hash ^ byte[i]) * 0x100000001b3;
    return hash;
}

struct values {
    const uint64_t *items;
    unsigned count;
};

/* Numbers, cut to the width: small ones, powers of two and their neighbours, patterns. */
static const uint64_t integers[] = {0,
                                    1,
                                    2,
                                    3,
                                    7,
                                    10,
                                    31,
                                    32,
                                    33,
                                    63,
                                    64,
                                    0x7f,
                                    0x80,
                                    0xff,
                                    0x100,
                                    0x7fff,
                                    0x8000,
                                    0xffff,
                                    0x10000,
                                    0x7fffff,
                                    0xffffff,
                                    0x1000000,
                                    0x7fffffff,
                                    0x80000000,
                                    -2ull,
                                    0xffffffff,
                                    0x12345678,
                                    0x55555555,
                                    0x100000000,
                                    1ull << 63,
                                    -1ull,
                                    -128ull,
                                    -129ull,
                                    -32768ull,
                                    0x7fffffffffffffff,
                                    0xaaaaaaaaaaaaaaaa,
                                    0x0123456789abcdef,
                                    -2147483648ull};

/* Shift counts, positions and lengths. */
static const uint64_t shifts[] = {0,   1,   2,   7,      8,          15,        16, 17,
                                  24,  31,  32,  33,     47,         63,        64, 65,
                                  128, 255, 256, 0x1f00, 0x80000000, 0xffffffff};

/* Sources of shfl, and what its last operand makes of segments and bounds. */
static const uint64_t lanes[] = {0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 24, 30, 31, 32, 33, 63};
static const uint64_t segments[] = {0x001f, 0x0000, 0x181f, 0x1c07, 0x1e03,
                                    0x1f1f, 0x1000, 0x180f, 0x0007, 0x0010};

static const uint64_t few[] = {0, 1, 2, 0xffffffffffffffff};
static const uint64_t selectors[] = {0x3210, 0x7654, 0x0123,     0xba98,     0xfedc, 0x8888, 0x5410,
                                     0x0000, 0xffff, 0x13579bdf, 0x4567cdef, 1,      2,      3};

static const uint64_t booleans[] = {0, 1};

/* +: zero, the least subnormal, the largest, the least normal and its neighbours, then about 1 and
 * about a half, small integers and halves between them, what other formats cannot hold, the
 * largest numbers, infinity, NaNs. */
static const uint64_t halves[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400,
                                  0x0401, 0x3bff, 0x3c00, 0xbc00, 0x3c01, 0x3800, 0xb800, 0x3801,
                                  0x3e00, 0xbe00, 0x4000, 0xc000, 0x4100, 0xc100, 0x4248, 0x6400,
                                  0x6401, 0x67ff, 0x5bf8, 0x5f00, 0x7bfe, 0x7bff, 0xfbff, 0x7c00,
                                  0xfc00, 0x7e00, 0x7fff, 0xfe01, 0x7c01, 0xfd55, 0x1400, 0x77ff};
static const uint64_t bhalves[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x807f, 0x0080, 0x8080,
                                   0x0081, 0x3f7f, 0x3f80, 0xbf80, 0x3f81, 0x3f00, 0xbf00, 0x3f01,
                                   0x3fc0, 0xbfc0, 0x4000, 0xc000, 0x4020, 0xc020, 0x4049, 0x4300,
                                   0x4301, 0x437f, 0x43e0, 0x477f, 0x7f7e, 0x7f7f, 0xff7f, 0x7f80,
                                   0xff80, 0x7fc0, 0x7fff, 0xffc1, 0x7f81, 0xffa5, 0x3380, 0x7e80};
static const uint64_t singles[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x00400000, 0x007fffff, 0x807fffff, 0x00800000,
    0x80800000, 0x00800001, 0x3effffff, 0x3f000000, 0xbf000000, 0x3f7fffff, 0x3f800000, 0xbf800000,
    0x3f800001, 0x3fc00000, 0xbfc00000, 0x40000000, 0x40200000, 0xc0200000, 0x40490fdb, 0x43e80000,
    0x477fe000, 0x477ff000, 0x4b000001, 0x4b800000, 0x4effffff, 0x4f000000, 0xcf000000, 0x4f800000,
    0x5f000000, 0x5f800000, 0x7e800000, 0x7f000000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
    0x7fc00000, 0xffc12345, 0x7f800001, 0xffabcdef};
static const uint64_t doubles[] = {
    0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x8000000000000001,
    0x000fffffffffffff, 0x800fffffffffffff, 0x0010000000000000, 0x8010000000000000,
    0x0010000000000001, 0x36a0000000000000, 0x380fffffffffffff, 0x3fdfffffffffffff,
    0x3fe0000000000000, 0xbfe0000000000000, 0x3fefffffffffffff, 0x3ff0000000000000,
    0xbff0000000000000, 0x3ff0000000000001, 0x3ff0000010000000, 0x3ff8000000000000,
    0xbff8000000000000, 0x4004000000000000, 0xc004000000000000, 0x400921fb54442d18,
    0x40effdffffffffff, 0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000000000,
    0xc1e0000000200000, 0x41f0000000000000, 0x4330000000000001, 0x43e0000000000000,
    0xc3e0000000000000, 0x43f0000000000000, 0x47efffffefffffff, 0x47effffff0000000,
    0x7fd0000000000000, 0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000,
    0xfff0000000000000, 0x7ff8000000000000, 0xfff8123456789abc, 0x7ff0000000000001};

/* For functions whose error is bounded on part of the line: numbers that are outside. */
static const uint64_t singles_special[] = {0x00000000, 0x80000000, 0x7f800000, 0xff800000,
                                           0x7fc00000, 0xffc12345, 0x7f800001, 0xffabcdef};

/* About the least normal number: what products and sums of these give .ftz may flush. */
static const uint64_t singles_border[] = {0x3f7fffff, 0xbf7fffff, 0x3f800000, 0x3f800001,
                                          0x00800000, 0x80800000, 0x00800001, 0x80800001,
                                          0x00000000, 0x80000000, 0x0d800000, 0x73000000};
static const uint64_t halves_border[] = {0x3bff, 0xbbff, 0x3c00, 0x3c01, 0x0400, 0x8400,
                                         0x0401, 0x8401, 0x0000, 0x8000, 0x0c00, 0x1801};

#define VALUES(array)                                                                              \
    (struct values) {                                                                              \
        array, sizeof(array) / sizeof(array)[0]                                                    \
    }

static struct values values_of(const struct table_operand *operand) {
    static const struct {
        const char *name;
        struct values values;
    } sets[] = {
        {"shift", {shifts, sizeof shifts / sizeof shifts[0]}},
        {"lane", {lanes, sizeof lanes / sizeof lanes[0]}},
        {"segment", {segments, sizeof segments / sizeof segments[0]}},
        {"few", {few, sizeof few / sizeof few[0]}},
        {"selector", {selectors, sizeof selectors / sizeof selectors[0]}},
        {"special", {singles_special, sizeof singles_special / sizeof singles_special[0]}},
    };
    const bool has_set = operand->set[0] != '\0'; /* most have none, and there are many values */
    for (size_t i = 0; has_set && i < sizeof sets / sizeof sets[0]; i++) {
        if (strcmp(operand->set, sets[i].name) == 0) return sets[i].values;
    }
    const struct table_type *type = operand->type;
    if (strcmp(operand->set, "border") == 0) {
        return type->bits == 32 ? VALUES(singles_border) : VALUES(halves_border);
    }
    if (type->kind == 'P') return VALUES(booleans);
    if (type->kind != 'F') return VALUES(integers);
    if (type->bits == 64) return type->elements == 2 ? VALUES(singles) : VALUES(doubles);
    if (type->elements == 2) return type->exponent_bits == 8 ? VALUES(bhalves) : VALUES(halves);
    if (type->bits == 32) return VALUES(singles);
    return type->exponent_bits == 8 ? VALUES(bhalves) : VALUES(halves);
}

/* Sets without a list of their own: where all values must lie within bounds. */
static bool is_range(const char *set) {
    if (set[0] == '\0') return false;
    return strcmp(set, "turn") == 0 || strcmp(set, "turns") == 0 || strcmp(set, "near_one") == 0 ||
           strcmp(set, "far") == 0 || strcmp(set, "divisor") == 0;
}

/* A single within the bounds of the set. */
static uint64_t table_values_within(const char *set, uint64_t *state) {
    uint64_t bits = table_random(state);
    uint32_t fraction = (uint32_t)bits & 0x7fffff, sign = (uint32_t)(bits >> 40) & 0x80000000;
    uint32_t pick = (uint32_t)(bits >> 24) & 0xff;
    float size = 0;
    if (strcmp(set, "turn") == 0 || strcmp(set, "turns") == 0) {
        /* evenly up to two pi or a hundred pi; every eighth one small */
        float limit = set[4] == 's' ? 314.15926f : 6.2831853f;
        size = limit * (float)fraction / 8388608.0f;
        if (pick < 32) size = size * 0x1p-12f;
        memcpy(&fraction, &size, 4);
        return sign | fraction;
    }
    if (strcmp(set, "near_one") == 0) return (pick & 1 ? 0x3f000001u : 0x3f800000u) + fraction / 2;
    /* far: positive, below 1/2 or above 2; divisor: of a size between 2^-126 and 2^126 */
    if (strcmp(set, "far") == 0) {
        uint32_t exponent = pick < 128 ? pick % 126 : 128 + pick % 127;
        return exponent << 23 | (fraction | 1);
    }
    return sign | (1 + pick % 252) << 23 | fraction;
}

/* A random number of a binary format: any bits, near one, near a boundary of a narrower format, or
 * with few ones. */
static uint64_t random_float(unsigned exponent_bits, unsigned fraction_bits, uint64_t *state,
                             struct values edges) {
    uint64_t bits = table_random(state), pick = table_random(state);
    uint64_t bias = (1ull << (exponent_bits - 1)) - 1, exponent_max = 2 * bias + 1;
    uint64_t fraction = bits & ((1ull << fraction_bits) - 1), sign = bits >> 63;
    uint64_t exponent = bias;
    switch (pick & 7) {
    case 0:
        exponent = (bits >> 52) & exponent_max;
        break;
    case 1: /* near an edge, but for what a step past infinity would be */
        return edges.items[(pick >> 8) % edges.count] ^ (bits & 3);
    case 2: /* few ones: sums and products of these are often exact, or halfway */
        fraction &= fraction << 3 & fraction << 5;
        exponent += pick >> 8 & 7;
        break;
    case 3: { /* halfway between two numbers of a narrower format, or one step beside that */
        unsigned keep = fraction_bits > 23   ? (pick & 64 ? 23 : 10)
                        : fraction_bits > 10 ? (pick & 64 ? 10 : 7)
                                             : 2 + (unsigned)(pick >> 6 & 1);
        /* A format that is as narrow has nothing in between. */
        uint64_t half = keep < fraction_bits ? 1ull << (fraction_bits - keep - 1) : 1ull << 63;
        fraction = (fraction & ~(2 * half - 1)) | half;
        if (pick & 128) fraction += (pick & 256 ? 1 : -1ull);
        fraction &= (1ull << fraction_bits) - 1;
        exponent += (pick >> 16) % 40;
        exponent -= 20;
        break;
    }
    case 4: /* small enough to be subnormal in a narrower format, or here */
        exponent = bias > 200 && pick & 64 ? bias - 120 - (pick >> 8) % 35
                   : pick & 128            ? (pick >> 8) % 4
                                           : bias - (pick >> 8) % 26;
        break;
    case 5: /* as large as integers are */
        exponent += (pick >> 8) % 68;
        break;
    default:
        exponent += (pick >> 8) % 6;
        exponent -= 3;
        break;
    }
    if (exponent_max < 63 && exponent > exponent_max) exponent = exponent % exponent_max;
    exponent &= exponent_max;
    return sign << (exponent_bits + fraction_bits) | exponent << fraction_bits | fraction;
}

static uint64_t random_value(const struct table_operand *operand, uint64_t *state) {
    const struct table_type *type = operand->type;
    struct values edges = values_of(operand);
    if (is_range(operand->set)) return table_values_within(operand->set, state);
    bool limited = operand->set[0] != '\0' && strcmp(operand->set, "selector") != 0 &&
                   strcmp(operand->set, "finite") != 0;
    if (limited) {
        uint64_t pick = table_random(state);
        if (strcmp(operand->set, "shift") == 0 && pick % 4 != 0) return pick >> 8 & 0x7f;
        return edges.items[(pick >> 8) % edges.count];
    }
    if (type->kind == 'F') {
        uint64_t value = 0;
        unsigned width = type->bits / type->elements;
        /* tf32 is in the upper bits of a single. */
        unsigned fraction_bits =
            type->elements == 1 ? width - type->exponent_bits - 1u : type->fraction_bits;
        for (unsigned i = 0; i < type->elements; i++) {
            uint64_t one = random_float(type->exponent_bits, fraction_bits, state, edges);
            if (width < 64) one &= (1ull << width) - 1;
            value |= one << (i * width);
        }
        return value;
    }
    uint64_t bits = table_random(state), pick = table_random(state);
    if (type->kind == 'P') return bits & 1;
    switch (pick & 3) {
    case 0:
        return bits >> (pick >> 8 & 63); /* of any length */
    case 1:
        return 0 - (bits >> (pick >> 8 & 63));
    case 2:
        return edges.items[(pick >> 8) % edges.count] + (bits & 3) - 1;
    default:
        return bits;
    }
}

/* One of the edges; of a packed type two of them. */
static uint64_t table_values_edge(const struct table_operand *operand, unsigned index,
                                  uint64_t *state) {
    struct values edges = values_of(operand);
    uint64_t value = edges.items[index % edges.count];
    if (operand->type->kind != 'F' || operand->type->elements == 1) return value;
    unsigned width = operand->type->bits / operand->type->elements;
    uint64_t other = edges.items[table_random(state) % edges.count];
    uint64_t mask = (1ull << width) - 1;
    return (value & mask) | (other & mask) << width;
}

static uint64_t table_values_value_of(const struct table_row *row, uint32_t tuple,
                                      unsigned source) {
    const struct table_operand *operand = &row->operands[row->sources[source]];
    unsigned store = operand->type->store_bits;
    uint64_t mask = store == 64 ? UINT64_MAX : (1ull << store) - 1;
    uint64_t state = row->seed ^ (uint64_t)tuple << 8 ^ source;
    table_random(&state);
    if (is_range(operand->set)) return table_values_within(operand->set, &state) & mask;
    if (strcmp(operand->set, "matrix") == 0) {
        return table_matrix_value(operand, tuple, &state) & mask;
    }
    if (strncmp(operand->set, "probe_", 6) == 0) {
        return table_probe_value(operand, tuple, source - operand->source);
    }
    if (strcmp(operand->set, "rows") == 0) return table_random(&state) & mask;

    /* Up to two operands are crossed in full; of more, every tuple takes edges here and there. */
    uint64_t cross = 1, divisor = 1;
    for (unsigned i = 0; i < row->source_count; i++) {
        unsigned count = values_of(&row->operands[row->sources[i]]).count;
        cross *= count;
        if (i < source) divisor *= count;
    }
    /* A warp's lanes differ more when they are not in the order of the edges. */
    bool orderly = cross <= row->tuples && !row->warp;
    if (orderly && tuple < cross) {
        return table_values_edge(operand, (unsigned)(tuple / divisor % values_of(operand).count),
                                 &state) &
               mask;
    }
    uint64_t pick = table_random(&state);
    if (!orderly && pick % 4 < 2)
        return table_values_edge(operand, (unsigned)(pick >> 16), &state) & mask;
    return random_value(operand, &state) & mask;
}

/* The set "finite" is all values but NaN and infinity, which become one and a half. */
uint64_t table_value(const struct table_row *row, uint32_t tuple, unsigned source) {
    const struct table_operand *operand = &row->operands[row->sources[source]];
    const struct table_type *type = operand->type;
    uint64_t value = table_values_value_of(row, tuple, source);
    if (strcmp(operand->set, "finite") != 0) return value;
    uint64_t top = (1ull << type->exponent_bits) - 1;
    if ((value >> type->fraction_bits & top) != top) return value;
    return (top >> 1) << type->fraction_bits | 1ull << (type->fraction_bits - 1);
}

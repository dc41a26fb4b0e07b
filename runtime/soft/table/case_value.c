/*
 * Values of cases.
 */
#include "case_value.h"

#include <string.h>

static const struct case_type types[] = {
    {"u8", 0, 1, 'u'},       {"u16", 1, 2, 'u'},  {"u32", 2, 4, 'u'},  {"s32", 3, 4, 's'},
    {"u64", 4, 8, 'u'},      {"s64", 5, 8, 's'},  {"f16", 6, 2, 'f'},  {"f32", 7, 4, 'f'},
    {"f64", 8, 8, 'f'},      {"bf16", 9, 2, 'f'}, {"ftz", 10, 4, 'f'}, {"tf32", 11, 4, 'f'},
    {"tf32ftz", 12, 4, 'f'},
};

const struct case_type *case_type_of(const char *name) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(name, types[i].name) == 0) return &types[i];
    }
    return NULL;
}

static uint64_t special_of(const struct case_type *type, unsigned i) {
    static const uint32_t singles[] = {
        0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000,
        0x80800000, 0x3f800000, 0x3f800fff, 0x3f801000, 0x3f801001, 0x3f801fff, 0x3f802000,
        0x3f802fff, 0x3f803000, 0x3f803001, 0x3f803fff, 0xbf801000, 0xbf803000, 0x3fffffff,
        0x3fffefff, 0x3ffff000, 0x7f7fffff, 0x7f7fe000, 0x7f7ff000, 0x7f7fefff, 0xff7fffff,
        0x7f800000, 0xff800000, 0x7f800001, 0x7f801000, 0x7f802000, 0x7fbfffff, 0x7fc00000,
        0x7fc12345, 0x7fffffff, 0xffc00001, 0xffffffff, 0x00001000, 0x00001fff, 0x00002000,
        0x00003000, 0x007ff000, 0x007fefff, 0x807ff000, 0x00800fff, 0x00801000, 0x00001001,
        0x80001000, 0x00000fff, 0x40490fdb, 0xc02df854, 0x4b7fffff, 0x33800000, 0x12345678,
        0x87654321, 0x9abcdef0, 0x0fedcba9, 0x55555555, 0xaaaaaaaa, 0x3effffff, 0x3f7fffff,
        0x00400000,
    };
    uint32_t word = singles[i % (sizeof singles / sizeof singles[0])];
    if (type->bytes == 4) return word;
    if (type->bytes == 2) {
        return word >> 16 == 0 || (word & 0xffff) == 0xffff ? word >> 15 & 0xffff
                                                            : (word >> 12 ^ word >> 16) & 0xffff;
    }
    return (uint64_t)word << 32 | (word * 2654435761u);
}

static uint64_t ordinary_of(const struct case_type *type, unsigned i, bool shared) {
    double x = shared ? (i % 61 + 1) * 0.5 * (i % 3 == 0 ? -1 : 1) : (i % 53) * 0.25 - 3;
    uint64_t bits = (i + (shared ? 7u : 1000u)) * 0x9e3779b97f4a7c15u;
    float single = (float)x;
    uint32_t word = 0;
    if (type->kind != 'f') return bits >> 20;
    memcpy(&word, &single, sizeof word);
    if (type->number == 9) return word >> 16;
    if (type->bytes == 4) return word;
    if (type->bytes == 8) {
        memcpy(&bits, &x, sizeof bits);
        return bits;
    }
    if (word << 1 == 0) return word >> 16;
    return (word >> 16 & 0x8000) | ((((word >> 23 & 0xff) - 112) << 10 | (word >> 13 & 0x3ff)));
}

void case_fill(const struct case_line *line, const struct case_type *type, uint8_t *bytes,
               size_t size, bool shared) {
    const char *set = case_value(line, "values");
    bool special = set != NULL && strcmp(set, "special") == 0;
    for (unsigned i = 0; i < size / type->bytes; i++) {
        /* A reduction combines each special number with one and with others. */
        uint64_t value =
            special ? special_of(type, shared ? i : i * 5 + 2) : ordinary_of(type, i, shared);
        memcpy(bytes + (size_t)i * type->bytes, &value, type->bytes);
    }
}

/*
 * The types that operands of the table have.
 */
#include "table.h"

#include <string.h>

static const struct table_type types[] = {
    {"pred", 1, 32, 'P', 1, 0, 0},    {"u8", 8, 16, 'U', 1, 0, 0},
    {"u16", 16, 16, 'U', 1, 0, 0},    {"u32", 32, 32, 'U', 1, 0, 0},
    {"u64", 64, 64, 'U', 1, 0, 0},    {"s8", 8, 16, 'S', 1, 0, 0},
    {"s16", 16, 16, 'S', 1, 0, 0},    {"s32", 32, 32, 'S', 1, 0, 0},
    {"s64", 64, 64, 'S', 1, 0, 0},    {"b8", 8, 16, 'B', 1, 0, 0},
    {"b16", 16, 16, 'B', 1, 0, 0},    {"b32", 32, 32, 'B', 1, 0, 0},
    {"b64", 64, 64, 'B', 1, 0, 0},    {"f16", 16, 16, 'F', 1, 5, 10},
    {"bf16", 16, 16, 'F', 1, 8, 7},   {"tf32", 32, 32, 'F', 1, 8, 10},
    {"f32", 32, 32, 'F', 1, 8, 23},   {"f64", 64, 64, 'F', 1, 11, 52},
    {"f32x2", 64, 64, 'F', 2, 8, 23}, {"f16x2", 32, 32, 'F', 2, 5, 10},
    {"bf16x2", 32, 32, 'F', 2, 8, 7}, {"e4m3x2", 16, 16, 'F', 2, 4, 3},
    {"e5m2x2", 16, 16, 'F', 2, 5, 2}, {"u16x2", 32, 32, 'U', 2, 0, 0},
    {"s16x2", 32, 32, 'S', 2, 0, 0},  {"e4m3x4", 32, 32, 'F', 4, 4, 3},
    {"e5m2x4", 32, 32, 'F', 4, 5, 2},
};

const struct table_type *table_type_find(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strlen(types[i].name) == length && memcmp(types[i].name, name, length) == 0) {
            return &types[i];
        }
    }
    return NULL;
}

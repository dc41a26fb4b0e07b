/*
 * Functions by address: a table, a sort with a comparison function, and a list of objects with
 * methods.
 */
#ifndef CORPUS_POINTERS_H
#define CORPUS_POINTERS_H

#include "corpus.h"

typedef int32_t pointers_binary(int32_t, int32_t);

CORPUS_CALLED int32_t pointers_add(int32_t a, int32_t b) {
    return a + b;
}
CORPUS_CALLED int32_t pointers_subtract(int32_t a, int32_t b) {
    return a - b;
}
CORPUS_CALLED int32_t pointers_multiply(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a * (uint32_t)b);
}
CORPUS_CALLED int32_t pointers_larger(int32_t a, int32_t b) {
    return a > b ? a : b;
}

/* Evaluates "3 4 + 2 *" and the like: digits push, letters call. */
CORPUS_FN int32_t pointers_evaluate(const char *text, pointers_binary *const table[4]) {
    int32_t stack[16];
    uint32_t height = 0;
    for (; *text != '\0'; text++) {
        if (*text >= '0' && *text <= '9') {
            stack[height++] = *text - '0';
        } else {
            int32_t b = stack[--height], a = stack[--height];
            stack[height++] = table[*text - 'a'](a, b);
        }
    }
    return stack[0];
}

typedef int pointers_order(uint32_t, uint32_t);

CORPUS_CALLED int pointers_upward(uint32_t a, uint32_t b) {
    return a < b;
}
CORPUS_CALLED int pointers_downward(uint32_t a, uint32_t b) {
    return a > b;
}
CORPUS_CALLED int pointers_by_last_digit(uint32_t a, uint32_t b) {
    return a % 10 != b % 10 ? a % 10 < b % 10 : a < b;
}

CORPUS_CALLED void pointers_sort(uint32_t *values, uint32_t count, pointers_order *before) {
    for (uint32_t i = 1; i < count; i++) {
        uint32_t value = values[i], at = i;
        for (; at > 0 && before(value, values[at - 1]); at--) values[at] = values[at - 1];
        values[at] = value;
    }
}

CORPUS_FN uint32_t pointers_sorted(uint32_t seed, pointers_order *before) {
    uint32_t values[12], hash = 0;
    for (uint32_t i = 0; i < 12; i++) values[i] = corpus_mix(seed + i) % 100;
    pointers_sort(values, 12, before);
    for (uint32_t i = 0; i < 12; i++) hash = hash * 101 + values[i];
    return hash;
}

/* The areas of rectangles, right triangles and squares, times two. */
CORPUS_FN uint32_t pointers_area(uint32_t i) {
    uint32_t a = i + 1, b = 2 * i + 3;
    return i % 3 == 0 ? 2 * a * b : i % 3 == 1 ? a * b : 2 * a * a;
}

#endif

/*
 * The quick sums of wgmma: where its matrices lie for plain_sum.h.
 */
#ifndef SOFT_WGMMA_SUM_H
#define SOFT_WGMMA_SUM_H

#include "async/wgmma.h"
#include "plain_sum.h"

/* A's numbers as add_plain reads them: two rows and k side by side, a row in four places each. */
struct plain_a {
    plain_floats value[PLAIN_ROWS / 2][PLAIN_K];
    plain_ints exponent[PLAIN_ROWS / 2][PLAIN_K];
};

static void spread_a(const float *value, const int32_t *exponent, unsigned k, struct plain_a *a) {
    for (unsigned row = 0; row < PLAIN_ROWS; row++) {
        for (unsigned i = 0; i < k; i++) {
            for (unsigned j = 0; j < 4; j++) {
                a->value[row / 2][i][row % 2 * 4 + j] = value[row * k + i];
                a->exponent[row / 2][i][row % 2 * 4 + j] = exponent[row * k + i];
            }
        }
    }
}

/* Where a number of B is among those of its eight columns, and again four further: even columns
 * come first, then odd ones. */
static unsigned place_of_b(unsigned n_k, unsigned k, unsigned column) {
    return ((column / 8 * 2 + column % 2) * n_k + k) * 8 + column % 8 / 2;
}

/* Adds A B to a register of 32 lanes: eight rows from row on, four columns of B. */
static inline __attribute__((always_inline)) void
add_register(const struct plain_a *a, unsigned row, const float *b_value, const int32_t *b_exponent,
             unsigned k, uint32_t *lanes, bool accumulates) {
    for (unsigned pair = 0; pair < 4; pair++) {
        struct plain_strip strip = {
            a->value[row / 2 + pair], (const plain_floats *)(const void *)b_value,
            a->exponent[row / 2 + pair], (const plain_ints *)(const void *)b_exponent, 1};
        plain_floats c = {0};
        if (accumulates) memcpy(&c, lanes + pair * 8, sizeof c);
        add_plain(&strip, k, &c);
        memcpy(lanes + pair * 8, &c, sizeof c);
    }
}

#endif

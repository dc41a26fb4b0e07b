/*
 * One round of all rows, then the next; the values of one row's element are adjacent.
 */
#include "pool_rounds.h"

#include <stdlib.h>

static int pool_rounds_by_value(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

bool pool_rounds_take(size_t rows, size_t width,
                      void (*measure)(void *user, size_t row, double *values), void *user,
                      double *medians) {
    double *all = calloc(rows * width * POOL_ROUNDS + width, sizeof *all);
    if (all == NULL) return false;
    double *values = all + rows * width * POOL_ROUNDS;
    for (size_t round = 0; round < POOL_ROUNDS_DROPPED + POOL_ROUNDS; round++) {
        for (size_t i = 0; i < rows; i++) {
            const size_t row = round % 2 == 0 ? i : rows - 1 - i;
            measure(user, row, values);
            for (size_t v = 0; v < width && round >= POOL_ROUNDS_DROPPED; v++) {
                all[(row * width + v) * POOL_ROUNDS + round - POOL_ROUNDS_DROPPED] = values[v];
            }
        }
    }
    for (size_t i = 0; i < rows * width; i++) {
        qsort(all + i * POOL_ROUNDS, POOL_ROUNDS, sizeof *all, pool_rounds_by_value);
        medians[i] = all[i * POOL_ROUNDS + POOL_ROUNDS / 2];
    }
    free(all);
    return true;
}

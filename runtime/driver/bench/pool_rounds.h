/*
 * Pool rounds: rows that are measured alternately, so that other load and temperature affect all
 * rows equally. Internal: of bench-pool.
 */
#ifndef TOLLENS_POOL_ROUNDS_H
#define TOLLENS_POOL_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>

/* The first rounds are not counted: caches, clocks and allocators are cold. */
enum { POOL_ROUNDS = 15, POOL_ROUNDS_DROPPED = 2 };

/*
 * Calls measure for each row, round by round: every second round in the opposite order, so that a
 * row does not always follow the same one. It sets width values, and medians[row * width + i] is
 * the median of value i of the row over the rounds that count. medians has rows * width elements.
 * false: there is no host memory, and nothing was measured. One thread.
 */
bool pool_rounds_take(size_t rows, size_t width,
                      void (*measure)(void *user, size_t row, double *values), void *user,
                      double *medians);

#endif

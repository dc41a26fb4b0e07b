/*
 * Rounds of rows whose values are known.
 */
#include "test/test_device.h"

#include "bench/pool_rounds.h"

#include <string.h>

enum { ROWS = 3, WIDTH = 2, ALL = (POOL_ROUNDS + POOL_ROUNDS_DROPPED) * ROWS };

struct seen {
    size_t rows[ALL], count;
};

/* Value 0 falls with each round, and value 1 is huge in the rounds that do not count and in the
 * last. */
static void measure(void *user, size_t row, double *values) {
    struct seen *seen = user;
    const size_t round = seen->count / ROWS;
    const bool is_odd = round < POOL_ROUNDS_DROPPED || round == POOL_ROUNDS + 1;
    seen->rows[seen->count++] = row;
    values[0] = 1000.0 * (double)row - (double)round;
    values[1] = is_odd ? 1e9 : (double)row;
}

Test(pool_rounds, all_rows_have_a_round_before_one_has_the_next) {
    struct seen seen = {.count = 0};
    double medians[ROWS * WIDTH];
    cr_assert(pool_rounds_take(ROWS, WIDTH, measure, &seen, medians));
    cr_assert_eq(seen.count, ALL);
    for (size_t i = 0; i < ALL; i += ROWS) {
        bool was[ROWS] = {false};
        for (size_t j = 0; j < ROWS; j++) was[seen.rows[i + j]] = true;
        cr_assert(was[0] && was[1] && was[2], "round %zu", i / ROWS);
    }
    /* Nor does a row always follow the same one. */
    cr_assert_eq(seen.rows[0], 0);
    cr_assert_eq(seen.rows[ROWS], ROWS - 1);
}

Test(pool_rounds, a_median_is_of_its_rows_own_rounds_without_the_first) {
    struct seen seen = {.count = 0};
    double medians[ROWS * WIDTH];
    cr_assert(pool_rounds_take(ROWS, WIDTH, measure, &seen, medians));
    for (size_t row = 0; row < ROWS; row++) {
        const int middle = POOL_ROUNDS_DROPPED + POOL_ROUNDS / 2;
        cr_assert_eq(medians[row * WIDTH], 1000.0 * (double)row - (double)middle);
        cr_assert_eq(medians[row * WIDTH + 1], (double)row);
    }
}

/*
 * Which lives are lived, where not all are.
 */
#include "test_lives.h"

#include <stdio.h>
#include <stdlib.h>

enum { ONE_IN = 11, LIVES = 100 };

/* Counts which of the first lives are lived with this seed. */
static void live(unsigned seed, unsigned counts[LIVES + 1]) {
    char text[16];
    snprintf(text, sizeof text, "%u", seed);
    setenv("TOLLENS_TEST_SEED", text, 1);
    for (uint64_t n = test_next_life(0); n <= LIVES; n = test_next_life(n)) {
        cr_assert(n > 0, "lives begin with 1");
        counts[n]++;
    }
}

Test(lives, as_many_seeds_as_there_are_strides_live_each_life_once) {
    unsigned counts[LIVES + 1] = {0};
    setenv("TOLLENS_TEST_LIVES_ONE_IN", "11", 1);
    for (unsigned seed = 20000; seed < 20000 + ONE_IN; seed++) live(seed, counts);
    for (int n = 1; n <= LIVES; n++) cr_assert(counts[n] == 1, "life %d: %u", n, counts[n]);
}

Test(lives, each_is_lived_unless_it_is_said_otherwise) {
    static const char *const texts[] = {NULL, "1", "0", "none"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        unsigned counts[LIVES + 1] = {0};
        unsetenv("TOLLENS_TEST_LIVES_ONE_IN");
        if (texts[i] != NULL) setenv("TOLLENS_TEST_LIVES_ONE_IN", texts[i], 1);
        live(5, counts);
        for (int n = 1; n <= LIVES; n++) cr_assert(counts[n] == 1, "life %d: %u", n, counts[n]);
        cr_assert(test_rounds(1) == 1 && test_rounds(10) == 10);
    }
    setenv("TOLLENS_TEST_LIVES_ONE_IN", "11", 1);
    cr_assert(test_rounds(1) == 1 && test_rounds(10) == 2 && test_rounds(44) == 4);
}

/*
 * Which repetitions of a scenario run, and which trials are taken, if a test does not run all.
 */
#include "test_scenarios.h"

#include <stdio.h>
#include <stdlib.h>

enum { ONE_IN = 11, REPETITIONS = 100 };

/* Counts the repetitions that run with this seed. */
static void count_with(unsigned seed, unsigned counts[REPETITIONS + 1]) {
    char text[16];
    snprintf(text, sizeof text, "%u", seed);
    setenv("TOLLENS_TEST_SEED", text, 1);
    for (uint64_t n = test_next_scenario(0); n <= REPETITIONS; n = test_next_scenario(n)) {
        cr_assert(n > 0, "repetitions are numbered from 1");
        counts[n]++;
    }
}

Test(scenarios, consecutive_seeds_run_each_repetition_once) {
    unsigned counts[REPETITIONS + 1] = {0};
    setenv("TOLLENS_TEST_SCENARIOS_ONE_IN", "11", 1);
    for (unsigned seed = 20000; seed < 20000 + ONE_IN; seed++) count_with(seed, counts);
    for (int n = 1; n <= REPETITIONS; n++)
        cr_assert(counts[n] == 1, "repetition %d: %u", n, counts[n]);
}

Test(scenarios, each_repetition_runs_by_default) {
    static const char *const texts[] = {NULL, "1", "0", "none"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        unsigned counts[REPETITIONS + 1] = {0};
        unsetenv("TOLLENS_TEST_SCENARIOS_ONE_IN");
        unsetenv("TOLLENS_TEST_LIVES_ONE_IN");
        if (texts[i] != NULL) setenv("TOLLENS_TEST_SCENARIOS_ONE_IN", texts[i], 1);
        count_with(5, counts);
        for (int n = 1; n <= REPETITIONS; n++)
            cr_assert(counts[n] == 1, "repetition %d: %u", n, counts[n]);
        cr_assert(test_rounds(1) == 1 && test_rounds(10) == 10);
    }
    setenv("TOLLENS_TEST_SCENARIOS_ONE_IN", "11", 1);
    cr_assert(test_rounds(1) == 1 && test_rounds(10) == 2 && test_rounds(44) == 4);
}

Test(scenarios, the_old_name_of_the_variable_counts_unless_the_new_one_is_set) {
    setenv("TOLLENS_TEST_LIVES_ONE_IN", "11", 1);
    unsetenv("TOLLENS_TEST_SCENARIOS_ONE_IN");
    cr_assert_eq(test_next_scenario(1), 12);
    setenv("TOLLENS_TEST_SCENARIOS_ONE_IN", "3", 1);
    cr_assert_eq(test_next_scenario(1), 4);
}

/* A test's trials are counted from its first. */
static void take_all_with(const char *one_in, const char *seed, unsigned first, unsigned every) {
    static unsigned trial; /* test_takes_trial counts on too */
    setenv("TOLLENS_TEST_ONE_IN", one_in, 1);
    setenv("TOLLENS_TEST_SEED", seed, 1);
    for (int i = 0; i < 21; i++, trial++) {
        const bool expected = trial == 0 || trial % every == first;
        cr_assert(test_takes_trial() == expected, "trial %u with one in %s, seed %s", trial, one_in,
                  seed);
    }
}

Test(scenarios, the_first_trial_is_taken_and_each_with_some_seed) {
    take_all_with("7", "17", 3, 7);
    take_all_with("7", "0", 0, 7);
    take_all_with("1", "5", 0, 1);
    take_all_with("0", "5", 0, 1);
}

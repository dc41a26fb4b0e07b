/*
 * Tests that repeat a scenario, each time with another driver call refused.
 */
#ifndef TOLLENS_TEST_SCENARIOS_H
#define TOLLENS_TEST_SCENARIOS_H

#include "test_device.h"

/*
 * Begins repetition n of a scenario on the first `devices` devices. Call it before the interposer
 * is installed.
 *
 * Every repetition creates and destroys its contexts. On a GPU that takes half a second, so between
 * repetitions the test itself retains the devices' primary contexts; the runtime retains and
 * releases them as usual. One repetition in 64 begins without retained contexts, which also frees
 * what earlier repetitions lost to refused calls. If a repetition leaves a retained context in an
 * error state, the test fails. On the soft device nothing is retained.
 */
void test_scenario_begin(struct tol_driver *driver, uint64_t n, int devices);

/* Releases the retained contexts. Call it before test_end. */
void test_scenarios_end(void);

/*
 * The repetition after repetition n; 0 gives the first. By default every repetition runs. With
 * TOLLENS_TEST_SCENARIOS_ONE_IN=11 every eleventh runs, and TOLLENS_TEST_SEED (1) determines the
 * first, so that eleven consecutive seeds run all. ci/gpu sets it, because a GPU's driver takes a
 * second or more per repetition while other tests run. TOLLENS_TEST_LIVES_ONE_IN is its old name.
 */
uint64_t test_next_scenario(uint64_t n);

/* The number of rounds to run: all, or with TOLLENS_TEST_SCENARIOS_ONE_IN that fraction of them, at
 * least two. */
unsigned test_rounds(unsigned all);

/* Which driver call of a scenario is refused: set by the test, and the user of the hooks. */
struct test_refusal {
    uint64_t nth;                  /* of the counted calls, from 1 */
    CUresult result;               /* what the call returns instead */
    uint64_t calls;                /* counted so far */
    enum tol_driver_index refused; /* TOL_DRIVER_FUNCTIONS: the nth call was not reached */
    const void *asked; /* the stream or event of the last query that returned NOT_READY, or NULL */
    unsigned times;    /* consecutive queries of it */
};

/*
 * For a before-hook: counts a call, and refuses the nth. For an after-hook: records its result.
 *
 * A wait queries the driver in a loop, and the number of queries depends on the device's speed.
 * From the second query of a wait on, queries are forwarded and not counted, so a scenario has the
 * same calls on every device and machine.
 */
void test_refuse(struct tol_interpose_call *call, struct test_refusal *refusal);
void test_refuse_after(const struct tol_interpose_call *call, struct test_refusal *refusal);

/* A refusal that the hooks make while it is armed. The program has one, for the running test. */
extern struct test_staged {
    struct test_refusal refusal;
    bool is_armed;
} test_staged;

/* Installs the hooks that make it. */
void test_staged_install(struct tol_driver *driver);

#endif

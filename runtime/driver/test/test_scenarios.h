/*
 * Tests that live the same life again and again, each time with another driver call refused.
 */
#ifndef TOLLENS_TEST_LIVES_H
#define TOLLENS_TEST_LIVES_H

#include "test_device.h"

/*
 * Begins life n of a test on so many devices; before the interposer is installed.
 *
 * Every life makes its contexts and ends them. On a GPU that takes half a second, of hundreds of
 * lives, so the test itself keeps the devices' contexts there, from one life to the next: the
 * runtime retains and releases them as ever. Only the first life of every 64 begins without, which
 * also gives back what earlier lives lost to calls that were refused. A life that leaves a kept
 * context unwell fails the test. On the soft device nothing is kept.
 */
void test_life_begin(struct tol_driver *driver, uint64_t n, int devices);

/* Lets go of what is kept; before test_end. */
void test_scenarios_end(void);

/* The life behind life n; with 0 the first. Every life is lived, one after the other, unless
 * TOLLENS_TEST_LIVES_ONE_IN says 11, say: then every eleventh, of which TOLLENS_TEST_SEED (1) says
 * where it begins, so that eleven seeds in a row live all. ci/gpu says so: a GPU's driver takes a
 * second and more for a life where other tests run beside it. */
uint64_t test_next_life(uint64_t n);

/* So many of all rounds, at least two, where TOLLENS_TEST_LIVES_ONE_IN takes one of so many. */
unsigned test_rounds(unsigned all);

/* Which driver call of a life is refused: set by the test, and the user of the hooks. */
struct test_refusal {
    uint64_t nth;                  /* of the calls that count, from 1 */
    CUresult result;               /* what it returns instead */
    uint64_t calls;                /* so many have been counted */
    enum tol_driver_index refused; /* TOL_DRIVER_FUNCTIONS: the nth call has not come */
    const void *asked;             /* of the last call, where it heard "not yet"; else NULL */
    unsigned times;                /* so often in a row */
};

/*
 * For a before-hook: counts a call, and refuses the nth. For an after-hook: what came of it.
 *
 * A wait asks the driver again and again. How often is the device's affair, hundreds of times where
 * it is slow or shared, and from its second question on a wait goes round in one loop: each further
 * one is forwarded and not counted, so that a life has the same calls on every device and machine.
 */
void test_refuse(struct tol_interpose_call *call, struct test_refusal *refusal);
void test_refuse_after(const struct tol_interpose_call *call, struct test_refusal *refusal);

/* A refusal that hooks make while it is armed. The program has one, for the test that runs. */
extern struct test_staged {
    struct test_refusal refusal;
    bool is_armed;
} test_staged;

/* Installs the hooks that make it. */
void test_staged_install(struct tol_driver *driver);

#endif

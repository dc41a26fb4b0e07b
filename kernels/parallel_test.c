/*
 * Parallel loops: every turn once, at once, and by the caller alone where there is no thread.
 */
#include "parallel.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { TURNS = 1000 };

static _Atomic unsigned made[TURNS], foreign;
static pthread_t caller;
static pthread_barrier_t meeting;

static void count(void *user, size_t index) {
    atomic_fetch_add(&((_Atomic unsigned *)user)[index], 1);
    if (!pthread_equal(pthread_self(), caller)) atomic_fetch_add(&foreign, 1);
}

static void expect_each_once(size_t count) {
    for (size_t i = 0; i < TURNS; i++) {
        cr_assert(made[i] == (i < count), "turn %zu of %zu was made %u times", i, count, made[i]);
    }
}

Test(parallel, each_turn_is_made_once_by_however_many_threads) {
    static const unsigned threads[] = {1, 2, 3, 32, 1000};
    for (size_t i = 0; i < 5; i++) {
        for (size_t turns = 0; turns < TURNS; turns = 3 * turns + 1) {
            for (size_t k = 0; k < TURNS; k++) made[k] = 0;
            kn_parallel_force(threads[i]);
            kn_parallel_for(turns, 0, count, made);
            expect_each_once(turns);
        }
    }
}

static void meet(void *user, size_t index) {
    count(user, index);
    pthread_barrier_wait(&meeting);
}

/* Turns that wait for each other come to an end only where each has a thread. */
Test(parallel, turns_are_made_at_once, .timeout = 60) {
    pthread_barrier_init(&meeting, NULL, 4);
    kn_parallel_force(4);
    kn_parallel_for(4, 0, meet, made);
    expect_each_once(4);
}

Test(parallel, where_no_thread_can_be_made_the_caller_makes_all_turns) {
    pthread_attr_t attributes;
    caller = pthread_self();
    pthread_attr_init(&attributes);
    cr_assert(pthread_attr_setstacksize(&attributes, (size_t)1 << 47) == 0);
    cr_assert(pthread_setattr_default_np(&attributes) == 0); /* no address space is as large */
    kn_parallel_force(8);
    kn_parallel_for(TURNS, 0, count, made);
    expect_each_once(TURNS);
    cr_assert(foreign == 0, "%u turns were made by other threads", foreign);
}

Test(parallel, small_loops_and_single_processors_have_no_threads) {
    cpu_set_t one;
    caller = pthread_self();
    kn_parallel_for(TURNS, 1000, count, made);
    expect_each_once(TURNS);
    CPU_ZERO(&one);
    cr_assert(sched_getcpu() >= 0);
    CPU_SET((unsigned)sched_getcpu(), &one);
    cr_assert(sched_setaffinity(0, sizeof one, &one) == 0);
    kn_parallel_for(1, 1e12, count, made + 1);
    kn_parallel_for(TURNS / 2, 1e12, count, made + TURNS / 2);
    cr_assert(foreign == 0 && made[0] == 1 && made[1] == 2 && made[TURNS - 1] == 2);
}

static void nest(void *user, size_t index) {
    (void)index;
    kn_parallel_for(TURNS, 1e12, count, user);
}

Test(parallel, a_loop_inside_of_a_turn_has_one_thread) {
    caller = pthread_self();
    kn_parallel_force(2);
    kn_parallel_for(1, 0, nest, made); /* the one turn is the caller's */
    expect_each_once(TURNS);
    cr_assert(foreign == 0, "%u turns were made by other threads", foreign);
}

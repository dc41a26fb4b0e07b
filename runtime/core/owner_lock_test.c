/*
 * One thread that takes a lock all the time, others that take it now and then, and what it guards.
 */
#include "owner_lock.h"
#include "test/test_device.h"

#include <pthread.h>
#include <sched.h>

enum { TURNS = 300000, OTHERS = 2 };

static struct tol_owner_lock lock;
static long first, second; /* what the lock guards: they differ only while somebody has it */
static atomic_bool has_ended;
static atomic_long torn, entered;

static void change(void) {
    if (first != second) atomic_fetch_add(&torn, 1);
    first++;
    second++;
}

static void *own(void *unused) {
    (void)unused;
    for (int i = 0; i < TURNS; i++) {
        tol_owner_lock_take(&lock);
        change();
        tol_owner_lock_give(&lock);
    }
    atomic_store(&has_ended, true);
    return NULL;
}

static void *visit(void *argument) {
    const bool waits = argument != NULL;
    while (!atomic_load(&has_ended)) {
        struct tol_owner_lock *const locks[] = {&lock};
        bool is_taken = false;
        if (waits) {
            is_taken = tol_owner_lock_enter(&lock);
        } else {
            tol_owner_lock_enter_free(locks, 1, &is_taken);
        }
        if (is_taken) {
            change();
            atomic_fetch_add(&entered, 1);
            tol_owner_lock_leave(&lock);
        }
        sched_yield();
    }
    return NULL;
}

static void run_all(void) {
    pthread_t owner, others[OTHERS];
    first = second = 0;
    atomic_store(&has_ended, false);
    atomic_store(&torn, 0);
    atomic_store(&entered, 0);
    for (uintptr_t i = 0; i < OTHERS; i++) {
        cr_assert_eq(pthread_create(&others[i], NULL, visit, (void *)i), 0);
    }
    cr_assert_eq(pthread_create(&owner, NULL, own, NULL), 0);
    pthread_join(owner, NULL);
    for (int i = 0; i < OTHERS; i++) pthread_join(others[i], NULL);
    cr_assert(atomic_load(&torn) == 0 && first == second && first == TURNS + atomic_load(&entered),
              "%ld times two threads had it, %ld of %ld changes are there", atomic_load(&torn),
              first, TURNS + atomic_load(&entered));
    cr_assert(atomic_load(&entered) > 0, "no other thread ever had it");
}

Test(owner_lock, one_thread_has_it_at_a_time, .timeout = 120) {
    tol_owner_lock_prepare();
    if (!tol_owner_lock_is_plain) cr_skip_test("the system has no membarrier for processes");
    run_all();
}

Test(owner_lock, so_it_is_without_membarrier, .timeout = 120) {
    tol_owner_lock_is_plain = false;
    run_all();
}

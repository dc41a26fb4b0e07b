/*
 * One thread that takes a lock all the time, others that take it now and then, and what it guards.
 */
#include "owner_lock.h"
#include "test/test_device.h"

#include <pthread.h>

enum { VISITS = 50000, TURNS = 200000, OTHERS = 2, LONG = 40 };

static struct tol_owner_lock lock;
static long changes; /* what the lock guards */
static atomic_bool is_had, has_ended;
static atomic_long twice, entered;

static void spend(int turns) {
    for (volatile int i = 0; i < turns; i++) continue;
}

/* Takes long enough that two holders would meet, if two processors are idle. */
static void change(void) {
    if (atomic_exchange_explicit(&is_had, true, memory_order_relaxed)) atomic_fetch_add(&twice, 1);
    spend(LONG);
    changes++;
    atomic_store_explicit(&is_had, false, memory_order_relaxed);
}

static void *own(void *turns) {
    long *count = turns;
    while (*count < TURNS || atomic_load_explicit(&entered, memory_order_relaxed) < VISITS) {
        tol_owner_lock_take(&lock);
        change();
        tol_owner_lock_give(&lock);
        ++*count;
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
        spend(10 * LONG); /* the owner comes in between */
    }
    return NULL;
}

static void run_all(void) {
    pthread_t owner, others[OTHERS];
    long turns = 0;
    changes = 0;
    atomic_store(&has_ended, false);
    atomic_store(&twice, 0);
    atomic_store(&entered, 0);
    for (uintptr_t i = 0; i < OTHERS; i++) {
        cr_assert_eq(pthread_create(&others[i], NULL, visit, (void *)i), 0);
    }
    cr_assert_eq(pthread_create(&owner, NULL, own, &turns), 0);
    pthread_join(owner, NULL);
    for (int i = 0; i < OTHERS; i++) pthread_join(others[i], NULL);
    cr_assert(atomic_load(&twice) == 0 && changes == turns + atomic_load(&entered),
              "%ld times two threads had it, %ld of %ld changes are there", atomic_load(&twice),
              changes, turns + atomic_load(&entered));
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

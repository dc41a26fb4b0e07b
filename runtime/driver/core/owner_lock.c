/*
 * The other threads' side: the request, the barrier, the wait.
 */
#include "owner_lock.h"

#include <pthread.h>
#include <sched.h>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* The numbers of linux/membarrier.h, which older headers lack. */
enum { MEMBARRIER_PRIVATE_EXPEDITED = 1 << 3, MEMBARRIER_REGISTER_PRIVATE_EXPEDITED = 1 << 4 };

bool tol_owner_lock_is_plain;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool owner_lock_membarrier(int command) {
#if defined(__linux__) && defined(SYS_membarrier)
    return syscall(SYS_membarrier, command, 0) == 0;
#else
    (void)command;
    return false;
#endif
}

static void owner_lock_prepare(void) {
    tol_owner_lock_is_plain = owner_lock_membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED) &&
                              owner_lock_membarrier(MEMBARRIER_PRIVATE_EXPEDITED);
}

void tol_owner_lock_prepare(void) {
    pthread_once(&once, owner_lock_prepare);
}

/* After it every owner either sees this thread's request, or is seen inside. */
static bool has_barrier(void) {
    return !tol_owner_lock_is_plain || owner_lock_membarrier(MEMBARRIER_PRIVATE_EXPEDITED);
}

void tol_owner_lock_wait(struct tol_owner_lock *lock) {
    do {
        atomic_store_explicit(&lock->inside, false, memory_order_release);
        while (atomic_load_explicit(&lock->asked, memory_order_acquire)) sched_yield();
    } while (!tol_owner_lock_try(lock));
}

static bool owner_lock_ask(struct tol_owner_lock *lock) {
    return !atomic_exchange_explicit(&lock->asked, true, memory_order_seq_cst);
}

static bool owner_lock_is_inside(struct tol_owner_lock *lock) {
    return atomic_load_explicit(&lock->inside, memory_order_seq_cst);
}

bool tol_owner_lock_enter(struct tol_owner_lock *lock) {
    while (!owner_lock_ask(lock)) sched_yield();
    if (!has_barrier()) {
        tol_owner_lock_leave(lock);
        return false;
    }
    while (owner_lock_is_inside(lock)) sched_yield();
    return true;
}

void tol_owner_lock_leave(struct tol_owner_lock *lock) {
    atomic_store_explicit(&lock->asked, false, memory_order_release);
}

void tol_owner_lock_enter_free(struct tol_owner_lock *const *locks, size_t count, bool *is_taken) {
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        is_taken[i] = owner_lock_ask(locks[i]);
        any = any || is_taken[i];
    }
    const bool is_seen = any && has_barrier();
    for (size_t i = 0; i < count; i++) {
        if (!is_taken[i] || (is_seen && !owner_lock_is_inside(locks[i]))) continue;
        tol_owner_lock_leave(locks[i]);
        is_taken[i] = false;
    }
}

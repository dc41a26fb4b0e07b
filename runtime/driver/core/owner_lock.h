/*
 * Owner lock: a lock that one thread, its owner, takes and releases with loads and stores alone.
 * Other threads may take it too, at the price of a system call.
 *
 * The owner writes that it is inside and then reads whether another thread requests the lock.
 * Another thread writes its request and then reads whether the owner is inside. Each must see the
 * other's write before its own read. The owner does not pay for that: the other thread calls
 * membarrier(2), which makes every running thread of the process execute a memory barrier. If the
 * system has no such call (before Linux 4.14, or forbidden by a filter), the owner's write is an
 * exchange.
 *
 * A lock starts all zero. The owner may change only while no thread holds the lock.
 */
#ifndef TOLLENS_OWNER_LOCK_H
#define TOLLENS_OWNER_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct tol_owner_lock {
    atomic_bool inside; /* the owner has it */
    atomic_bool asked;  /* another thread has it, or waits for the owner to leave */
};

/* Whether owners need no exchange. Set by tol_owner_lock_prepare. */
extern bool tol_owner_lock_is_plain;

/* Queries whether the system supports that. Called before the first lock is used, once or more. */
void tol_owner_lock_prepare(void);

/* What tol_owner_lock_take does if another thread requests the lock. */
void tol_owner_lock_wait(struct tol_owner_lock *lock);

static inline bool tol_owner_lock_try(struct tol_owner_lock *lock) {
    if (tol_owner_lock_is_plain) {
        atomic_store_explicit(&lock->inside, true, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
    } else {
        (void)atomic_exchange_explicit(&lock->inside, true, memory_order_seq_cst);
    }
    return !atomic_load_explicit(&lock->asked, memory_order_seq_cst);
}

/* Take and give back, by the owner. */
static inline void tol_owner_lock_take(struct tol_owner_lock *lock) {
    if (__builtin_expect(!tol_owner_lock_try(lock), 0)) tol_owner_lock_wait(lock);
}
static inline void tol_owner_lock_give(struct tol_owner_lock *lock) {
    atomic_store_explicit(&lock->inside, false, memory_order_release);
}

/* Take it as another thread, or as the owner if it is not inside, and release it. enter waits for
 * the lock. false: the system has forbidden membarrier to the process since, so only the owner may
 * take the lock from now on. */
bool tol_owner_lock_enter(struct tol_owner_lock *lock);
void tol_owner_lock_leave(struct tol_owner_lock *lock);

/* Takes those of count locks that are free, with one system call for all, and sets is_taken[i]. It
 * never waits, so the caller may hold a lock that owners wait for. */
void tol_owner_lock_enter_free(struct tol_owner_lock *const *locks, size_t count, bool *is_taken);

#endif

/*
 * The flags of a lock for many readers.
 */
#include "watch_lock.h"

#include <sched.h>
#include <time.h>

/* Who has a flag may be writing an alarm, which takes longer than a look at a table. */
static void watch_lock_wait_for(const atomic_bool *taken) {
    const struct timespec pause = {.tv_nsec = 20000};
    for (unsigned i = 0; atomic_load_explicit(taken, memory_order_relaxed); i++) {
        if (i < 100)
            sched_yield();
        else
            nanosleep(&pause, NULL);
    }
}

static void watch_lock_take(atomic_bool *taken) {
    while (atomic_exchange_explicit(taken, true, memory_order_acquire)) watch_lock_wait_for(taken);
}

static void watch_lock_give(atomic_bool *taken) {
    atomic_store_explicit(taken, false, memory_order_release);
}

/* Threads get flags in turn. */
static atomic_bool *watch_lock_own(struct watch_lock *lock) {
    static atomic_uint threads;
    static _Thread_local unsigned number; /* from 1 */
    if (number == 0) number = 1 + atomic_fetch_add(&threads, 1) % WATCH_SLOTS;
    return &lock->slots[number - 1].taken;
}

void watch_lock_read(struct watch_lock *lock) {
    watch_lock_take(watch_lock_own(lock));
}

void watch_lock_read_end(struct watch_lock *lock) {
    watch_lock_give(watch_lock_own(lock));
}

void watch_lock_write(struct watch_lock *lock) {
    for (unsigned i = 0; i < WATCH_SLOTS; i++) watch_lock_take(&lock->slots[i].taken);
}

void watch_lock_write_end(struct watch_lock *lock) {
    for (unsigned i = 0; i < WATCH_SLOTS; i++) watch_lock_give(&lock->slots[i].taken);
}

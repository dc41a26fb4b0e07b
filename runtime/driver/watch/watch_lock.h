/*
 * A lock for many readers: one flag per thread, up to a number of threads, each on a separate cache
 * line.
 *
 * A reader takes the flag of its thread with one exchange; a writer takes all flags. So readers
 * share no cache line; a pthread_rwlock_t writes one twice per reader. Threads beyond WATCH_SLOTS
 * share flags, and then wait for each other. A thread that has the lock must not take it again.
 */
#ifndef TOLLENS_WATCH_LOCK_H
#define TOLLENS_WATCH_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

enum { WATCH_SLOTS = 64, WATCH_SLOT_BYTES = 128 };

/* All zero: free. */
struct watch_lock {
    struct watch_slot {
        atomic_bool taken;
        char unused[WATCH_SLOT_BYTES - sizeof(atomic_bool)];
    } slots[WATCH_SLOTS];
};

void watch_lock_read(struct watch_lock *lock);
void watch_lock_read_end(struct watch_lock *lock);
void watch_lock_write(struct watch_lock *lock);
void watch_lock_write_end(struct watch_lock *lock);

#endif

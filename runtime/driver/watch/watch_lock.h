/*
 * A lock for many readers: one flag for each of some threads, on lines of the cache of their own.
 *
 * A reader takes the flag of its thread, by one exchange; a writer takes all of them. So readers
 * share no line, which a pthread_rwlock_t writes twice a reader. Threads beyond WATCH_SLOTS share
 * flags, and then wait for each other. A thread that has the lock must not take it again.
 */
#ifndef TOLLENS_WATCH_LOCK_H
#define TOLLENS_WATCH_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

enum { WATCH_SLOTS = 64, WATCH_SLOT_BYTES = 128 };

/* All zero: nobody has it. */
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

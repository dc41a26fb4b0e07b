/*
 * Journal: an append-only file of what was submitted, answered and lost.
 *
 * A record is a head of 32 bytes and its bytes:
 *
 *     "TGJ1"  u32 count  u64 sequence  u64 job  u32 kind  u32 CRC-32C of all but itself
 *
 * Numbers are little-endian. The first record is a head without a job. A record is written by one
 * write. After a death the file has whole records and at most the beginning of one more, which is
 * cut off. If that is not so, something else changed the file, and it is rejected.
 *
 * Threads: one at a time. Only one process can have a journal open (flock).
 */
#ifndef TOLLENS_GUARD_JOURNAL_H
#define TOLLENS_GUARD_JOURNAL_H

#include "core/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum guard_kind {
    GUARD_HEAD,     /* the bytes name the format */
    GUARD_TAKEN,    /* a job was submitted: its bytes */
    GUARD_PART,     /* what a worker keeps of a job for its successor */
    GUARD_LOST,     /* its worker ended: why */
    GUARD_ANSWERED, /* its answer */
    GUARD_FAILED,   /* it has no answer: why */
    GUARD_KINDS
};

struct guard_record {
    enum guard_kind kind;
    uint64_t job;
    const void *bytes; /* count of them */
    size_t count;
};

struct guard_journal;

/* Opens a journal, or creates it, and calls visit for each of its records but the first; the bytes
 * are valid during the call. A failure of visit is passed on. Otherwise fails as tol_guard_open. */
tol_status guard_journal_open(const char *path, bool is_synced,
                              tol_status (*visit)(void *user, const struct guard_record *record),
                              void *user, struct guard_journal **journal);

/* NULL is a no-op. */
void guard_journal_close(struct guard_journal *journal);

/* Appends a record completely or not at all. TOL_UNWRITABLE: the file cannot grow, now or later;
 * the message says why. */
tol_status guard_journal_add(struct guard_journal *journal, const struct guard_record *record);

/* CRC-32C (Castagnoli; RFC 3720, B.4). sum is 0, or that of what comes before. */
uint32_t guard_sum(uint32_t sum, const void *bytes, size_t count);

#endif

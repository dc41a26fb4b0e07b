/*
 * Retry: a driver call that failed for a reason that may pass is made again, after a pause that
 * doubles, until it has been tried often enough or its time is up.
 *
 * Transient are: no memory just now (another process may give some back), a device that is taken or
 * unavailable, a system, an operating system or an MPS server that is not ready, and one that
 * serves as many clients as it can. Everything else is told at once, above all what a context
 * cannot come back from. Only calls that may be made twice are retried; queueing a copy is one.
 *
 * Internal: not installed. Source: spec 002 "Error Recovery" 1.
 */
#ifndef TOLLENS_RETRY_H
#define TOLLENS_RETRY_H

#include "tollens/cuda_abi.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The time, and a way to let it pass; tests bring their own. */
struct tol_retry_clock {
    uint64_t (*now_ns)(void);
    void (*pause_ns)(uint64_t ns);
};
extern const struct tol_retry_clock tol_retry_real_clock;

struct tol_retry_policy {
    const struct tol_retry_clock *clock;
    unsigned attempts; /* in all, the first included */
    uint64_t first_pause_ns;
    uint64_t deadline_ns;            /* from the first failure on; no pause goes beyond */
    _Atomic(uint64_t) *retries_made; /* counted up; NULL: not wanted */
};

/* One call's attempts; all zero but the policy at first. */
struct tol_retry {
    const struct tol_retry_policy *policy;
    unsigned failures;
    uint64_t end_ns;
};

/* Whether a code may pass. */
bool tol_retry_is_transient(CUresult result);

/* Whether to make the call again after result; has paused before it says so. */
bool tol_retry_again(struct tol_retry *retry, CUresult result);

#endif

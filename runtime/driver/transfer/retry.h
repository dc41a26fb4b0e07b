/*
 * Retry: repeats a driver call that failed for a temporary reason, after a pause that doubles,
 * until the attempts or the time are used up.
 *
 * Temporary reasons are: out of memory (another process may free some), a device that is in use or
 * unavailable, a system, an operating system or an MPS server that is not ready, and an MPS server
 * with its maximum of clients. Every other failure is returned at once, above all one that destroys
 * the context. Only calls that may be made twice are retried; queueing a copy is one.
 *
 * Source: spec 002 "Error Recovery" 1.
 */
#ifndef TOLLENS_RETRY_H
#define TOLLENS_RETRY_H

#include "tollens/cuda_abi.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A clock and a pause; tests supply their own. */
struct tol_retry_clock {
    uint64_t (*now_ns)(void);
    void (*pause_ns)(uint64_t ns);
};
extern const struct tol_retry_clock tol_retry_real_clock;

struct tol_retry_policy {
    const struct tol_retry_clock *clock;
    unsigned attempts; /* in total, including the first */
    uint64_t first_pause_ns;
    uint64_t deadline_ns;            /* counted from the first failure; no pause exceeds it */
    _Atomic(uint64_t) *retries_made; /* incremented for each retry; may be NULL */
};

/* The attempts at one call. Starts all zero except the policy. */
struct tol_retry {
    const struct tol_retry_policy *policy;
    unsigned failures;
    uint64_t end_ns;
};

/* Whether a code is a temporary failure. */
bool tol_retry_is_transient(CUresult result);

/* Returns whether to repeat the call after result, and pauses before it returns true. */
bool tol_retry_again(struct tol_retry *retry, CUresult result);

#endif

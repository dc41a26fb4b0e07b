/*
 * Counting attempts, and pausing between them.
 */
#include "retry.h"

#include "core/monotonic.h"

#include <time.h>

static void real_pause_ns(uint64_t ns) {
    struct timespec pause = {.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
    nanosleep(&pause, NULL);
}

const struct tol_retry_clock tol_retry_real_clock = {tol_now_ns, real_pause_ns};

bool tol_retry_is_transient(CUresult result) {
    switch ((int)result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_OPERATING_SYSTEM:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_MPS_SERVER_NOT_READY:
    case CUDA_ERROR_MPS_MAX_CLIENTS_REACHED:
    case CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED:
        return true;
    default:
        return false;
    }
}

bool tol_retry_again(struct tol_retry *retry, CUresult result) {
    const struct tol_retry_policy *policy = retry->policy;
    if (result == CUDA_SUCCESS || !tol_retry_is_transient(result)) return false;
    uint64_t now = policy->clock->now_ns();
    if (retry->failures++ == 0) retry->end_ns = now + policy->deadline_ns;
    if (retry->failures >= policy->attempts || now >= retry->end_ns) return false;
    const unsigned doubled = retry->failures - 1;
    uint64_t pause = doubled < 32 ? policy->first_pause_ns << doubled : policy->deadline_ns;
    if (pause > retry->end_ns - now) pause = retry->end_ns - now;
    policy->clock->pause_ns(pause);
    if (policy->retries_made != NULL) {
        atomic_fetch_add_explicit(policy->retries_made, 1, memory_order_relaxed);
    }
    return true;
}

/*
 * Samples, each of which represents the calls since the previous one.
 */
#include "times.h"

#include "core/check.h"

/* A minute, to 1 %: longer calls count as one of a minute. */
static const int64_t LONGEST_NS = 60000000000;
enum { DIGITS = 2 };

void tol_times_open(struct tol_times *times, unsigned one_in) {
    times->one_in = one_in;
    times->random = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < TOL_POOL_CALLS; i++) times->calls[i].until = times->calls[i].gap = 1;
}

void tol_times_close(struct tol_times *times) {
    for (int i = 0; i < TOL_POOL_CALLS; i++) {
        tol_hdr_free(times->calls[i].hdr);
        times->calls[i].hdr = NULL;
    }
}

/* 1 to twice one_in less 1: a gap that always is the same might keep step with the program. */
static uint32_t draw_gap(struct tol_times *times) {
    times->random ^= times->random << 13;
    times->random ^= times->random >> 7;
    times->random ^= times->random << 17;
    return 1 + (uint32_t)(times->random % (2 * (uint64_t)times->one_in - 1));
}

tol_status tol_times_new(struct tol_hdr **times) {
    tol_hdr_error error = tol_hdr_new(1, LONGEST_NS, DIGITS, times);
    return error == TOL_HDR_OK ? TOL_OK
                               : tol_fail(__FILE__, __LINE__, TOL_OUT_OF_HOST_MEMORY, "%s",
                                          tol_hdr_sentence(error));
}

/* Without host memory there are no times: a call does not fail for that. */
static void times_record(struct tol_times_call *call, uint64_t ns, uint32_t count) {
    if (call->hdr == NULL && tol_hdr_new(1, LONGEST_NS, DIGITS, &call->hdr) != TOL_HDR_OK) {
        return;
    }
    int64_t value = ns < (uint64_t)LONGEST_NS ? (int64_t)ns : LONGEST_NS;
    (void)tol_hdr_record_many(call->hdr, value, count);
}

uint64_t tol_times_end(struct tol_times *times, enum tol_pool_call which, uint64_t begin,
                       uint64_t metered_at) {
    struct tol_times_call *call = &times->calls[which];
    if (times->one_in == 0) return 0;
    const uint64_t ns = tol_now_ns() - (begin != 0 ? begin : metered_at);
    if (metered_at != 0) {
        times_record(call, ns, 1);
        call->slow++;
    } else {
        times_record(call, ns, call->gap - 1 - call->slow);
        call->slow = 0;
        call->gap = call->until = draw_gap(times);
    }
    return ns;
}

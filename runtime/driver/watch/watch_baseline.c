/*
 * What is usual: the largest value of each kind in the windows that were learned.
 *
 * Windows follow each other without gaps from the first call on; a window without a call counts as
 * zeros. After learning, a value above the largest one is unusual, once per window. If a window is
 * exchangeable with the n learned ones, the chance of that is at most 1 / (n + 1) for each of the
 * four values: among n + 1 values the last is the only largest one with at most that chance.
 */
#include "watch_state.h"

#include <math.h>
#include <string.h>

uint64_t watch_windows_for(double false_alarms) {
    return (uint64_t)ceil(WATCH_VALUES / false_alarms) - 1;
}

/* Ends windows until now_ns is in the current one. */
static void watch_baseline_advance(struct watch_baseline *baseline, uint64_t now_ns) {
    if (baseline->begin_ns == 0) baseline->begin_ns = now_ns;
    if (now_ns < baseline->begin_ns) return; /* another thread's call, which came first */
    const uint64_t passed = (now_ns - baseline->begin_ns) / baseline->window_ns;
    if (passed == 0) return;
    if (baseline->learned < baseline->wanted) {
        for (unsigned i = 0; i < WATCH_VALUES; i++) {
            if (baseline->now[i] > baseline->largest[i]) baseline->largest[i] = baseline->now[i];
        }
        const uint64_t left = baseline->wanted - baseline->learned;
        baseline->learned += passed < left ? passed : left;
    }
    baseline->begin_ns += passed * baseline->window_ns;
    memset(baseline->now, 0, sizeof baseline->now);
    memset(baseline->alarmed, 0, sizeof baseline->alarmed);
}

enum watch_value watch_baseline_add(struct watch_baseline *baseline, uint64_t now_ns,
                                    const uint64_t add[WATCH_VALUES], uint64_t *seen,
                                    uint64_t *limit) {
    watch_baseline_advance(baseline, now_ns);
    enum watch_value unusual = WATCH_VALUES;
    for (unsigned i = 0; i < WATCH_VALUES; i++) {
        baseline->now[i] += add[i];
        const bool is_unusual = baseline->learned == baseline->wanted && !baseline->alarmed[i] &&
                                baseline->now[i] > baseline->largest[i];
        if (!is_unusual || unusual != WATCH_VALUES) continue;
        unusual = (enum watch_value)i;
        baseline->alarmed[i] = true;
        *seen = baseline->now[i];
        *limit = baseline->largest[i];
    }
    return unusual;
}

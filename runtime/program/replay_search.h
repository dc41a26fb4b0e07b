/*
 * Replay search: options of the pool that hold less for a trace than the best profile does, found
 * on the first half of the trace and judged on the other half, which the search has not seen.
 *
 * stitch_above and wait_above are left out: they weigh time, and a replay has no work on the device
 * that a pool could wait for.
 */
#ifndef HYP_REPLAY_SEARCH_H
#define HYP_REPLAY_SEARCH_H

#include "replay_report.h"

enum { HYP_SEARCH_HALVES = 2, HYP_SEARCH_CHANGES_MAX = 16 };

/* What one half says about one pool. */
struct hyp_search_score {
    uint64_t unserved, held_peak, driver_calls;
    int64_t allocate_p99_ns;
};

struct hyp_search {
    const struct hyp_replay_profile *profile; /* the best one on the first half */
    const struct hyp_replay_profile *start;   /* the one that the changes are made to */
    struct {
        const char *option; /* of struct tol_pool_options */
        double value;
    } changes[HYP_SEARCH_CHANGES_MAX];
    size_t change_count;
    struct hyp_search_score before[HYP_SEARCH_HALVES], after[HYP_SEARCH_HALVES];
    size_t replays; /* of the first half */
    double seconds;
    bool holds; /* on the other half, too, it is better than the profile */
};

/* Searches for at most some seconds, from each profile until no single change helps. At least the
 * profiles are tried. false: hyp_error(). */
bool hyp_search_run(const struct hyp_replay_setting *setting, double seconds,
                    struct hyp_search *search);

void hyp_search_print(const struct hyp_search *search);
json_t *hyp_search_json(const struct hyp_search *search);

#endif

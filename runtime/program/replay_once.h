/*
 * Replays of one trace with several pools: which profiles there are, what would have fit where an
 * allocation failed, and which limit would have served all.
 */
#ifndef HYP_REPLAY_ONCE_H
#define HYP_REPLAY_ONCE_H

#include "trace/trace_replay.h"

struct hyp_replay_profile {
    const char *name;
    void (*options)(const struct tol_device *device, struct tol_pool_options *options);
};

/* The profiles; the last one is the driver's own pool, which has no limit. */
enum { HYP_REPLAY_PROFILES = 6, HYP_REPLAY_DRIVER = 5 };
extern const struct hyp_replay_profile hyp_replay_profiles[HYP_REPLAY_PROFILES];

/* A pool of a profile that times each call. limit 0: none. events: how many it keeps. NULL:
 * hyp_error(). */
struct tol_pool *hyp_replay_pool(struct tol_context *context,
                                 const struct hyp_replay_profile *profile, uint64_t limit,
                                 size_t events);

/* The size of the largest block that would have been served instead of the event of this index, in
 * bytes: the trace is replayed up to there, and sizes are tried. false: hyp_error(). */
bool hyp_replay_fits(struct tol_context *context, const struct hyp_replay_profile *profile,
                     uint64_t limit, const struct hyp_trace *trace, size_t index, uint64_t *bytes);

/* The least limit under which no more allocations fail than without a limit, found by replays to
 * 1/256 of the peak of live bytes or 2 MiB, at most 2.4 times what the profile holds without one.
 * *unserved: the allocations that fail even then. 0 bytes: none was found, or the profile takes no
 * limit. false: hyp_error(). */
bool hyp_replay_least_limit(struct tol_context *context, const struct hyp_replay_profile *profile,
                            const struct hyp_trace *trace, uint64_t *bytes, uint64_t *unserved);

#endif

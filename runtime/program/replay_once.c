/*
 * A pool for each replay, and bisections.
 */
#include "replay_once.h"

#include "files/atomic_file.h"
#include "harness/session.h"

#define STEP_BYTES ((uint64_t)2 << 20)
enum { RAISES = 5 }; /* by a quarter each: to 2.4 times as much */

static void replay_driver_options(const struct tol_device *device,
                                  struct tol_pool_options *options) {
    (void)device;
    *options = (struct tol_pool_options){.source = TOL_POOL_DRIVER, .time_one_in = 1};
}

/* A replay does no work that would give the profile time to remap memory in. */
static void replay_torch_options(const struct tol_device *device,
                                 struct tol_pool_options *options) {
    tol_pool_torch(device, options);
    options->stitch_always = true;
}

const struct hyp_replay_profile hyp_replay_profiles[HYP_REPLAY_PROFILES] = {
    {"default", tol_pool_default},
    {"tight", tol_pool_tight},
    {"latency", tol_pool_latency},
    {"torch", replay_torch_options},
    {"lean", tol_pool_lean},
    [HYP_REPLAY_DRIVER] = {"driver", replay_driver_options}};

struct tol_pool *hyp_replay_pool(struct tol_context *context,
                                 const struct hyp_replay_profile *profile, uint64_t limit,
                                 size_t events) {
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    profile->options(tol_context_device(context), &options);
    options.limit_bytes = (size_t)limit;
    options.time_one_in = 1;
    options.trace_events = events;
    if (tol_pool_create(context, &options, &pool) == TOL_OK) return pool;
    hyp_fail("%s", hyp_session_message());
    return NULL;
}

/* ---- what would have fit --------------------------------------------------------------------- */

/* Whether a block is served; it is freed again. */
static tol_status replay_try(struct tol_pool *pool, uint64_t bytes) {
    struct tol_block block = {0};
    tol_status status = tol_pool_allocate(pool, (size_t)bytes, NULL, &block);
    return status == TOL_OK ? tol_pool_free(pool, block, NULL) : status;
}

static bool replay_bisect_size(struct tol_pool *pool, uint64_t unserved, uint64_t *bytes) {
    uint64_t low = 0, high = unserved / TOL_POOL_ALIGNMENT + 1; /* in units of the alignment */
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        const tol_status status = replay_try(pool, middle * TOL_POOL_ALIGNMENT);
        if (status != TOL_OK && status != TOL_OUT_OF_DEVICE_MEMORY) {
            return hyp_fail("%s", hyp_session_message());
        }
        *(status == TOL_OK ? &low : &high) = middle;
    }
    *bytes = low * TOL_POOL_ALIGNMENT;
    return true;
}

bool hyp_replay_fits(struct tol_context *context, const struct hyp_replay_profile *profile,
                     uint64_t limit, const struct hyp_trace *trace, size_t index, uint64_t *bytes) {
    struct hyp_replay replay = {.trace = trace, .context = context, .stop = index};
    replay.pool = hyp_replay_pool(context, profile, limit, 0);
    const bool ok = replay.pool != NULL && (index == 0 || hyp_replay_run(&replay)) &&
                    replay_bisect_size(replay.pool, trace->events[index].bytes, bytes);
    tol_pool_destroy(replay.pool);
    return ok;
}

/* ---- the least limit ------------------------------------------------------------------------- */

/* How many allocations fail under a limit, and what is held at most. */
static bool replay_under(struct tol_context *context, const struct hyp_replay_profile *profile,
                         uint64_t limit, const struct hyp_trace *trace, uint64_t *unserved,
                         uint64_t *held) {
    struct hyp_replay replay = {.trace = trace, .context = context};
    replay.pool = hyp_replay_pool(context, profile, limit, 0);
    const bool ok = replay.pool != NULL && hyp_replay_run(&replay);
    tol_pool_destroy(replay.pool);
    *unserved = replay.unserved;
    *held = replay.held_peak;
    return ok;
}

bool hyp_replay_least_limit(struct tol_context *context, const struct hyp_replay_profile *profile,
                            const struct hyp_trace *trace, uint64_t *bytes, uint64_t *unserved) {
    const uint64_t step = trace->peak / 256 > STEP_BYTES ? trace->peak / 256 : STEP_BYTES;
    uint64_t low = 0, high = 0, held = 0, failed = 0;
    *bytes = *unserved = 0;
    if (profile == &hyp_replay_profiles[HYP_REPLAY_DRIVER]) return true;
    if (!replay_under(context, profile, 0, trace, unserved, &high)) return false;
    /* Under a limit a profile may take larger handles than fit at the end. */
    for (int i = 0; i < RAISES; i++, high += high / 4) {
        if (!replay_under(context, profile, high, trace, &failed, &held)) return false;
        if (failed <= *unserved) break;
    }
    if (failed > *unserved) return true;
    if (trace->peak < high) low = trace->peak > 0 ? trace->peak - 1 : 0;
    while (high - low > step) {
        const uint64_t middle = low + (high - low) / 2;
        if (!replay_under(context, profile, middle, trace, &failed, &held)) return false;
        *(failed <= *unserved ? &high : &low) = middle;
    }
    *bytes = high;
    return true;
}

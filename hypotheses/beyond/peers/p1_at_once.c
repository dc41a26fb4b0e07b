/*
 * The attacks on P1 in which much happens at once: all pairs copy side by side, a copy follows what
 * writes its source, and access comes and goes beside copies.
 */
#include "peer_ways.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* ---- all pairs ---- */

enum { PAIRS_MAX = PEER_DEVICES_MAX * PEER_DEVICES_MAX };

struct pair {
    struct peer_area source, target;
    struct tol_stream *stream;
    struct peer_trial trial;
    enum peer_way way;
    uint64_t seed;
};

static bool begin_pair(struct peer_stage *stage, struct pair *pair, size_t from, size_t to,
                       size_t bytes, enum peer_way way) {
    pair->way = way;
    pair->seed = hyp_random(stage->attack);
    pair->trial = (struct peer_trial){.stage = stage,
                                      .from = from,
                                      .to = to,
                                      .source = &pair->source,
                                      .target = &pair->target,
                                      .bytes = bytes,
                                      .poison = (unsigned char)~peer_byte(pair->seed, 0)};
    struct tol_context *context = tol_stream_context(peer_way_stream(&pair->trial, way));
    return peer_area_create(stage, from, bytes, &pair->source) &&
           peer_area_create(stage, to, bytes, &pair->target) &&
           HYP_OK(stage->attack, tol_stream_create(context, NULL, &pair->stream)) &&
           peer_area_poison(stage, &pair->target, pair->trial.poison) &&
           peer_area_send(stage, &pair->source, 0, pair->seed, bytes);
}

static void end_pair(struct peer_stage *stage, struct pair *pair) {
    tol_stream_destroy(pair->stream);
    peer_area_destroy(stage, &pair->source);
    peer_area_destroy(stage, &pair->target);
    *pair = (struct pair){.stream = NULL};
}

static bool at_check_pair(struct peer_stage *stage, const struct pair *pair) {
    char words[120];
    snprintf(words, sizeof words, "%s, device %zu to %zu, beside all other pairs",
             peer_way_name(pair->way), pair->trial.from, pair->trial.to);
    return HYP_OK(stage->attack, tol_stream_synchronize_for(pair->stream, 60000)) &&
           peer_area_check(stage, &pair->target, 0, pair->seed, pair->trial.bytes,
                           pair->trial.poison, words);
}

/* Every pair has `each` copies, and every copy a way that its devices have, another in the next
 * round. Copies of different pairs follow each other. */
static void try_round(struct peer_stage *stage, struct pair *pairs, size_t round, size_t each,
                      size_t bytes) {
    static const enum peer_way ways[] = {PEER_PUSH, PEER_LOAD, PEER_PUSH, PEER_STORE, PEER_ATOMIC};
    enum { WAYS = sizeof ways / sizeof ways[0] };
    const size_t squares = stage->count * stage->count;
    size_t count = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < each * squares; i++) {
        const size_t from = i % squares / stage->count, to = i % stage->count;
        enum peer_way way = ways[(i % squares + i / squares + round) % WAYS];
        if (from == to) continue;
        if (!peer_way_is_open(stage, way, from, to)) way = PEER_PUSH;
        ok = begin_pair(stage, &pairs[count++], from, to, bytes, way);
    }
    for (size_t i = 0; ok && i < count; i++) {
        ok = peer_way_queue(&pairs[i].trial, pairs[i].way, pairs[i].stream);
    }
    for (size_t i = 0; ok && i < count; i++) ok = at_check_pair(stage, &pairs[i]);
    for (size_t i = 0; i < count; i++) end_pair(stage, &pairs[i]);
}

/* Few devices have several copies a pair, so that there are as many at once as of many devices. */
HYP_ATTACK_WITH(p1, all_pairs_at_once_return, .soft_devices = "8", .many_queues = true) {
    static struct pair pairs[PAIRS_MAX];
    enum { SMALL = 3, LARGE = 20, SABOTAGED = 2 };
    enum { SMALL_BYTES = 20011, LARGE_BYTES = (64 << 20) + 3 };
    struct peer_stage stage;
    const bool is_large = attack->session.full && attack->kind == HYP_DEVICE_CUDA;
    const size_t large = attack->session.sabotage != NULL ? SABOTAGED : LARGE;
    const size_t rounds = SMALL + (is_large ? large : 0);
    if (peer_stage_begin(attack, &stage)) {
        const size_t each = PAIRS_MAX / 2 / (stage.count * (stage.count - 1));
        for (size_t round = 0; round < rounds; round++) {
            const bool is_small = round < SMALL;
            try_round(&stage, pairs, round, is_small && each > 1 ? each : 1,
                      is_small ? SMALL_BYTES : LARGE_BYTES);
            hyp_attack_progress(attack, (double)(round + 1) / (double)rounds);
        }
    }
    peer_stage_end(&stage);
}

/* ---- order ---- */

/* Longer than it takes to queue what follows. */
static tol_status at_take_time(void *user, char *reason, size_t bytes) {
    const struct timespec pause = {.tv_nsec = 4000000};
    (void)user, (void)reason, (void)bytes;
    nanosleep(&pause, NULL);
    return TOL_OK;
}

/* The driver's code, as a check. */
static bool at_went(struct peer_stage *stage, CUresult result, const char *call) {
    return HYP_CHECK(stage->attack, result == CUDA_SUCCESS, "%s: CUDA error %d", call, (int)result);
}

/* On the source's stream: a pause, the pattern from `spare`, an event. On the other stream: the
 * copy, after that event. Then the source is overwritten, after the copy. */
static bool queue_in_order(const struct peer_trial *trial, const struct peer_area *spare,
                           enum peer_way way, struct tol_stream *stream, const CUevent *events) {
    struct peer_stage *stage = trial->stage;
    const struct tol_driver_table *driver = stage->functions;
    const struct peer_device *from = &stage->devices[trial->from];
    const CUstream first = tol_stream_handle(from->stream), second = tol_stream_handle(stream);
    struct tol_context *other = tol_stream_context(stream);
    return HYP_OK(stage->attack, tol_stream_call(from->stream, at_take_time, NULL)) &&
           HYP_OK(stage->attack, tol_context_bind(from->context)) &&
           at_went(stage,
                   driver->cuMemcpyDtoDAsync_v2(trial->source->address, spare->address,
                                                trial->bytes, first),
                   "cuMemcpyDtoDAsync") &&
           at_went(stage, driver->cuEventRecord(events[0], first), "cuEventRecord") &&
           HYP_OK(stage->attack, tol_context_bind(other)) &&
           at_went(stage, driver->cuStreamWaitEvent(second, events[0], 0), "cuStreamWaitEvent") &&
           peer_way_queue(trial, way, stream) && HYP_OK(stage->attack, tol_context_bind(other)) &&
           at_went(stage, driver->cuEventRecord(events[1], second), "cuEventRecord") &&
           HYP_OK(stage->attack, tol_context_bind(from->context)) &&
           at_went(stage, driver->cuStreamWaitEvent(first, events[1], 0), "cuStreamWaitEvent") &&
           at_went(
               stage,
               driver->cuMemsetD8Async(trial->source->address, trial->poison, trial->bytes, first),
               "cuMemsetD8Async");
}

static void try_order(struct peer_stage *stage, size_t from, size_t to, enum peer_way way) {
    const size_t bytes = 100003;
    const uint64_t seed = hyp_random(stage->attack);
    char words[120];
    struct peer_area spare = {0}, source = {0}, target = {0};
    struct peer_trial trial = {.stage = stage,
                               .from = from,
                               .to = to,
                               .source = &source,
                               .target = &target,
                               .bytes = bytes,
                               .poison = (unsigned char)~peer_byte(seed, 0)};
    struct tol_context *context = stage->devices[way == PEER_STORE ? from : to].context;
    struct tol_stream *stream = NULL;
    CUevent events[2] = {NULL, NULL};
    snprintf(words, sizeof words, "%s, device %zu to %zu, after the work that writes its source",
             peer_way_name(way), from, to);
    if (peer_area_create(stage, from, bytes, &spare) &&
        peer_area_create(stage, from, bytes, &source) &&
        peer_area_create(stage, to, bytes, &target) &&
        HYP_OK(stage->attack, tol_stream_create(context, NULL, &stream)) &&
        peer_area_poison(stage, &source, trial.poison) &&
        peer_area_poison(stage, &target, trial.poison) &&
        peer_area_send(stage, &spare, 0, seed, bytes) &&
        HYP_OK(stage->attack, tol_context_bind(stage->devices[from].context)) &&
        at_went(stage, stage->driver.cuEventCreate(&events[0], CU_EVENT_DISABLE_TIMING),
                "an event") &&
        HYP_OK(stage->attack, tol_context_bind(context)) &&
        at_went(stage, stage->driver.cuEventCreate(&events[1], CU_EVENT_DISABLE_TIMING),
                "an event") &&
        queue_in_order(&trial, &spare, way, stream, events) &&
        HYP_OK(stage->attack, tol_stream_synchronize_for(stream, 60000)) &&
        HYP_OK(stage->attack, tol_stream_synchronize_for(stage->devices[from].stream, 60000))) {
        peer_area_check(stage, &target, 0, seed, bytes, trial.poison, words);
    }
    for (size_t i = 0; i < 2; i++) {
        if (events[i] != NULL) stage->driver.cuEventDestroy_v2(events[i]);
    }
    tol_stream_destroy(stream);
    peer_area_destroy(stage, &spare);
    peer_area_destroy(stage, &source);
    peer_area_destroy(stage, &target);
}

HYP_ATTACK_WITH(p1, copies_wait_for_what_writes_their_source, .soft_devices = "3") {
    static const enum peer_way ways[] = {PEER_PUSH, PEER_LOAD, PEER_STORE};
    struct peer_stage stage;
    if (peer_stage_begin(attack, &stage)) {
        const size_t rounds = attack->session.full ? 10 : 2;
        for (size_t i = 0; i < rounds * stage.count * stage.count; i++) {
            const size_t from = i / stage.count % stage.count, to = i % stage.count;
            for (size_t way = 0; from != to && way < 3; way++) {
                if (peer_way_is_open(&stage, ways[way], from, to)) {
                    try_order(&stage, from, to, ways[way]);
                }
            }
        }
    }
    peer_stage_end(&stage);
}

/* ---- access that comes and goes ---- */

enum { STOP_S = 10, END_S = 60 };

struct toggle {
    const struct peer_stage *stage;
    size_t user, owner;
    pthread_t thread;
    bool has_thread, has_ended;
    atomic_bool is_over;
    atomic_uint rounds;
    CUresult result; /* the first that was not right */
};

static void *toggle_access(void *user) {
    struct toggle *toggle = user;
    const struct peer_driver *driver = &toggle->stage->driver;
    const CUcontext owner = toggle->stage->devices[toggle->owner].handle;
    toggle->result = driver->cuCtxSetCurrent(toggle->stage->devices[toggle->user].handle);
    while (toggle->result == CUDA_SUCCESS && !atomic_load(&toggle->is_over)) {
        toggle->result = driver->cuCtxDisablePeerAccess(owner);
        if (toggle->result == CUDA_SUCCESS) {
            toggle->result = driver->cuCtxEnablePeerAccess(owner, 0);
        }
        atomic_fetch_add(&toggle->rounds, 1);
    }
    return NULL;
}

/* Where a copy has failed, the context may be lost, and what waits in the driver, for it or for the
 * thread, may wait for ever: a signal ends the process then. */
static void stop_toggle(void *user) {
    struct toggle *toggle = user;
    struct timespec until;
    if (!toggle->has_thread) return;
    alarm(END_S);
    atomic_store(&toggle->is_over, true);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += STOP_S;
    toggle->has_ended = pthread_timedjoin_np(toggle->thread, NULL, &until) == 0;
    toggle->has_thread = false;
}

static bool start_toggle(struct peer_stage *stage, struct toggle *toggle) {
    const bool has_thread = pthread_create(&toggle->thread, NULL, toggle_access, toggle) == 0;
    toggle->has_thread = has_thread;
    stage->attack->stop = stop_toggle;
    stage->attack->stop_user = toggle;
    return HYP_CHECK(stage->attack, has_thread, "no thread");
}

/* false: access cannot be relied on any more. */
static bool end_toggle(struct peer_stage *stage, struct toggle *toggle) {
    stop_toggle(toggle);
    stage->attack->stop = NULL;
    return HYP_CHECK(stage->attack, toggle->has_ended,
                     "disabling or enabling access did not return within %d s", STOP_S) &&
           HYP_CHECK(stage->attack,
                     toggle->result == CUDA_SUCCESS && atomic_load(&toggle->rounds) > 0,
                     "disabling and enabling access beside copies: CUDA error %d after %u rounds",
                     (int)toggle->result, atomic_load(&toggle->rounds));
}

/* What the driver says about access that is already there, or already gone. */
static void check_states(struct peer_stage *stage, size_t user, size_t owner) {
    static const struct {
        bool enables;
        CUresult expected;
    } steps[] = {{true, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED},
                 {false, CUDA_SUCCESS},
                 {false, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED},
                 {true, CUDA_SUCCESS},
                 {true, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED}};
    const struct peer_driver *driver = &stage->driver;
    const CUcontext peer = stage->devices[owner].handle;
    HYP_NEED(stage->attack, tol_context_bind(stage->devices[user].context));
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const CUresult result = steps[i].enables ? driver->cuCtxEnablePeerAccess(peer, 0)
                                                 : driver->cuCtxDisablePeerAccess(peer);
        HYP_CHECK(stage->attack, result == steps[i].expected,
                  "step %zu, %s access of device %zu to device %zu: CUDA error %d, expected %d", i,
                  steps[i].enables ? "enabling" : "disabling", user, owner, (int)result,
                  (int)steps[i].expected);
    }
}

/* One direction's access is toggled by a thread; copies use the copy engine in both directions.
 * false: one failed. What the thread uses outlives this function, which a violation may leave. */
static bool try_toggled(struct peer_stage *stage, size_t from, size_t to, size_t copies) {
    static struct toggle toggle;
    const size_t bytes = 300007;
    struct peer_area source = {0}, target = {0};
    toggle = (struct toggle){.stage = stage, .user = to, .owner = from};
    bool ok = peer_area_create(stage, from, bytes, &source) &&
              peer_area_create(stage, to, bytes, &target) && start_toggle(stage, &toggle);
    /* The thread may begin late. */
    const size_t most = 100 * copies;
    for (size_t i = 0; ok && (i < copies || (atomic_load(&toggle.rounds) == 0 && i < most)); i++) {
        const uint64_t seed = hyp_random(stage->attack);
        const struct peer_trial trial = {.stage = stage,
                                         .from = from,
                                         .to = to,
                                         .source = &source,
                                         .target = &target,
                                         .bytes = bytes,
                                         .poison = (unsigned char)~peer_byte(seed, 0)};
        ok = peer_area_poison(stage, &target, trial.poison) &&
             peer_area_send(stage, &source, 0, seed, bytes) && peer_way_run(&trial, PEER_PUSH) &&
             peer_area_check(stage, &target, 0, seed, bytes, trial.poison,
                             "a copy while access is enabled and disabled again");
    }
    if (toggle.has_thread) ok = end_toggle(stage, &toggle) && ok;
    if (!ok) return false; /* the process ends soon, and the memory with it */
    alarm(0);
    peer_area_destroy(stage, &source);
    peer_area_destroy(stage, &target);
    return true;
}

/* The copies of a pair. Where the driver changes page tables, a copy and what is around it wait for
 * about 0.3 s of switches, so that each meets several, and fifty copies of all pairs, but at least
 * ten of each, are enough in full; elsewhere a copy may fall between two switches. A saboteur's
 * fault does not depend on switches, and shows in one copy of seven at least. */
static size_t copies_of_a_pair(const struct peer_stage *stage) {
    enum { SABOTAGED = 7, LEAST = 10, SOFT_COPIES = 200, COPIES_IN_ALL = 50 };
    const struct hyp_attack *attack = stage->attack;
    if (!attack->session.full) return LEAST;
    if (attack->kind == HYP_DEVICE_SOFT) return SOFT_COPIES;
    if (attack->session.sabotage != NULL) return SABOTAGED;
    const size_t each = COPIES_IN_ALL / (stage->count * (stage->count - 1));
    return each > LEAST ? each : LEAST;
}

HYP_ATTACK_WITH(p1, access_that_comes_and_goes_changes_no_byte, .soft_devices = "3") {
    struct peer_stage stage;
    if (peer_stage_begin(attack, &stage)) {
        bool ok = true;
        for (size_t i = 0; ok && i < stage.count * stage.count; i++) {
            const size_t from = i / stage.count, to = i % stage.count;
            if (from == to || !stage.reaches[to][from]) continue;
            check_states(&stage, to, from);
            ok = try_toggled(&stage, from, to, copies_of_a_pair(&stage));
        }
    }
    peer_stage_end(&stage);
}

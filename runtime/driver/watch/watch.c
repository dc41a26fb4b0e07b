/*
 * The hooks of a watch; its creation and destruction.
 *
 * Before a call, its blocks are found, the rules judge it, and the blocks count it: one lookup and
 * one lock. If a call fails, which is rare, its counts are undone afterwards.
 */
#include "core/check.h"
#include "core/monotonic.h"
#include "watch_state.h"

#include <stdlib.h>

/* The words of a launch's parameters; a kernel has at most WATCH_WORDS of them. */
struct words {
    uint64_t items[WATCH_WORDS];
    size_t count;
};

static void watch_keep_word(uint64_t word, void *user) {
    struct words *words = user;
    if (words->count < WATCH_WORDS) words->items[words->count++] = word;
}

static void find_launch(struct watch_visit *visit, const struct watch_launch *launch) {
    struct words words;
    words.count = 0;
    struct watch_kernel *kernel = watch_kernel_find(visit->watch, launch->function);
    if (!watch_kernel_words(kernel, launch, watch_keep_word, &words)) {
        atomic_fetch_add(&visit->watch->unread, 1);
    }
    watch_visit_launch(visit, kernel, words.items, words.count);
}

/* What is queued in a stream that is captured is not done now, but by each launch of the graph. */
static bool watch_is_captured(const struct watch_visit *visit, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return stream != NULL &&
           atomic_load_explicit(&visit->watch->captures, memory_order_relaxed) > 0 &&
           visit->driver->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Finds what the call does. Under the lock. */
static void watch_find_all(struct watch_visit *visit, const struct tol_interpose_call *call) {
    struct watch_use uses[2];
    struct watch_launch launch;
    const unsigned count = watch_copies(call, uses, &visit->deed.stream);
    visit->deed.call = call;
    if (count > 0) {
        if (watch_is_captured(visit, visit->deed.stream)) return;
        for (unsigned i = 0; i < count; i++) watch_visit_use(visit, &uses[i]);
    } else if (call->index == TOL_DRIVER_INDEX_cuGraphLaunch) {
        visit->deed.stream = *(CUstream const *)call->arguments[1];
        if (watch_is_captured(visit, visit->deed.stream)) return;
        if (!watch_graph_visit(visit, *(CUgraphExec const *)call->arguments[0])) {
            atomic_fetch_add(&visit->watch->unread, 1);
        }
    } else if (watch_launch_of(call, &launch)) {
        visit->deed.stream = launch.stream;
        if (!watch_is_captured(visit, launch.stream)) find_launch(visit, &launch);
    } else {
        watch_share_visit(visit, call);
    }
}

static void watch_before(struct tol_interpose_call *call, void *user) {
    struct tol_watch *watch = user;
    struct watch_visit visit;
    if (!call->forward || !watch_is_seen(call->index)) return;
    watch_visit_begin(&visit, watch, call->driver);
    visit.deed.now_ns = watch->options.now_ns();
    watch_lock_read(&watch->lock);
    watch_find_all(&visit, call);
    const bool is_refused = watch->rule_count > 0 && watch_visit_judge(&visit);
    if (!is_refused) watch_visit_count(&visit, false);
    watch_lock_read_end(&watch->lock);
    watch_visit_end(&visit);
    if (!is_refused) return;
    call->forward = false;
    call->result = CUDA_ERROR_NOT_PERMITTED;
}

/* What a call made, changed or ended. */
static void watch_note(struct tol_watch *watch, const struct tol_interpose_call *call) {
    if (watch_is_work(call->index)) return;
    watch_kernel_note(watch, call);
    watch_graph_note(watch, call);
    watch_share_note(watch, call);
}

static void watch_after(struct tol_interpose_call *call, void *user) {
    struct tol_watch *watch = user;
    struct watch_visit visit;
    if (call->result == CUDA_SUCCESS || call->index == TOL_DRIVER_INDEX_cuStreamEndCapture) {
        watch_note(watch, call);
        return;
    }
    if (!call->forward || !watch_is_seen(call->index)) return;
    watch_visit_begin(&visit, watch, call->driver);
    watch_lock_read(&watch->lock);
    watch_find_all(&visit, call);
    watch_visit_count(&visit, true);
    watch_lock_read_end(&watch->lock);
    watch_visit_end(&visit);
}

struct tol_interpose_options tol_watch_hooks(struct tol_watch *watch) {
    return (struct tol_interpose_options){
        .before = watch_before, .after = watch_after, .user = watch};
}

tol_status tol_watch_install(struct tol_watch *watch, struct tol_driver *driver) {
    tol_status status = TOL_OK;
    TOL_CHECK(watch != NULL && driver != NULL, TOL_INVALID_ARGUMENT, "watch or driver is NULL");
    const struct tol_interpose_options hooks = tol_watch_hooks(watch);
    status = tol_interpose_install(driver, &hooks);
out:
    return status;
}

/* The same clock as of its last tick, some milliseconds at most: a quarter of the time. */
static uint64_t coarse_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- life ------------------------------------------------------------------------------------ */

tol_status tol_watch_create(const struct tol_watch_options *options, struct tol_watch **result) {
    tol_status status = TOL_OK;
    struct tol_watch *watch = calloc(1, sizeof *watch);
    TOL_CHECK(watch != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a watch");
    if (options != NULL) watch->options = *options;
    TOL_TRY(watch_rules_read(watch->options.rules, &watch->rules, &watch->rule_count));
    watch_judge_prepare(watch);
    if (watch->options.now_ns == NULL) {
        watch->options.now_ns = watch_judge_needs_clock(watch) ? tol_now_ns : coarse_now_ns;
    }
    watch->options.rules = NULL; /* the text is the caller's */
    pthread_mutex_init(&watch->alarm_lock, NULL);
    *result = watch;
    watch = NULL;
out:
    free(watch);
    return status;
}

void tol_watch_destroy(struct tol_watch *watch) {
    if (watch == NULL) return;
    if (watch->teller != NULL) (void)watch->teller(NULL, NULL);
    for (size_t i = 0; i < watch->block_count; i++) free(watch->blocks[i]);
    watch_kernels_free(watch);
    watch_graphs_free(watch);
    watch_shares_free(watch);
    for (size_t i = 0; i < watch->rule_count; i++) pthread_mutex_destroy(&watch->rules[i].lock);
    pthread_mutex_destroy(&watch->alarm_lock);
    free(watch->blocks);
    free(watch->ends);
    free(watch->modules);
    free(watch->rules);
    free(watch);
}

void tol_watch_close_modules(struct tol_watch *watch) {
    watch_lock_write(&watch->lock);
    watch->is_closed = true;
    watch_lock_write_end(&watch->lock);
}

void tol_watch_close_kernels(struct tol_watch *watch) {
    atomic_store(&watch->kernels_closed, true);
}

bool tol_watch_has_learned(struct tol_watch *watch) {
    bool has_learned = true;
    for (size_t i = 0; i < watch->rule_count; i++) {
        struct watch_rule *rule = &watch->rules[i];
        if (rule->kind != TOL_WATCH_USUAL) continue;
        pthread_mutex_lock(&rule->lock);
        has_learned = has_learned && rule->baseline.learned == rule->baseline.wanted;
        pthread_mutex_unlock(&rule->lock);
    }
    return has_learned;
}

uint64_t tol_watch_alarms(struct tol_watch *watch) {
    return atomic_load(&watch->alarms);
}

uint64_t tol_watch_launches_unread(struct tol_watch *watch) {
    return atomic_load(&watch->unread);
}

tol_status tol_watch_check(struct tol_watch *watch) {
    tol_status status = TOL_OK;
    pthread_mutex_lock(&watch->alarm_lock);
    TOL_CHECK(watch->first[0] == '\0', TOL_ALARM, "%s", watch->first);
out:
    pthread_mutex_unlock(&watch->alarm_lock);
    return status;
}

/*
 * The hooks of a watch, and its life.
 *
 * Before a call, its blocks are found, the rules judge it, and the blocks count it: one lookup and
 * one lock. A call that fails, which is rare, is taken back behind it.
 */
#include "core/check.h"
#include "core/monotonic.h"
#include "watch_state.h"

#include <stdlib.h>

enum { DEEDS_MAX = 32 }; /* blocks of one call; the rest of a launch's or a copy's is not seen */

/* What a call does, block by block. */
struct watch_visit {
    struct tol_watch *watch;
    struct watch_deed deed; /* what is the same for all */
    unsigned count;
    struct found {
        struct watch_block *block;
        enum watch_effect effect;
        uint64_t bytes;
    } found[DEEDS_MAX];
};

static void find(struct watch_visit *visit, struct watch_block *block, enum watch_effect effect,
                 uint64_t bytes) {
    if (visit->count < DEEDS_MAX)
        visit->found[visit->count++] = (struct found){block, effect, bytes};
}

/* All blocks that a range of a copy touches. Rows with gaps count as if they were even. */
static void find_use(struct watch_visit *visit, const struct watch_use *use) {
    size_t index = 0;
    const CUdeviceptr end = use->address + use->span;
    if (use->span == 0) return;
    struct watch_block *block = watch_block_from(visit->watch, use->address, &index);
    for (; block != NULL && block->begin < end;
         block = ++index < visit->watch->block_count ? visit->watch->blocks[index] : NULL) {
        const CUdeviceptr first = use->address > block->begin ? use->address : block->begin,
                          last = end < block->end ? end : block->end;
        const uint64_t share = last - first;
        find(visit, block, use->effect,
             share == use->span
                 ? use->bytes
                 : (uint64_t)((double)use->bytes * (double)share / (double)use->span));
    }
}

static void find_word(uint64_t word, void *user) {
    struct watch_visit *visit = user;
    size_t index = 0;
    struct watch_block *block = watch_block_from(visit->watch, word, &index);
    if (block == NULL || block->begin > word) return;
    for (unsigned i = 0; i < visit->count; i++) {
        if (visit->found[i].block == block) return;
    }
    find(visit, block, WATCH_LAUNCHED, 0);
}

/* Finds what the call uses. false: it is no copy, fill or launch. Under the lock. */
static bool find_all(struct watch_visit *visit, const struct tol_interpose_call *call) {
    struct watch_use uses[2];
    struct watch_launch launch;
    const unsigned count = watch_copies(call, uses, &visit->deed.stream);
    for (unsigned i = 0; i < count; i++) find_use(visit, &uses[i]);
    if (count > 0) return true;
    if (!watch_launch_of(call, &launch)) return false;
    visit->deed.is_launch = true;
    visit->deed.stream = launch.stream;
    visit->deed.kernel = watch_kernel_find(visit->watch, launch.function);
    if (!watch_kernel_words(visit->deed.kernel, &launch, find_word, visit)) {
        atomic_fetch_add(&visit->watch->unread, 1);
    }
    return true;
}

/* Applies the rules: to a launch as such, and to each block. true: one refuses. */
static bool judge(struct watch_visit *visit) {
    struct watch_deed deed = visit->deed;
    bool is_refused = false;
    if (deed.is_launch) {
        deed.effect = WATCH_LAUNCHED;
        is_refused = watch_judge(visit->watch, &deed);
    }
    for (unsigned i = 0; i < visit->count; i++) {
        deed.block = visit->found[i].block;
        deed.effect = visit->found[i].effect;
        deed.bytes = visit->found[i].bytes;
        is_refused = watch_judge(visit->watch, &deed) || is_refused;
    }
    return is_refused;
}

static void count(const struct watch_visit *visit, bool takes_back) {
    for (unsigned i = 0; i < visit->count; i++) {
        const struct found *found = &visit->found[i];
        watch_count(found->block, found->effect, found->bytes, &visit->deed, takes_back);
    }
}

static void before(struct tol_interpose_call *call, void *user) {
    struct tol_watch *watch = user;
    if (!call->forward || !watch_is_seen(call->index)) return;
    struct watch_visit visit = {.watch = watch, .deed.call = call};
    visit.deed.now_ns = watch->options.now_ns();
    pthread_rwlock_rdlock(&watch->lock);
    bool is_refused = false;
    if (find_all(&visit, call)) is_refused = watch->rule_count > 0 && judge(&visit);
    if (!is_refused) count(&visit, false);
    pthread_rwlock_unlock(&watch->lock);
    if (!is_refused) return;
    call->forward = false;
    call->result = CUDA_ERROR_NOT_PERMITTED;
}

static void after(struct tol_interpose_call *call, void *user) {
    struct tol_watch *watch = user;
    if (call->result == CUDA_SUCCESS) {
        watch_kernel_note(watch, call);
        return;
    }
    if (!call->forward || !watch_is_seen(call->index)) return;
    struct watch_visit visit = {.watch = watch, .deed.call = call};
    pthread_rwlock_rdlock(&watch->lock);
    if (find_all(&visit, call)) count(&visit, true);
    pthread_rwlock_unlock(&watch->lock);
}

struct tol_interpose_options tol_watch_hooks(struct tol_watch *watch) {
    return (struct tol_interpose_options){.before = before, .after = after, .user = watch};
}

tol_status tol_watch_install(struct tol_watch *watch, struct tol_driver *driver) {
    tol_status status = TOL_OK;
    TOL_CHECK(watch != NULL && driver != NULL, TOL_INVALID_ARGUMENT, "watch or driver is NULL");
    const struct tol_interpose_options hooks = tol_watch_hooks(watch);
    status = tol_interpose_install(driver, &hooks);
out:
    return status;
}

/* ---- life ------------------------------------------------------------------------------------ */

tol_status tol_watch_create(const struct tol_watch_options *options, struct tol_watch **result) {
    tol_status status = TOL_OK;
    struct tol_watch *watch = calloc(1, sizeof *watch);
    TOL_CHECK(watch != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a watch");
    if (options != NULL) watch->options = *options;
    if (watch->options.now_ns == NULL) watch->options.now_ns = tol_now_ns;
    TOL_TRY(watch_rules_read(watch->options.rules, &watch->rules, &watch->rule_count));
    watch->options.rules = NULL; /* the text is the caller's */
    pthread_rwlock_init(&watch->lock, NULL);
    pthread_mutex_init(&watch->alarm_lock, NULL);
    *result = watch;
    watch = NULL;
out:
    free(watch);
    return status;
}

void tol_watch_destroy(struct tol_watch *watch) {
    if (watch == NULL) return;
    for (size_t i = 0; i < watch->block_count; i++) free(watch->blocks[i]);
    for (size_t i = 0; i < watch->kernel_room; i++) free(watch->kernels[i].bytes);
    for (size_t i = 0; i < watch->rule_count; i++) pthread_mutex_destroy(&watch->rules[i].lock);
    pthread_rwlock_destroy(&watch->lock);
    pthread_mutex_destroy(&watch->alarm_lock);
    free(watch->blocks);
    free(watch->ends);
    free(watch->kernels);
    free(watch->modules);
    free(watch->rules);
    free(watch);
}

void tol_watch_close_modules(struct tol_watch *watch) {
    pthread_rwlock_wrlock(&watch->lock);
    watch->is_closed = true;
    pthread_rwlock_unlock(&watch->lock);
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

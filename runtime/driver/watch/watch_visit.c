/*
 * Everything a call does, block by block: finds the block, judges, counts.
 */
#include "watch_state.h"

#include <stdlib.h>
#include <string.h>

void watch_visit_begin(struct watch_visit *visit, struct tol_watch *watch,
                       const struct tol_driver_table *driver) {
    visit->watch = watch;
    visit->driver = driver;
    visit->deed = (struct watch_deed){.call = NULL};
    visit->count = 0;
    visit->room = WATCH_FEW;
    visit->found = visit->few;
}

void watch_visit_end(struct watch_visit *visit) {
    if (visit->found != visit->few) free(visit->found);
}

/* false: there is no host memory, and the rest of the call is not seen. */
static bool watch_visit_make_room(struct watch_visit *visit) {
    if (visit->count < visit->room) return true;
    struct watch_found *more = malloc(2 * visit->room * sizeof *more);
    if (more == NULL) return false;
    memcpy(more, visit->found, visit->count * sizeof *more);
    watch_visit_end(visit);
    visit->found = more;
    visit->room *= 2;
    return true;
}

void watch_visit_add(struct watch_visit *visit, const struct watch_found *found, bool merges) {
    for (size_t i = 0; merges && i < visit->count; i++) {
        struct watch_found *old = &visit->found[i];
        if (old->block != found->block || old->kernel != found->kernel ||
            old->effect != found->effect) {
            continue;
        }
        old->bytes += found->bytes;
        old->count += found->count;
        return;
    }
    if (watch_visit_make_room(visit)) visit->found[visit->count++] = *found;
}

/* All blocks that a range touches. Rows with gaps count as if they were even. */
void watch_visit_use(struct watch_visit *visit, const struct watch_use *use) {
    size_t index = 0;
    const CUdeviceptr end = use->address + use->span;
    enum watch_effect effect = use->effect;
    if (use->span == 0) return;
    struct watch_block *block = watch_block_from(visit->watch, use->address, &index);
    if (block == NULL || block->begin >= end) return;
    /* The host's memory has addresses that copies between devices take as well. */
    if (use->other != 0 && watch_is_of_host(visit->driver, use->other)) {
        if (effect == WATCH_READ) effect = WATCH_OUT;
        if (effect == WATCH_WRITTEN) effect = WATCH_IN;
    }
    for (; block != NULL && block->begin < end;
         block = ++index < visit->watch->block_count ? visit->watch->blocks[index] : NULL) {
        const CUdeviceptr first = use->address > block->begin ? use->address : block->begin,
                          last = end < block->end ? end : block->end;
        const uint64_t share = last - first;
        const uint64_t bytes =
            share == use->span ? use->bytes
                               : (uint64_t)((double)use->bytes * (double)share / (double)use->span);
        watch_visit_add(visit, &(struct watch_found){block, NULL, effect, bytes, 1}, false);
    }
}

/* A block counts once per launch, however often its address is among the words. */
void watch_visit_launch(struct watch_visit *visit, struct watch_kernel *kernel,
                        const uint64_t *words, size_t count) {
    if (kernel == NULL || !kernel->is_known) {
        const struct watch_found launch = {NULL, kernel, WATCH_LAUNCHED, 0, 1};
        watch_visit_add(visit, &launch, true);
    }
    for (size_t i = 0; i < count; i++) {
        size_t index = 0;
        bool is_there = false;
        struct watch_block *block = watch_block_from(visit->watch, words[i], &index);
        if (block == NULL || block->begin > words[i]) continue;
        for (size_t j = 0; j < i && !is_there; j++) {
            is_there = words[j] >= block->begin && words[j] < block->end;
        }
        if (is_there) continue;
        watch_visit_add(visit, &(struct watch_found){block, kernel, WATCH_LAUNCHED, 0, 1}, true);
    }
}

static struct watch_deed deed_of(const struct watch_visit *visit, size_t i) {
    struct watch_deed deed = visit->deed;
    deed.block = visit->found[i].block;
    deed.kernel = visit->found[i].kernel;
    deed.effect = visit->found[i].effect;
    deed.bytes = visit->found[i].bytes;
    deed.count = visit->found[i].count;
    return deed;
}

bool watch_visit_judge(struct watch_visit *visit) {
    bool is_refused = false;
    for (size_t i = 0; i < visit->count; i++) {
        const uint64_t rules = watch_judge_rules(visit->watch, &visit->found[i]);
        if (rules == 0) continue;
        const struct watch_deed deed = deed_of(visit, i);
        is_refused = watch_judge(visit->watch, rules, &deed) || is_refused;
    }
    return is_refused;
}

void watch_visit_count(const struct watch_visit *visit, bool takes_back) {
    for (size_t i = 0; i < visit->count; i++) {
        const struct watch_found *found = &visit->found[i];
        if (found->block != NULL) watch_count(&visit->deed, found, takes_back);
    }
}

/*
 * How far the initialisation of each mbarrier has been passed on.
 */
#include "mbarrier_init.h"

#include "base/options.h"
#include "finding.h"

#include <stdlib.h>

/* NEW, then FENCED by the thread, then HANDED on by its arrival, then KNOWN: the barrier opened. */
enum state { NEW, FENCED, HANDED, KNOWN };

struct init {
    uint32_t offset, warp, lane, phase; /* phase: of the cluster's barrier, once KNOWN */
    enum state state;
};

struct soft_inits {
    uint32_t count, room;
    struct init items[];
};

static struct init *mbarrier_init_find(const struct soft_cta *cta, uint32_t offset) {
    struct soft_inits *inits = cta->inits;
    for (uint32_t i = 0; inits != NULL && i < inits->count; i++) {
        if (inits->items[i].offset == offset) return &inits->items[i];
    }
    return NULL;
}

/* NULL: the host is out of memory, and less is found. */
static struct init *mbarrier_init_add(struct soft_cta *cta) {
    struct soft_inits *inits = cta->inits;
    if (inits == NULL || inits->count == inits->room) {
        uint32_t room = inits == NULL ? 16 : 2 * inits->room;
        inits = realloc(inits, sizeof *inits + room * sizeof inits->items[0]);
        if (inits == NULL) return NULL;
        if (cta->inits == NULL) inits->count = 0;
        inits->room = room;
        cta->inits = inits;
    }
    return &inits->items[inits->count++];
}

void soft_init_note(struct soft_warp *warp, uint32_t lane, uint32_t offset) {
    struct soft_cta *cta = warp->cta;
    if (cta->cluster == NULL || !soft_options()->check_sync) return;
    struct init *init = mbarrier_init_find(cta, offset);
    if (init == NULL) init = mbarrier_init_add(cta);
    if (init == NULL) return;
    *init = (struct init){.offset = offset, .warp = warp->index, .lane = lane, .state = NEW};
}

static bool is_by(const struct init *init, const struct soft_warp *warp) {
    return init->warp == warp->index && (warp->mask >> init->lane & 1) != 0;
}

/* Other threads pass on the initialisations of an exited thread. */
static bool is_orphan(const struct soft_cta *cta, const struct init *init) {
    return (cta->warps[init->warp].alive >> init->lane & 1) == 0;
}

/* A fence of everything also passes on what its thread has learned from others. */
void soft_init_fence(struct soft_warp *warp, bool for_inits) {
    struct soft_inits *inits = warp->cta->inits;
    for (uint32_t i = 0; inits != NULL && i < inits->count; i++) {
        struct init *init = &inits->items[i];
        if (init->state == NEW && (!for_inits || is_by(init, warp))) init->state = FENCED;
    }
}

void soft_init_arrive(struct soft_warp *warp, bool relaxed) {
    struct soft_inits *inits = warp->cta->inits;
    for (uint32_t i = 0; inits != NULL && i < inits->count; i++) {
        struct init *init = &inits->items[i];
        bool hands_on = init->state == FENCED || (init->state == NEW && !relaxed);
        bool own = is_by(init, warp) || is_orphan(warp->cta, init);
        if (hands_on && own) init->state = HANDED;
    }
}

void soft_init_open(struct soft_cta *cta) {
    struct soft_inits *inits = cta->inits;
    cta->cluster_phase++;
    for (uint32_t i = 0; inits != NULL && i < inits->count; i++) {
        struct init *init = &inits->items[i];
        if (init->state != HANDED) continue;
        init->state = KNOWN;
        init->phase = cta->cluster_phase;
    }
}

void soft_init_use(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                   const struct soft_cta *home, uint32_t offset) {
    /* Before the first barrier the block itself may not have begun, which is reported already. */
    if (!warp->cta->cluster_met) return;
    const struct init *init = mbarrier_init_find(home, offset);
    if (init == NULL) return;
    bool known = init->state == KNOWN;
    if (known && init->phase <= warp->cta->cluster_known) return;
    soft_launch_note(warp, in, "mbarrier may not be initialised", 1u << lane, offset,
                     "the mbarrier at offset 0x%x of block %u of the cluster, which thread %u of "
                     "that block has initialised %s",
                     offset, home->rank, init->warp * SOFT_LANES + init->lane,
                     init->state == NEW
                         ? "without fence.mbarrier_init.release.cluster after it"
                         : "without a barrier of the cluster after it that this block has "
                           "waited for");
}

void soft_init_begin(struct soft_cta *cta) {
    cta->cluster_phase = cta->cluster_known = 0;
    if (cta->inits != NULL) cta->inits->count = 0;
}

void soft_init_drop(struct soft_cta *cta) {
    free(cta->inits);
    cta->inits = NULL;
}

/*
 * The accesses that launches record for each other, and the report.
 */
#include "prior.h"

#include "finding.h"
#include "lower/loaded_module.h"

#include <stdio.h>
#include <stdlib.h>

/* What one grid has accessed. */
struct soft_footprint {
    _Atomic int references;
    struct soft_touched *touched;
    char kernel[80];
};

struct soft_prior {
    _Atomic int references;
    struct soft_footprint *own;
    bool can_trigger;   /* the launch's module may contain griddepcontrol */
    atomic_bool timely; /* the next grid begins after this one's own wait */
    /* Grids that its dependents are not ordered after either; known when it has ended. */
    struct soft_footprint *passed[SOFT_PRIORS_MAX];
    uint32_t passed_count;
};

static struct soft_footprint *prior_hold(struct soft_footprint *footprint) {
    atomic_fetch_add(&footprint->references, 1);
    return footprint;
}

static void prior_drop(struct soft_footprint *footprint) {
    if (atomic_fetch_sub(&footprint->references, 1) > 1) return;
    soft_touched_free(footprint->touched);
    free(footprint);
}

struct soft_prior *soft_prior_hold(struct soft_prior *prior) {
    if (prior != NULL) atomic_fetch_add(&prior->references, 1);
    return prior;
}

void soft_prior_drop(struct soft_prior *prior) {
    if (prior == NULL || atomic_fetch_sub(&prior->references, 1) > 1) return;
    for (uint32_t i = 0; i < prior->passed_count; i++) prior_drop(prior->passed[i]);
    prior_drop(prior->own);
    free(prior);
}

/* Whether a text of a launch's module may contain griddepcontrol, which needs sm_90. */
static bool prior_may_have_it(const struct soft_launch *launch) {
    for (unsigned u = 0; u < launch->module->unit_count; u++) {
        if (launch->module->units[u].ptx.target >= 90) return true;
    }
    return false;
}

void soft_prior_keep(struct soft_launch *launch) {
    if (launch->prior != NULL) return;
    struct soft_prior *prior = calloc(1, sizeof *prior);
    struct soft_footprint *own = calloc(1, sizeof *own);
    struct soft_touched *touched = soft_touched_new();
    if (prior == NULL || own == NULL || touched == NULL) {
        free(prior);
        free(own);
        soft_touched_free(touched);
        return;
    }
    *own = (struct soft_footprint){.references = 1, .touched = touched};
    snprintf(own->kernel, sizeof own->kernel, "%s", launch->code->name);
    *prior =
        (struct soft_prior){.references = 1, .own = own, .can_trigger = prior_may_have_it(launch)};
    launch->prior = prior;
}

void soft_prior_add(struct soft_launch *launch, struct soft_prior *prior) {
    if (prior == NULL || launch->after_count == SOFT_PRIORS_MAX) return;
    if (!prior->can_trigger && !prior_may_have_it(launch)) return;
    launch->after[launch->after_count++] = soft_prior_hold(prior);
}

static void prior_hide(struct soft_launch *launch, struct soft_footprint *footprint) {
    if (launch->hidden_count == SOFT_PRIORS_MAX) return;
    launch->hidden[launch->hidden_count++] = prior_hold(footprint);
}

void soft_prior_begin(struct soft_launch *launch) {
    for (uint32_t i = 0; i < launch->after_count; i++) prior_hide(launch, launch->after[i]->own);
    for (uint32_t i = 0; i < launch->after_count; i++) {
        const struct soft_prior *prior = launch->after[i];
        for (uint32_t p = 0; p < prior->passed_count; p++) prior_hide(launch, prior->passed[p]);
    }
}

void soft_prior_end(struct soft_launch *launch) {
    struct soft_prior *prior = launch->prior;
    if (prior == NULL || atomic_load(&prior->timely)) return;
    for (uint32_t i = 0; i < launch->hidden_count; i++)
        prior->passed[i] = prior_hold(launch->hidden[i]);
    prior->passed_count = launch->hidden_count;
}

void soft_prior_clear(struct soft_launch *launch) {
    for (uint32_t i = 0; i < launch->after_count; i++) soft_prior_drop(launch->after[i]);
    for (uint32_t i = 0; i < launch->hidden_count; i++) prior_drop(launch->hidden[i]);
    soft_prior_drop(launch->prior);
    launch->prior = NULL;
    launch->after_count = launch->hidden_count = 0;
}

/* ---- while it runs ---- */

void soft_prior_wait(struct soft_warp *warp) {
    warp->waited = warp->cta->waited = true;
    atomic_store(&warp->cta->launch->waited, true);
}

static void be_timely(const struct soft_launch *launch) {
    if (launch->prior != NULL) atomic_store(&launch->prior->timely, true);
}

/* Dependents begin when all CTAs have passed this point or ended: one CTA that has waited is
 * enough. */
void soft_prior_trigger(struct soft_warp *warp) {
    struct soft_cta *cta = warp->cta;
    if (cta->triggered) return;
    cta->triggered = true;
    if (warp->waited) be_timely(cta->launch);
}

void soft_prior_exit(struct soft_cta *cta) {
    if (!cta->triggered && cta->waited) be_timely(cta->launch);
}

/* The other grid's use of some bytes that this access must follow; NULL: there is none. Strong
 * accesses may overlap, and an access that has read what another wrote is ordered after it. */
static const char *find_use(const struct soft_footprint *footprint, uint64_t base, uint64_t address,
                            unsigned bytes, bool stores, bool strong, bool *met) {
    bool used[SOFT_TOUCHES];
    for (int t = 0; t < SOFT_TOUCHES; t++) {
        used[t] = soft_touched_has(footprint->touched, (enum soft_touch)t, base, address, bytes);
    }
    *met |= strong && !stores && used[SOFT_TOUCH_STRONG_WRITE];
    if (used[SOFT_TOUCH_WRITE] || (used[SOFT_TOUCH_STRONG_WRITE] && !strong)) return "writes";
    bool reads = used[SOFT_TOUCH_READ] || (used[SOFT_TOUCH_STRONG_READ] && !strong);
    return stores && reads ? "reads" : NULL;
}

static void prior_compare(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                          uint64_t base, uint64_t address, unsigned bytes, bool stores,
                          bool strong) {
    const struct soft_launch *launch = warp->cta->launch;
    bool met = false;
    for (uint32_t i = 0; i < launch->hidden_count; i++) {
        const struct soft_footprint *footprint = launch->hidden[i];
        const char *use = find_use(footprint, base, address, bytes, stores, strong, &met);
        if (use == NULL) continue;
        soft_launch_note(warp, in, "missing griddepcontrol.wait", 1u << lane, address,
                         "%s of %u bytes at 0x%llx, which kernel %s %s: this launch may begin "
                         "before that one has ended, and the thread has not waited for it",
                         stores ? "a store" : "a load", bytes, (unsigned long long)address,
                         footprint->kernel, use);
        return;
    }
    if (met) warp->waited = warp->cta->waited = true;
}

void soft_prior_access(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                       uint64_t base, uint64_t address, unsigned bytes, enum soft_touch touch) {
    struct soft_launch *launch = warp->cta->launch;
    const bool stores = touch == SOFT_TOUCH_WRITE || touch == SOFT_TOUCH_STRONG_WRITE;
    const bool strong = touch == SOFT_TOUCH_STRONG_READ || touch == SOFT_TOUCH_STRONG_WRITE;
    if (launch->hidden_count > 0) {
        /* A thread of another block may have waited and synchronised with this one. */
        if (strong && !stores && atomic_load(&launch->waited)) {
            warp->waited = warp->cta->waited = true;
        }
        if (!warp->waited) prior_compare(warp, in, lane, base, address, bytes, stores, strong);
    }
    if (launch->prior == NULL) return;
    soft_touched_add(launch->prior->own->touched, touch, base, address, bytes);
}

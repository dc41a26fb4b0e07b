/*
 * Creates and frees the race state of a launch and of each CTA that is running.
 */
#include "race_state.h"

#include "base/options.h"
#include "machine/race_events.h"

#include <stdlib.h>
#include <string.h>

static struct soft_race *new_race(const struct soft_launch *launch) {
    struct soft_race *race = calloc(1, sizeof *race);
    if (race == NULL) return NULL;
    pthread_mutex_init(&race->lock, NULL);
    race->is_strict = soft_options()->check_race_strict;
    soft_clocks_begin(&race->clocks, launch->ctas);
    race->global =
        (struct soft_pages){.chunks = &race->chunks, .record_bytes = sizeof(struct soft_cells)};
    return race;
}

static struct soft_race_cta *race_new_cta(struct soft_race *race, uint32_t warps) {
    struct soft_race_cta *own = calloc(1, sizeof *own + warps * sizeof own->warps[0]);
    if (own == NULL) return NULL;
    own->race = race;
    own->warp_count = warps;
    own->shared =
        (struct soft_pages){.chunks = &own->chunks, .record_bytes = sizeof(struct soft_cells)};
    own->next = race->ctas;
    race->ctas = own;
    return own;
}

void soft_race_prepare(struct soft_launch *launch, struct soft_cta *cta) {
    cta->race = NULL;
    if (!soft_options()->check_race || launch->ctas > UINT32_MAX) return;
    pthread_mutex_lock(&launch->lock);
    if (launch->race == NULL) launch->race = new_race(launch);
    struct soft_race *race = launch->race;
    pthread_mutex_unlock(&launch->lock);
    if (race == NULL) return;
    pthread_mutex_lock(&race->lock);
    cta->race = race->free;
    if (cta->race != NULL) {
        race->free = cta->race->free;
    } else {
        cta->race = race_new_cta(race, cta->warp_count);
    }
    /* An unchecked CTA would cause false reports about the checked ones. */
    if (cta->race == NULL) atomic_store(&race->given_up, true);
    pthread_mutex_unlock(&race->lock);
}

void soft_race_begin(struct soft_cta *cta) {
    struct soft_race_cta *own = cta->race;
    if (own == NULL) return;
    struct soft_clocks *clocks = &own->race->clocks;
    /* Lanes have something of their own only after fences and acquired clocks. */
    const bool has_own = own->acquired || own->fenced[0] || own->fenced[1];
    pthread_mutex_lock(&own->race->lock);
    own->number = (uint32_t)cta->number;
    own->time = 1;
    for (uint32_t b = 0; b < SOFT_BARRIERS; b++) soft_clock_drop(clocks, own->barriers[b].known);
    memset(own->barriers, 0, sizeof own->barriers);
    for (uint32_t w = 0; w < own->warp_count; w++) {
        struct soft_warp_order *warp = &own->warps[w];
        warp->synced = 0;
        if (warp->parted) memset(warp->lanes, 0, sizeof warp->lanes);
        warp->parted = false;
        memset(warp->warps, 0, sizeof warp->warps);
        for (int lane = 0; lane < SOFT_LANES && has_own; lane++) {
            soft_clock_drop(clocks, warp->known[lane]);
            warp->known[lane] = NULL;
            soft_clock_drop(clocks, warp->observed[lane]);
            warp->observed[lane] = NULL;
            for (int far = 0; far < 2; far++) {
                soft_clock_drop(clocks, warp->released[far][lane].clock);
                warp->released[far][lane] = (struct soft_released){0};
                warp->fenced[far][lane].time = 0;
            }
        }
    }
    soft_race_objects_begin(own);
    soft_race_proxies_begin(own);
    own->fenced[0] = own->fenced[1] = own->acquired = false;
    pthread_mutex_unlock(&own->race->lock);
}

void soft_race_give_back(struct soft_cta *cta) {
    struct soft_race_cta *own = cta->race;
    if (own == NULL) return;
    pthread_mutex_lock(&own->race->lock);
    own->free = own->race->free;
    own->race->free = own;
    pthread_mutex_unlock(&own->race->lock);
    cta->race = NULL;
}

void soft_race_end(struct soft_launch *launch) {
    struct soft_race *race = launch->race;
    if (race == NULL) return;
    while (race->ctas != NULL) {
        struct soft_race_cta *own = race->ctas;
        race->ctas = own->next;
        soft_pages_end(&own->shared);
        soft_chunks_clear(&own->chunks);
        free(own);
    }
    soft_pages_end(&race->global);
    soft_chunks_clear(&race->chunks);
    soft_clocks_end(&race->clocks);
    pthread_mutex_destroy(&race->lock);
    free(race);
    launch->race = NULL;
}

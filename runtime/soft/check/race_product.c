/*
 * Reads of shared memory by matrix products (wgmma): through the async proxy, until the wait.
 *
 * A product is one operation of four warps: once one of their threads has executed its wait, all
 * four have read their factors. So each warp's rows of A and a quarter of B are recorded as read by
 * that warp, and an access is ordered after them if it is ordered after any thread of the
 * warpgroup.
 */
#include "machine/race_events.h"
#include "async/wgmma_factor.h"
#include "race_state.h"

void soft_race_product(struct soft_warp *warp, const struct soft_wgmma_op *op, bool pending) {
    struct soft_race_cta *own = warp->cta->race;
    uint32_t offsets[SOFT_WGMMA_PART];
    if (own == NULL) return;
    uint32_t count = soft_wgmma_part(warp, op, offsets);
    struct soft_race *race = own->race;
    pthread_mutex_lock(&race->lock);
    struct soft_checked_access touch = {
        .warp = warp,
        .in = op->in,
        .race = race,
        .cta = own,
        .mark = {.cta = own->number,
                 .time = own->time,
                 .lanes = 1,
                 .site = op->in->site,
                 .warp = (uint8_t)warp->index,
                 .product = true,
                 .pending = pending,
                 .proxied = true},
        .reads = true,
        .settles = !pending,
        .bytes = SOFT_WGMMA_CHUNK,
    };
    for (uint32_t i = 0; i < count && !atomic_load(&race->given_up); i++) {
        touch.address = offsets[i];
        soft_race_touch(&touch, SOFT_SPACE_SHARED);
    }
    soft_race_note_end(&touch);
    pthread_mutex_unlock(&race->lock);
}

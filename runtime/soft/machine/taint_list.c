/*
 * The list is short, so it is searched from its begin to its end.
 */
#include "taint_list.h"

#include <stdlib.h>

struct soft_taint_slot *soft_taint_find(struct soft_taint *taint, const struct soft_frame *frame,
                                        uint32_t slot) {
    for (unsigned i = 0; i < taint->slot_count; i++) {
        struct soft_taint_slot *s = &taint->slots[i];
        if (s->slot == slot && s->frame == frame) return s;
    }
    return NULL;
}

bool soft_taint_put(struct soft_taint *taint, const struct soft_frame *frame, uint32_t slot,
                    uint32_t lanes, unsigned load) {
    struct soft_taint_slot *s = soft_taint_find(taint, frame, slot);
    if (s == NULL) {
        if (taint->slot_count == SOFT_TAINT_SLOTS) return false;
        s = &taint->slots[taint->slot_count++];
        *s = (struct soft_taint_slot){.frame = frame, .slot = slot};
    }
    s->lanes |= lanes;
    s->load = load;
    return true;
}

static void taint_remove(struct soft_taint *taint, struct soft_taint_slot *slot) {
    *slot = taint->slots[--taint->slot_count];
    if (taint->slot_count == 0) taint->load_count = 0;
}

void soft_taint_take(struct soft_taint *taint, const struct soft_frame *frame, uint32_t slot,
                     uint32_t lanes) {
    struct soft_taint_slot *s = soft_taint_find(taint, frame, slot);
    if (s == NULL) return;
    s->lanes &= ~lanes;
    if (s->lanes == 0) taint_remove(taint, s);
}

void soft_taint_forget(struct soft_warp *warp, const struct soft_frame *frame) {
    struct soft_taint *taint = warp->taint;
    if (taint == NULL) return;
    for (unsigned i = taint->slot_count; i-- > 0;) {
        if (taint->slots[i].frame == frame) taint_remove(taint, &taint->slots[i]);
    }
}

void soft_taint_clear(struct soft_warp *warp) {
    if (warp->taint != NULL) warp->taint->load_count = warp->taint->slot_count = 0;
}

void soft_taint_drop(struct soft_warp *warp) {
    free(warp->taint);
    warp->taint = NULL;
}

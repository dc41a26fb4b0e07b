/*
 * Accesses of asynchronous copies, which are pending until somebody has waited for the copy.
 *
 * A copy reads and writes at any time between the instruction that begins it and the end of the
 * wait. So it is checked at both: when it begins, against all before, and its accesses stay
 * pending, ordered with no other, not even of its own thread; and when it has been waited for,
 * from when on they are like accesses that its thread made just then.
 */
#include "machine/async.h"
#include "ops/op_body.h"
#include "machine/race_events.h"
#include "race_state.h"

static void check(struct soft_checked_access *touch, const struct soft_async_op *copy,
                  uint32_t lane, bool writes) {
    unsigned bytes = copy->bytes[lane];
    bool reduces = copy->in->op != SOFT_OP_cp_async && (copy->in->mode & SOFT_BULK_REDUCE) != 0;
    enum soft_access_space space = writes ? copy->to : copy->from;
    if (writes && copy->width > 0) bytes = copy->width;
    if (bytes == 0 || (!writes && copy->holds)) return;
    /* Of a box the rows in global memory are not looked at. */
    if (copy->in->op == SOFT_OP_cp_tensor && space == SOFT_SPACE_GLOBAL) return;
    touch->lane = lane;
    touch->mark.lanes = 1u << lane;
    touch->mark.atomic = writes && reduces;
    touch->mark.scope = touch->mark.atomic ? SOFT_SCOPE_GPU : SOFT_SCOPE_WEAK;
    touch->writes = writes;
    touch->reads = !writes || reduces;
    touch->address = writes ? copy->destination[lane] : copy->source[lane];
    touch->bytes = bytes;
    soft_race_touch(touch, space);
}

void soft_race_copy(struct soft_warp *warp, const struct soft_async_op *copy, uint32_t lanes,
                    bool pending) {
    struct soft_race_cta *own = warp->cta->race;
    if (own == NULL || copy->in->op == SOFT_OP_cp_async_arrive) return;
    struct soft_race *race = own->race;
    pthread_mutex_lock(&race->lock);
    struct soft_checked_access touch = {
        .warp = warp,
        .in = copy->in,
        .race = race,
        .cta = own,
        .mark = {.cta = own->number,
                 .time = own->time,
                 .site = copy->in->site,
                 .warp = (uint8_t)warp->index,
                 .copies = true,
                 .pending = pending,
                 .proxied = copy->in->op == SOFT_OP_cp_bulk},
        .settles = !pending,
    };
    bool gone = atomic_load(&race->given_up);
    for (uint32_t left = lanes; left != 0 && !gone; left &= left - 1) {
        check(&touch, copy, (uint32_t)__builtin_ctz(left), false);
        check(&touch, copy, (uint32_t)__builtin_ctz(left), true);
        touch.before |= touch.mark.lanes;
    }
    soft_race_note_end(&touch);
    pthread_mutex_unlock(&race->lock);
}

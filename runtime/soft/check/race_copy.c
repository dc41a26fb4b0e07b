/*
 * Accesses of asynchronous copies, which are pending until the wait.
 *
 * A copy reads and writes at any time between its instruction and the end of the wait, so it is
 * checked at both. At the instruction it is checked against all earlier accesses; then its accesses
 * are pending, ordered with no other, not even of its own thread. After the wait they count as
 * accesses that its thread made at that time.
 */
#include "async/async.h"
#include "async/tensor_walk.h"
#include "ops/op_body.h"
#include "machine/race_events.h"
#include "race_state.h"

static void touch_bytes(struct soft_checked_access *touch, uint64_t address, unsigned bytes,
                        enum soft_access_space space) {
    touch->address = address;
    touch->bytes = bytes;
    if (bytes > 0) soft_race_touch(touch, space);
}

/* A box in shared memory: whole swizzle spans, and the swizzled part of the last one. */
static void touch_box(struct soft_checked_access *touch, const struct soft_tensor_map *map,
                      uint32_t address, unsigned bytes, enum soft_access_space space) {
    unsigned whole = bytes - bytes % (map->swizzle * (unsigned)SOFT_TENSOR_CHUNK);
    touch_bytes(touch, address, whole, space);
    for (unsigned at = whole; at < bytes; at += SOFT_TENSOR_CHUNK) {
        touch_bytes(touch, soft_tensor_swizzled(map, address + at), SOFT_TENSOR_CHUNK, space);
    }
}

static void touch_rows(struct soft_checked_access *touch, const struct soft_async_op *copy) {
    struct soft_tensor_walk row;
    soft_tensor_walk_begin(&row, &copy->map, &copy->place, copy->to == SOFT_SPACE_GLOBAL);
    while (soft_tensor_walk_next(&row)) {
        touch_bytes(touch, row.address, row.bytes, SOFT_SPACE_GLOBAL);
    }
}

/* Maps are read through a separate proxy, while the copy is pending. */
static void touch_map(struct soft_checked_access *touch, const struct soft_async_op *copy,
                      uint32_t lane) {
    struct soft_checked_access map = *touch;
    map.maps = map.reads = true;
    map.lane = lane;
    map.mark.lanes = 1u << lane;
    touch_bytes(&map, copy->map_address, sizeof copy->map, SOFT_SPACE_GENERIC);
}

static void race_copy_check(struct soft_checked_access *touch, const struct soft_async_op *copy,
                            uint32_t lane, bool writes) {
    unsigned bytes = copy->bytes[lane];
    bool reduces = copy->in->op != SOFT_OP_cp_async && (copy->in->mode & SOFT_BULK_REDUCE) != 0;
    enum soft_access_space space = writes ? copy->to : copy->from;
    uint64_t address = writes ? copy->destination[lane] : copy->source[lane];
    if (writes && copy->width > 0) bytes = copy->width;
    if (bytes == 0 || (!writes && copy->holds)) return;
    touch->lane = lane;
    touch->mark.lanes = 1u << lane;
    touch->mark.atomic = writes && reduces;
    touch->mark.scope = touch->mark.atomic ? SOFT_SCOPE_GPU : SOFT_SCOPE_WEAK;
    touch->writes = writes;
    touch->reads = !writes || reduces;
    if (copy->in->op != SOFT_OP_cp_tensor) {
        touch_bytes(touch, address, bytes, space);
    } else if (space == SOFT_SPACE_GLOBAL) {
        touch_rows(touch, copy);
    } else {
        touch_box(touch, &copy->map, (uint32_t)address, bytes, space);
    }
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
                 .proxied = copy->in->op == SOFT_OP_cp_bulk || copy->in->op == SOFT_OP_cp_tensor},
        .settles = !pending,
    };
    bool gone = atomic_load(&race->given_up);
    for (uint32_t left = lanes; left != 0 && !gone; left &= left - 1) {
        if (copy->in->op == SOFT_OP_cp_tensor) {
            touch_map(&touch, copy, (uint32_t)__builtin_ctz(left));
        }
        race_copy_check(&touch, copy, (uint32_t)__builtin_ctz(left), false);
        race_copy_check(&touch, copy, (uint32_t)__builtin_ctz(left), true);
        touch.before |= touch.mark.lanes;
    }
    soft_race_note_end(&touch);
    pthread_mutex_unlock(&race->lock);
}

void soft_race_map(struct soft_warp *warp, const struct soft_instruction *in) {
    struct soft_race_cta *own = warp->cta->race;
    bool copies = in->op == SOFT_OP_map_copy;
    uint32_t lanes = copies ? warp->mask & -warp->mask : warp->mask;
    struct soft_checked_access touch = {
        .warp = warp,
        .in = in,
        .race = own->race,
        .cta = own,
        .mark = {
            .cta = own->number, .time = own->time, .site = in->site, .warp = (uint8_t)warp->index}};
    for (uint32_t left = lanes; left != 0; left &= left - 1) {
        touch.lane = (uint32_t)__builtin_ctz(left);
        touch.mark.lanes = 1u << touch.lane;
        touch.reads = true;
        touch.writes = false;
        if (copies) {
            uint32_t offset = warp->split->frame->code->operands[in->more];
            touch_bytes(&touch, SLOT(uint32_t, in->b)[touch.lane] + offset,
                        sizeof(struct soft_tensor_map), SOFT_SPACE_SHARED);
        }
        touch.writes = true;
        touch.reads = !copies;
        touch_bytes(&touch, soft_access_address(warp, in, touch.lane),
                    sizeof(struct soft_tensor_map), soft_access_space(in->mode));
        touch.before |= touch.mark.lanes;
    }
    soft_race_note_end(&touch);
}

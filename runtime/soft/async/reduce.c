/*
 * Asynchronous reductions: the memory operations of cp.reduce.async.bulk and red.async.
 *
 * Each element is a separate atomic operation, so atom's handler executes it: 32 elements at a time
 * are put into a temporary frame, as the lanes of a warp.
 */
#include "async.h"

#include "lower/core.h"
#include "ptx/ptx.h"
#include "machine/warp.h"

#include <string.h>

enum {
    PLACE_ADDRESS = 0,
    PLACE_VALUE = SOFT_WIDE_SLOT_BYTES,
    PLACE_END = 2 * SOFT_WIDE_SLOT_BYTES
};

/* Puts one element and its address into the frame. */
static void reduce_put(uint8_t *slots, unsigned lane, uint64_t address, bool wide_address,
                       const uint8_t *value, unsigned bytes) {
    uint32_t narrow = (uint32_t)address;
    if (wide_address) {
        memcpy(slots + PLACE_ADDRESS + 8 * (size_t)lane, &address, 8);
    } else {
        memcpy(slots + PLACE_ADDRESS + 4 * (size_t)lane, &narrow, 4);
    }
    uint64_t wide = 0;
    memcpy(&wide, value, bytes);
    memcpy(slots + PLACE_VALUE + (bytes == 8 ? 8 : 4) * (size_t)lane, &wide, bytes == 8 ? 8 : 4);
}

void soft_reduce(struct soft_warp *warp, const struct soft_async_op *copy, uint64_t address,
                 const uint8_t *values, unsigned bytes) {
    _Alignas(64) uint8_t slots[PLACE_END];
    enum ptx_modifier type = (enum ptx_modifier)(copy->in->mode >> SOFT_BULK_TYPE_SHIFT);
    unsigned each = ptx_types[type].bits / 8u;
    bool global = copy->to == SOFT_SPACE_GLOBAL;
    uint32_t operands[2] = {copy->in->mode >> SOFT_BULK_OPERATION_SHIFT & 0xff, (uint32_t)type};
    struct soft_code code = {.operands = operands};
    struct soft_frame frame = {.slots = slots, .code = &code};
    struct soft_split split = {.frame = &frame}, *current = warp->split;
    const struct soft_instruction joint = {
        .op = SOFT_OP_atom,
        .a = PLACE_ADDRESS,
        .b = PLACE_VALUE,
        .c = PLACE_VALUE,
        .site = copy->in->site,
        .mode = each | 1 << SOFT_ACCESS_COUNT_SHIFT | SOFT_ACCESS_STORE | SOFT_ACCESS_NO_RESULT |
                (uint32_t)copy->to << SOFT_ACCESS_SPACE_SHIFT |
                (global ? SOFT_ACCESS_WIDE_ADDRESS : 0) | (each == 8 ? SOFT_ACCESS_WIDE_DATA : 0)};
    uint8_t *own_slots = warp->slots;
    uint32_t own_mask = warp->mask;
    warp->split = &split;
    warp->slots = slots;
    for (unsigned at = 0; at < bytes;) {
        unsigned lane = 0;
        for (; lane < SOFT_LANES && at < bytes; lane++, at += each) {
            reduce_put(slots, lane, address + at, global, values + at, each);
        }
        soft_warp_set_mask(warp, lane == SOFT_LANES ? UINT32_MAX : (1u << lane) - 1);
        soft_core()->run[SOFT_OP_atom][warp->partial](warp, &joint);
    }
    warp->split = current;
    warp->slots = own_slots;
    soft_warp_set_mask(warp, own_mask);
}

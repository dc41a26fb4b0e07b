/*
 * Bulk copies: one thread copies a contiguous range of shared or global memory. Source: PTX ISA
 * 9.0, section 9.7.9.25.4 (cp.async.bulk).
 *
 * Copies into shared memory signal an mbarrier with the number of bytes; copies into global memory
 * form groups that their thread waits for. Both are executed as late as other asynchronous copies.
 */
#include "async.h"

#include "tollens/cuda_abi.h"
#include "machine/cluster_member.h"
#include "machine/finding.h"
#include "machine/race_events.h"
#include "mbarrier.h"
#include "ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16 };

/* more: the source's offset; then, if present, the mbarrier's address and offset, and the mask of
 * the destination blocks. */
enum { MORE_OFFSET, MORE_MBARRIER, MORE_MBARRIER_OFFSET, MORE_BLOCKS };

/* The same of a store. */
enum { STORE_MBARRIER, STORE_MBARRIER_OFFSET, STORE_VALUES };

static uint64_t address_at(const struct soft_warp *warp, uint32_t slot, uint32_t lane,
                           int64_t offset, enum soft_access_space space) {
    if (space == SOFT_SPACE_SHARED || space == SOFT_SPACE_CLUSTER)
        return (uint32_t)(SLOT(uint32_t, slot)[lane] + (uint64_t)offset);
    return SLOT(uint64_t, slot)[lane] + (uint64_t)offset;
}

uint32_t soft_async_in_block(struct soft_cta *cta, uint32_t rank, uint64_t address) {
    uint32_t offset = 0;
    (void)soft_cluster_find(cta, (uint32_t)address, &offset);
    return soft_cluster_name(cta, soft_cluster_member(cta, rank), offset);
}

bool soft_async_blocks(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                       uint32_t mask, uint32_t *blocks) {
    uint32_t count = soft_cluster_count(warp->cta);
    *blocks = mask & UINT16_MAX;
    if (*blocks != 0 && *blocks >> count == 0) return true;
    soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, 0,
                     "a multicast copy to the blocks 0x%x of a cluster of %u", *blocks, count);
    return false;
}

bool soft_async_find_mbarrier(struct soft_warp *warp, const struct soft_instruction *in,
                              struct soft_async_op *copy, uint32_t lane, uint64_t address) {
    uint32_t offset = 0;
    if (!soft_mbarrier_find(warp, in, lane, address, copy->to, &copy->mbarrier[lane])) return false;
    if (soft_cluster_find(warp->cta, (uint32_t)copy->destination[lane], &offset) ==
        soft_cluster_find(warp->cta, copy->mbarrier[lane], &offset)) {
        return true;
    }
    soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, 0,
                     "%s one block's shared memory and an mbarrier of another",
                     in->op == SOFT_OP_st_async ? "a store to" : "a copy into");
    return false;
}

static bool bulk_add_lane(struct soft_warp *warp, const struct soft_instruction *in,
                          struct soft_async_op *copy, uint32_t lane, uint32_t rank) {
    const uint32_t *more = warp->split->frame->code->operands + in->more;
    uint32_t bytes = SLOT(uint32_t, in->c)[lane];
    copy->destination[lane] = address_at(warp, in->a, lane, in->u.immediate, copy->to);
    copy->source[lane] = address_at(warp, in->b, lane, (int32_t)more[MORE_OFFSET], copy->from);
    copy->bytes[lane] = bytes;
    copy->mask |= 1u << lane;
    if (bytes % ALIGNMENT != 0) {
        soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, 0,
                         "a bulk copy of %u bytes, which is not a multiple of 16", bytes);
        return false;
    }
    if ((in->mode & SOFT_BULK_GROUP) != 0) return true;
    uint64_t object =
        address_at(warp, more[MORE_MBARRIER], lane, (int32_t)more[MORE_MBARRIER_OFFSET], copy->to);
    if ((in->mode & SOFT_BULK_MULTICAST) != 0) {
        copy->destination[lane] = soft_async_in_block(warp->cta, rank, copy->destination[lane]);
        object = soft_async_in_block(warp->cta, rank, object);
    }
    return soft_async_find_mbarrier(warp, in, copy, lane, object);
}

/* The copy of a lane, into one block. */
static bool bulk_begin_copy(struct soft_warp *warp, const struct soft_instruction *in,
                            uint32_t lane, uint32_t rank) {
    bool grouped = (in->mode & SOFT_BULK_GROUP) != 0;
    unsigned list = grouped ? SOFT_COPIES_BULK : SOFT_COPIES_MBARRIER;
    struct soft_async_op *copy = soft_async_op_new(warp, in);
    if (copy == NULL) return false;
    copy->group = warp->async->lists[list].committed[lane];
    copy->to = grouped                               ? SOFT_SPACE_GLOBAL
               : (in->mode & SOFT_BULK_CLUSTER) != 0 ? SOFT_SPACE_CLUSTER
                                                     : SOFT_SPACE_SHARED;
    copy->from = in->mode & SOFT_BULK_FROM_GLOBAL ? SOFT_SPACE_GLOBAL : SOFT_SPACE_SHARED;
    copy->alignment = ALIGNMENT;
    copy->width = 0;
    if (!bulk_add_lane(warp, in, copy, lane, rank)) {
        free(copy);
        return false;
    }
    return soft_async_op_check(warp, copy, lane) && soft_async_op_begin(warp, copy, list);
}

const struct soft_instruction *soft_bulk_copy(struct soft_warp *warp,
                                              const struct soft_instruction *in) {
    const uint32_t *more = warp->split->frame->code->operands + in->more;
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left), blocks = 1;
        if ((in->mode & SOFT_BULK_MULTICAST) != 0 &&
            !soft_async_blocks(warp, in, lane, SLOT(uint32_t, more[MORE_BLOCKS])[lane], &blocks)) {
            return NULL;
        }
        for (uint32_t rest = blocks; rest != 0; rest &= rest - 1) {
            if (!bulk_begin_copy(warp, in, lane, (uint32_t)__builtin_ctz(rest))) return NULL;
        }
    }
    return in + 1;
}

/* The components of a store, in memory order. */
static void bulk_hold(const struct soft_warp *warp, const struct soft_instruction *in,
                      struct soft_async_op *copy, uint32_t lane) {
    const uint32_t *values = warp->split->frame->code->operands + in->more + STORE_VALUES;
    unsigned count = in->mode >> SOFT_BULK_COUNT_SHIFT & 0xf;
    unsigned each = ptx_types[in->mode >> SOFT_BULK_TYPE_SHIFT].bits / 8u;
    uint64_t held[2] = {0, 0};
    for (unsigned i = 0; i < count; i++) {
        memcpy((uint8_t *)held + (size_t)i * each, warp->slots + values[i] + (size_t)each * lane,
               each);
    }
    copy->source[lane] = held[0];
    copy->high[lane] = held[1];
    copy->bytes[lane] = each * count;
}

const struct soft_instruction *soft_bulk_store(struct soft_warp *warp,
                                               const struct soft_instruction *in) {
    const uint32_t *more = warp->split->frame->code->operands + in->more;
    struct soft_async_op *copy = soft_async_op_new(warp, in);
    if (copy == NULL) return NULL;
    copy->to = SOFT_SPACE_CLUSTER;
    copy->holds = true;
    copy->width = 0;
    copy->mask = warp->mask;
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        uint64_t object = address_at(warp, more[STORE_MBARRIER], lane,
                                     (int32_t)more[STORE_MBARRIER_OFFSET], SOFT_SPACE_CLUSTER);
        bulk_hold(warp, in, copy, lane);
        copy->alignment = copy->bytes[lane];
        copy->destination[lane] = address_at(warp, in->a, lane, in->u.immediate, SOFT_SPACE_SHARED);
        if (!soft_async_find_mbarrier(warp, in, copy, lane, object)) {
            free(copy);
            return NULL;
        }
        if (!soft_async_op_check(warp, copy, lane)) return NULL;
        copy->known[lane] = soft_race_known(warp, lane);
    }
    soft_race_go_on(warp->cta);
    return soft_async_op_begin(warp, copy, SOFT_COPIES_MBARRIER) ? in + 1 : NULL;
}

/*
 * Blocks of the heap, counted by context. Source: CUDA Programming Guide, "Dynamic Global Memory
 * Allocation and Operations".
 */
#include "heap.h"

#include "tollens/cuda_abi.h"
#include "base/round_up.h"
#include "finding.h"
#include "memory/maker.h"
#include "race_events.h"
#include "memory/space.h"

#include <string.h>

/* The alignment of malloc's addresses, and the granularity of the limit. */
enum { ALIGNMENT = 16 };

static _Atomic uint64_t used[SOFT_REACH_SLOTS];

static uint64_t heap_take(const struct soft_reach *reach, uint64_t bytes) {
    uint64_t limit = atomic_load(&reach->heap_bytes), cost = soft_round_up(bytes, ALIGNMENT);
    if (bytes == 0 || bytes > limit) return 0;
    if (atomic_fetch_add(&used[reach->slot], cost) + cost <= limit) {
        const struct soft_allocation wanted = {
            .bytes = bytes, .kind = SOFT_KIND_HEAP, .device = reach->device, .slot = reach->slot};
        /* No driver call makes it but a kernel, whichever thread waits for that kernel. */
        const struct soft_maker call = soft_maker;
        soft_maker = (struct soft_maker){.function = NULL};
        struct soft_allocation *block = soft_space_alloc(&wanted, ALIGNMENT);
        soft_maker = call;
        if (block != NULL) return block->address;
    }
    atomic_fetch_sub(&used[reach->slot], cost);
    return 0;
}

static uint64_t heap_argument(const struct soft_warp *warp, const struct soft_instruction *in,
                              uint32_t lane) {
    uint64_t value;
    uint32_t slot = warp->split->frame->code->operands[in->more];
    memcpy(&value, warp->slots + slot + 8 * (size_t)lane, sizeof value);
    return value;
}

const struct soft_instruction *soft_heap_malloc(struct soft_warp *warp,
                                                const struct soft_instruction *in) {
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        uint64_t address = heap_take(warp->cta->launch->reach, heap_argument(warp, in, lane));
        memcpy(warp->slots + in->d + 8 * (size_t)lane, &address, sizeof address);
    }
    return in + 1;
}

/* The cached ranges of accesses may be the freed memory: they are looked up again. Other host
 * threads do so at their next turn; the bytes are kept until then. */
static void forget_views(struct soft_warp *warp) {
    const struct soft_launch *launch = warp->cta->launch;
    memset(warp->views, 0, (size_t)2 * launch->code->sites * sizeof *warp->views);
}

const struct soft_instruction *soft_heap_free(struct soft_warp *warp,
                                              const struct soft_instruction *in) {
    const struct soft_reach *reach = warp->cta->launch->reach;
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        uint64_t address = heap_argument(warp, in, lane);
        struct soft_allocation was;
        if (address == 0) continue;
        if (!soft_space_free(address, 1u << SOFT_KIND_HEAP, &was)) {
            char nearest[240];
            soft_space_describe(address, reach, SOFT_ACCESS_WRITE, nearest, sizeof nearest);
            return soft_launch_fail(warp, in, CUDA_ERROR_LAUNCH_FAILED, 1u << lane, address,
                                    "free of 0x%llx, which is not a block of the heap: %s",
                                    (unsigned long long)address, nearest);
        }
        atomic_fetch_sub(&used[was.slot], soft_round_up(was.bytes, ALIGNMENT));
        forget_views(warp);
        soft_race_freed(warp, was.address, was.bytes);
    }
    return in + 1;
}

void soft_heap_forget(unsigned slot) {
    atomic_store(&used[slot], 0);
}

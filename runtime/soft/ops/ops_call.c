/*
 * Calls and returns, parameters on their way, branches by table. Source: PTX ISA 9.0, sections
 * 9.7.12.4 (brx.idx), 9.7.12.5 (call), 9.7.12.6 (ret), 9.7.15 (stack manipulation).
 */
#include "machine/access.h"
#include "machine/frame_call.h"
#include "machine/heap.h"
#include "op_body.h"
#include "machine/print.h"

#include "tollens/cuda_abi.h"
#include "machine/finding.h"
#include "machine/warp.h"

OP_ANY(call) {
    warp->executed += (int32_t)in->d;
    return soft_call(warp, in);
}

OP_ANY(call_indirect) {
    warp->executed += (int32_t)in->d;
    return soft_call_indirect(warp, in);
}

OP_ANY(ret) {
    warp->executed += (int32_t)in->d;
    return soft_return(warp, in);
}

/* more: how many targets, and the number of each one's instruction. */
OP_ANY(brx) {
    const struct soft_code *code = warp->split->frame->code;
    const struct soft_instruction *begin = code->instructions;
    const uint32_t *index = SLOT(uint32_t, in->a), *table = SOFT_OPERANDS(warp, in);
    const struct soft_instruction *targets[SOFT_LANES];
    uint32_t differ = 0, first = index[__builtin_ctz(warp->mask)], outside = 0;
    EACH_LANE(i, warp->mask) {
        differ |= index[i] ^ first;
        outside |= (uint32_t)(index[i] >= table[0]) << i;
        targets[i] = begin + (index[i] < table[0] ? table[1 + index[i]] : 0);
    }
    if (outside != 0) {
        return soft_launch_fail(warp, in, CUDA_ERROR_LAUNCH_FAILED, outside, 0,
                                "target %u of a table with %u targets",
                                index[__builtin_ctz(outside)], table[0]);
    }
    const struct soft_instruction *next = begin + table[1 + first];
    if (differ != 0) {
        next = soft_warp_scatter(warp, in, targets);
    } else {
        warp->executed += (int32_t)in->d - (int64_t)soft_code_number(code, next);
    }
    if (next > in) return next;
    if (--warp->quantum <= 0) return soft_warp_stop(warp, SOFT_STOP_YIELD, next);
    return next;
}

/* A parameter of a call has a number of bytes per lane, lanes in order in its slot. The immediate:
 * the offset in them, and in its upper bits their number. */
OP_ANY(ld_param) {
    unsigned bytes = soft_access_bytes(in->mode), count = soft_access_count(in->mode);
    uint32_t offset = (uint32_t)in->u.immediate, stride = (uint32_t)(in->u.immediate >> 32);
    const uint8_t *from = SLOT(uint8_t, in->a) + offset;
    for (unsigned k = 0; k < count; k++, from += bytes) {
        uint32_t slot = count == 1 ? in->d : SOFT_OPERANDS(warp, in)[k];
        EACH_LANE(i, warp->mask) {
            uint64_t value = 0;
            memcpy(&value, from + (size_t)stride * i, bytes);
            if (in->mode & SOFT_ACCESS_SIGNED) {
                unsigned shift = 64 - 8 * bytes;
                value = (uint64_t)((int64_t)(value << shift) >> shift);
            }
            if (in->mode & SOFT_ACCESS_WIDE_DATA) {
                SLOT(uint64_t, slot)[i] = value;
            } else {
                uint32_t narrow = (uint32_t)value;
                SLOT(uint32_t, slot)
                [i] = in->mode & SOFT_ACCESS_SHORT_DATA ? narrow & 0xffff : narrow;
            }
        }
    }
    return in + 1;
}

OP_ANY(st_param) {
    unsigned bytes = soft_access_bytes(in->mode), count = soft_access_count(in->mode);
    uint32_t offset = (uint32_t)in->u.immediate, stride = (uint32_t)(in->u.immediate >> 32);
    uint8_t *to = SLOT(uint8_t, in->d) + offset;
    for (unsigned k = 0; k < count; k++, to += bytes) {
        uint32_t slot = SOFT_OPERANDS(warp, in)[k];
        EACH_LANE(i, warp->mask) {
            uint64_t value = in->mode & SOFT_ACCESS_WIDE_DATA ? SLOT(uint64_t, slot)[i]
                                                              : SLOT(uint32_t, slot)[i];
            memcpy(to + (size_t)stride * i, &value, bytes);
        }
    }
    return in + 1;
}

/* A parameter whose address is taken moves to local memory: a is where it was, b the local address;
 * the immediate is its bytes. */
OP_ANY(spill_param) {
    uint32_t bytes = (uint32_t)in->u.immediate;
    EACH_LANE(i, warp->mask) {
        struct soft_place place;
        if (!soft_access_find(warp, in, i, SLOT(uint64_t, in->b)[i], 1, SOFT_SPACE_LOCAL, &place)) {
            return NULL;
        }
        memcpy(place.host, SLOT(uint8_t, in->a) + (size_t)bytes * i, bytes);
        soft_shadow_mark(place.shadow, place.offset, bytes);
    }
    return in + 1;
}

OP_ANY(alloca) {
    return soft_alloca_take(warp, in);
}

OP_ANY(stacksave) {
    return soft_alloca_save(warp, in);
}

OP_ANY(stackrestore) {
    return soft_alloca_restore(warp, in);
}

OP_ANY(vprintf) {
    return soft_print(warp, in);
}

OP_ANY(malloc) {
    return soft_heap_malloc(warp, in);
}

OP_ANY(free) {
    return soft_heap_free(warp, in);
}

OP_ANY(assertfail) {
    return soft_print_assertion(warp, in);
}

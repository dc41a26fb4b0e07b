/*
 * Function calls: arguments are copied from the caller's frame into the callee's, lane by lane if
 * not all take part; results are copied back. Source: PTX ISA 9.0, sections 7 (Abstracting the ABI)
 * and 9.7.12.5 (call).
 */
#include "frame_call.h"

#include "tollens/cuda_abi.h"
#include "finding.h"
#include "lower/loaded_module.h"
#include "warp.h"

#include <string.h>

/* Copies what is passed from one frame to another, for the lanes of a mask. */
static void frame_call_pass(uint8_t *to, const uint8_t *from, uint32_t bytes, uint32_t mask) {
    if (bytes == SOFT_PASSED_PREDICATE) {
        uint32_t old, bits;
        memcpy(&old, to, sizeof old);
        memcpy(&bits, from, sizeof bits);
        old = (old & ~mask) | (bits & mask);
        memcpy(to, &old, sizeof old);
    } else if (mask == UINT32_MAX) {
        memcpy(to, from, (size_t)bytes * SOFT_LANES);
    } else {
        for (uint32_t left = mask; left != 0; left &= left - 1) {
            size_t at = (size_t)bytes * (size_t)__builtin_ctz(left);
            memcpy(to + at, from + at, bytes);
        }
    }
}

/* The operands of a call. */
struct passing {
    const uint32_t *arguments, *results; /* bytes and slots, in turn */
    uint32_t argument_count, result_count;
};

static struct passing passing_of(const struct soft_frame *caller,
                                 const struct soft_instruction *in) {
    const uint32_t *more = caller->code->operands + in->more;
    const uint32_t *results = more + 1 + 2 * more[0];
    return (struct passing){.arguments = more + 1,
                            .argument_count = more[0],
                            .results = results + 1,
                            .result_count = results[0]};
}

/* A frame for some lanes of the current split, with their arguments in it. NULL: the launch has
 * failed. */
static struct soft_frame *frame_call_enter(struct soft_warp *warp,
                                           const struct soft_instruction *in,
                                           const struct soft_code *callee, uint32_t lanes) {
    struct soft_frame *caller = warp->split->frame;
    const char *why = "";
    struct soft_frame *frame = soft_frame_take(warp, caller, callee, &why);
    if (frame == NULL) {
        soft_launch_fail(warp, in, CUDA_ERROR_HARDWARE_STACK_ERROR, lanes, 0,
                         "%s: call of %s at depth %u", why, callee->name, caller->depth + 1);
        return NULL;
    }
    frame->resume = in + 1;
    struct passing passing = passing_of(caller, in);
    for (uint32_t i = 0; i < passing.argument_count; i++) {
        const struct soft_passed *formal = &callee->arguments[i];
        if (formal->slot == 0) continue;
        frame_call_pass(frame->slots + formal->slot, caller->slots + passing.arguments[2 * i + 1],
                        formal->bytes, lanes);
    }
    return frame;
}

/* The whole current split enters a call. */
static const struct soft_instruction *go_into(struct soft_warp *warp, struct soft_frame *frame) {
    struct soft_frame *caller = warp->split->frame;
    warp->split->frame = frame;
    warp->slots = frame->slots;
    soft_frame_release(warp, caller); /* the callee's frame is a user instead of the split */
    /* A recursion is a loop as well. */
    warp->quantum--;
    return frame->code->instructions;
}

const struct soft_instruction *soft_call(struct soft_warp *warp,
                                         const struct soft_instruction *in) {
    struct soft_frame *frame = frame_call_enter(warp, in, in->u.callee, warp->mask);
    return frame != NULL ? go_into(warp, frame) : NULL;
}

/* Whether a function's parameters and results match the call. */
static bool frame_call_fits(const struct soft_code *callee, const struct passing *passing) {
    if (callee->argument_count != passing->argument_count ||
        callee->result_count != passing->result_count) {
        return false;
    }
    for (uint32_t i = 0; i < passing->argument_count; i++) {
        if (callee->arguments[i].bytes != passing->arguments[2 * i]) return false;
    }
    for (uint32_t i = 0; i < passing->result_count; i++) {
        if (callee->results[i].bytes != passing->results[2 * i]) return false;
    }
    return true;
}

const struct soft_instruction *soft_call_indirect(struct soft_warp *warp,
                                                  const struct soft_instruction *in) {
    struct soft_split *split = warp->split;
    const uint64_t *addresses = (const uint64_t *)(const void *)(warp->slots + in->a);
    for (;;) {
        uint64_t address = addresses[__builtin_ctz(split->mask)];
        uint32_t lanes = 0;
        for (uint32_t left = split->mask; left != 0; left &= left - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(left);
            if (addresses[lane] == address) lanes |= 1u << lane;
        }
        const struct soft_code *callee = soft_module_function(warp->cta->launch->module, address);
        if (callee == NULL) {
            return soft_launch_fail(warp, in, CUDA_ERROR_INVALID_PC, lanes, address,
                                    "a call to 0x%llx, which is not the address of a function",
                                    (unsigned long long)address);
        }
        struct passing passing = passing_of(split->frame, in);
        if (!frame_call_fits(callee, &passing)) {
            return soft_launch_fail(
                warp, in, CUDA_ERROR_LAUNCH_FAILED, lanes, address,
                "the arguments or results of this call do not match the function %s", callee->name);
        }
        struct soft_frame *frame = frame_call_enter(warp, in, callee, lanes);
        if (frame == NULL) return NULL;
        if (lanes == split->mask) {
            soft_warp_set_mask(warp, lanes);
            return go_into(warp, frame);
        }
        /* Lanes with other functions diverge here and reconverge after the call. */
        soft_warp_open_join(warp, in->target);
        split->mask &= ~lanes;
        struct soft_split *other = soft_warp_split(warp);
        *other = *split;
        other->mask = lanes;
        other->frame = frame;
        other->pc = callee->instructions;
    }
}

const struct soft_instruction *soft_return(struct soft_warp *warp,
                                           const struct soft_instruction *in) {
    struct soft_split *split = warp->split;
    struct soft_frame *frame = split->frame, *caller = frame->caller;
    const struct soft_instruction *next = frame->resume;
    struct passing passing = passing_of(caller, next - 1);
    (void)in;
    for (uint32_t i = 0; i < passing.result_count; i++) {
        const struct soft_passed *formal = &frame->code->results[i];
        frame_call_pass(caller->slots + passing.results[2 * i + 1], frame->slots + formal->slot,
                        formal->bytes, warp->mask);
    }
    split->frame = caller;
    warp->executed -= soft_code_number(caller->code, next);
    caller->users++;
    warp->slots = caller->slots;
    soft_frame_release(warp, frame);
    if (--warp->quantum <= 0) return soft_warp_stop(warp, SOFT_STOP_YIELD, next);
    return next;
}

/* An operand of 32 or 64 bits, as mode says. */
static uint64_t frame_call_read_lane(const struct soft_warp *warp, uint32_t slot, uint32_t lane,
                                     bool wide) {
    uint64_t value = 0;
    memcpy(&value, warp->slots + slot + lane * (wide ? 8u : 4u), wide ? 8 : 4);
    return value;
}

static void write_lane(struct soft_warp *warp, uint32_t slot, uint32_t lane, bool wide,
                       uint64_t value) {
    memcpy(warp->slots + slot + lane * (wide ? 8u : 4u), &value, wide ? 8 : 4);
}

static const struct soft_instruction *
no_room(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane, uint64_t bytes) {
    return soft_launch_fail(warp, in, CUDA_ERROR_HARDWARE_STACK_ERROR, 1u << lane, 0,
                            "an alloca of %llu bytes: a call can allocate at most %d bytes",
                            (unsigned long long)bytes, SOFT_ALLOCA_MAX);
}

const struct soft_instruction *soft_alloca_take(struct soft_warp *warp,
                                                const struct soft_instruction *in) {
    struct soft_frame *frame = warp->split->frame;
    struct soft_alloca *allocas = soft_frame_allocas(frame);
    uint64_t base = soft_alloca_base(frame), alignment = (uint64_t)in->u.immediate;
    bool wide = in->mode != 0;
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        uint64_t bytes = frame_call_read_lane(warp, in->a, lane, wide);
        if (allocas == NULL || bytes > SOFT_ALLOCA_MAX) return no_room(warp, in, lane, bytes);
        uint64_t at = (base + allocas->top[lane] + alignment - 1) / alignment * alignment - base;
        if (!soft_alloca_grow(allocas, lane, at + bytes)) return no_room(warp, in, lane, bytes);
        write_lane(warp, in->d, lane, wide, base + at);
    }
    return in + 1;
}

const struct soft_instruction *soft_alloca_save(struct soft_warp *warp,
                                                const struct soft_instruction *in) {
    const struct soft_alloca *allocas = soft_frame_allocas(warp->split->frame);
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        if (allocas == NULL) return no_room(warp, in, lane, 0);
        write_lane(warp, in->d, lane, in->mode != 0, allocas->top[lane]);
    }
    return in + 1;
}

const struct soft_instruction *soft_alloca_restore(struct soft_warp *warp,
                                                   const struct soft_instruction *in) {
    struct soft_alloca *allocas = soft_frame_allocas(warp->split->frame);
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        uint64_t top = frame_call_read_lane(warp, in->a, lane, in->mode != 0);
        if (allocas == NULL || top > allocas->top[lane]) {
            return soft_launch_fail(warp, in, CUDA_ERROR_HARDWARE_STACK_ERROR, 1u << lane, 0,
                                    "stackrestore to a stack position that was never reached");
        }
        allocas->top[lane] = (uint32_t)top;
    }
    return in + 1;
}

/*
 * Frames: the registers and local memory of calls. See struct soft_frame in machine_state.h.
 *
 * A kernel's own frames belong to its CTA. Frames of called functions are created on demand, and
 * the warp keeps them for the next call of the same function, so a call costs little more than
 * copying its arguments.
 */
#ifndef SOFT_FRAME_H
#define SOFT_FRAME_H

#include "machine_state.h"
#include "ptx/ptx.h"

/* The value, for a thread of a warp, of a special register that is the same in every block of a
 * launch. */
uint32_t soft_special_at(const struct soft_warp *warp, enum ptx_special special, uint32_t lane);

/* Fills the slots of a frame that do not change during a launch; the second function, those that
 * depend on the CTA. */
void soft_frame_fill(struct soft_warp *warp, struct soft_frame *frame);
void soft_frame_fill_cta(struct soft_warp *warp, struct soft_frame *frame);

/* A frame for a call of code from a frame, with one user; the caller gets one more user. NULL: the
 * stack is full or the host is out of memory, and *why says which. */
struct soft_frame *soft_frame_take(struct soft_warp *warp, struct soft_frame *caller,
                                   const struct soft_code *code, const char **why);

/* Removes a user; removing the last one frees the frame, and a user of its caller. */
void soft_frame_release(struct soft_warp *warp, struct soft_frame *frame);

/* Frees the frames and joins that a warp has allocated besides its first ones. */
void soft_warp_drop(struct soft_warp *warp);

/* Memory that a call of a thread got by alloca: the local addresses from base to top; stackrestore
 * resets top to the value of stacksave. */
enum { SOFT_ALLOCA_MAX = 1 << 20, SOFT_LOCAL_GAP = 256 };
struct soft_alloca {
    uint8_t *bytes[SOFT_LANES];
    uint32_t room[SOFT_LANES], top[SOFT_LANES];
};

/* The local address where a call's allocas begin. */
static inline uint64_t soft_alloca_base(const struct soft_frame *frame) {
    return frame->local_base + (frame->code->local_bytes + 15u) / 16 * 16 + SOFT_LOCAL_GAP;
}

/* The allocas of a frame, made at the first use; NULL without memory. */
struct soft_alloca *soft_frame_allocas(struct soft_frame *frame);

/* Reserves a lane's bytes up to a top. false: too many, or no memory. */
bool soft_alloca_grow(struct soft_alloca *allocas, uint32_t lane, uint64_t top);

#endif

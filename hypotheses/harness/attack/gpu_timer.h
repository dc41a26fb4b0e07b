/*
 * GPU timer: how long queued work takes on the device's own clock, without what it costs to queue.
 *
 * Danger: a gate holds the stream until everything is queued. Then work runs back to back, and the
 * host's part is not in the time. But whoever waits for the stream behind a closed gate waits for
 * ever, and so does a launch that finds the driver's queue full. So:
 *   1. the function that queues work must not wait for anything on the device;
 *   2. it must not load modules or allocate, which wait on some drivers;
 *   3. calls stay below HYP_GPU_CALLS_MAX, far below the depth of any queue.
 * Where that was broken all the same, the gate opens by itself after a second of the GPU's time,
 * and the time is refused with a sentence that says so.
 *
 * Cold: before every call the L2 cache is written over, and each call is timed by itself. Rotation
 * is the other way to keep caches from flattering: every call gets another of several buffers, as
 * many as do not fit. Source: nvbench's and nvbandwidth's documentation; MEASURING.md section 1.
 */
#ifndef HYP_GPU_TIMER_H
#define HYP_GPU_TIMER_H

#include "harness/attack.h"

enum { HYP_GPU_CALLS_MAX = 64 };

struct hyp_gpu_timer {
    struct hyp_attack *attack;
    struct tol_stream *stream;
    bool is_gated, is_cold;
    struct tol_kernel *gate;
    struct tol_pinned *words; /* the gate's: open, overdue */
    struct tol_buffer *cover; /* as large as the L2 cache */
    struct tol_event *begins[HYP_GPU_CALLS_MAX], *ends[HYP_GPU_CALLS_MAX];
    uint64_t gate_limit_ns;
};

/* Makes ready; ends with hyp_gpu_timer_end in any case. false: a violation was noted. */
bool hyp_gpu_timer_begin(struct hyp_attack *attack, bool is_gated, bool is_cold,
                         struct hyp_gpu_timer *timer);

/*
 * Queues calls and gives the nanoseconds that they took together on the device, or a negative
 * number, with a violation noted. queue is called for each, with its number from 0, and gives
 * whether it could be queued.
 */
double hyp_gpu_timer_run(struct hyp_gpu_timer *timer, unsigned calls,
                         bool (*queue)(void *user, struct tol_stream *stream, unsigned call),
                         void *user);

void hyp_gpu_timer_end(struct hyp_gpu_timer *timer);

/* How many buffers of so many bytes to go round in, so that none is in the L2 cache when its turn
 * comes again: at least 2, at most 256. */
unsigned hyp_gpu_rotation(const struct tol_device *device, size_t bytes);

#endif

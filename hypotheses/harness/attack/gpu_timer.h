/*
 * GPU timer: times queued work on the device's own clock, without the cost of queueing it.
 *
 * Danger: a gate blocks the stream until everything is queued. The work then runs back to back, and
 * the time excludes the host. But waiting for the stream while the gate is closed never returns,
 * and neither does a launch if the driver's queue is full. Therefore:
 *   1. the function that queues work must not wait for anything on the device;
 *   2. it must not load modules or allocate, which wait on some drivers;
 *   3. calls stay below HYP_GPU_CALLS_MAX, far below the depth of any queue.
 * If a rule is broken, the gate opens by itself after a second of GPU time, and the measurement is
 * rejected with a message.
 *
 * Cold: the L2 cache is overwritten before every call, and each call is timed separately. Rotation
 * is the other way to avoid cached data: each call uses another of several buffers, which together
 * exceed the cache.
 * Source: nvbench's and nvbandwidth's documentation; MEASURING.md section 1.
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
    struct tol_pinned *words; /* of the gate: open, overdue */
    struct tol_buffer *cover; /* as large as the L2 cache */
    struct tol_event *begins[HYP_GPU_CALLS_MAX], *ends[HYP_GPU_CALLS_MAX];
    uint64_t gate_limit_ns;
};

/* Prepares a timer. Call hyp_gpu_timer_end in any case. false: a violation was recorded. */
bool hyp_gpu_timer_begin(struct hyp_attack *attack, bool is_gated, bool is_cold,
                         struct hyp_gpu_timer *timer);

/*
 * Queues calls and returns their total duration on the device in nanoseconds, or a negative number
 * if a violation was recorded. queue is called for each, with its number from 0, and returns
 * whether it could be queued.
 */
double hyp_gpu_timer_run(struct hyp_gpu_timer *timer, unsigned calls,
                         bool (*queue)(void *user, struct tol_stream *stream, unsigned call),
                         void *user);

void hyp_gpu_timer_end(struct hyp_gpu_timer *timer);

/* The number of buffers of this size to rotate through, so that none is still in the L2 cache when
 * it is used again: at least 2, at most 256. */
unsigned hyp_gpu_rotation(const struct tol_device *device, size_t bytes);

/* The clock rate of the multiprocessors, measured on the GPU as cycles per nanosecond of its own
 * timer: it needs no tool and no privileges. On the soft device the rate has no meaning. Keeps one
 * multiprocessor busy for this long and returns its clock in MHz; 0: a violation was recorded.
 * Measure twice: the clock of an idle GPU rises first. */
double hyp_gpu_clock_mhz(struct hyp_attack *attack, uint64_t wait_ns);

#endif

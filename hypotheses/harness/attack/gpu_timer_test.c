/*
 * The GPU timer and the GPU's clock: their mechanics, on the soft device.
 */
#include "gpu_timer.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* An attack without a runner: what it notes is looked at here. */
static struct hyp_attack attack;
static struct tol_kernel *tick;
static struct tol_pinned *count;
static volatile unsigned *counted;

static void begin(void) {
    void *data = NULL;
    cr_assert(tol_driver_open(hyp_session_soft_library(), &attack.driver) == TOL_OK, "%s",
              tol_message());
    cr_assert(tol_context_create(attack.driver, 0, &attack.context) == TOL_OK, "%s", tol_message());
    attack.raw = tol_driver_functions(attack.driver);
    tick = hyp_attack_kernel(&attack, "tick_1");
    cr_assert(tick != NULL, "%s", tol_message());
    cr_assert(tol_pinned_create(attack.context, sizeof(unsigned), &count) == TOL_OK);
    cr_assert(tol_pinned_access(count, &data) == TOL_OK);
    counted = data;
    *counted = 0;
}
TestSuite(gpu_timer, .init = begin);

/* A gate stays closed as long as a busy machine may need to queue the work after it. */
static void start(struct hyp_gpu_timer *timer, bool is_gated, bool is_cold) {
    cr_assert(hyp_gpu_timer_begin(&attack, is_gated, is_cold, timer), "%s", tol_message());
    timer->gate_limit_ns = 30000000000;
}

static unsigned seen_early; /* counted while calls were still being queued */

static bool queue_tick(void *user, struct tol_stream *stream, unsigned call) {
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)counted;
    (void)call;
    if (user != NULL) nanosleep(user, NULL);
    seen_early += *counted;
    return tol_launch(stream, tick, tol_launch_linear(1, 1), TOL_ARGUMENTS(address)) == TOL_OK;
}

/* Goal: after a gate nothing runs before all is queued. Method: queueing takes its time, and the
 * work counts where the host can see it. */
Test(gpu_timer, a_gate_holds_until_all_is_queued) {
    struct timespec pause = {.tv_nsec = 1000000};
    struct hyp_gpu_timer timer;
    start(&timer, true, false);
    for (unsigned turn = 1; turn <= 3; turn++) {
        *counted = seen_early = 0;
        double ns = hyp_gpu_timer_run(&timer, 20, queue_tick, &pause);
        cr_assert(ns >= 0, "%g: %s", ns, tol_message());
        cr_assert(seen_early == 0, "something ran after a closed gate");
        cr_assert(*counted == 20, "%u", *counted);
    }
    hyp_gpu_timer_end(&timer);
}

Test(gpu_timer, without_a_gate_all_calls_are_made) {
    struct hyp_gpu_timer timer;
    start(&timer, false, false);
    cr_assert(hyp_gpu_timer_run(&timer, HYP_GPU_CALLS_MAX, queue_tick, NULL) >= 0);
    cr_assert(*counted == HYP_GPU_CALLS_MAX, "%u", *counted);
    hyp_gpu_timer_end(&timer);
}

/* A call that is queued after the gate has timed out, whenever its thread runs. */
static bool queue_overdue(void *user, struct tol_stream *stream, unsigned call) {
    const struct timespec pause = {.tv_nsec = 1000000};
    void *data = NULL;
    if (tol_pinned_access(((struct hyp_gpu_timer *)user)->words, &data) != TOL_OK) return false;
    for (volatile unsigned *words = data; words[1] == 0;) nanosleep(&pause, NULL);
    return queue_tick(NULL, stream, call);
}

/* After a gate has timed out, the time is invalid and nothing hangs. */
Test(gpu_timer, a_gate_that_opened_by_itself_gives_no_time, .timeout = 120) {
    struct hyp_gpu_timer timer;
    start(&timer, true, false);
    const uint64_t patient_ns = timer.gate_limit_ns;
    timer.gate_limit_ns = 1000000;
    cr_assert(hyp_gpu_timer_run(&timer, 2, queue_overdue, &timer) < 0);
    cr_assert(*counted == 2, "the work was done all the same");
    timer.gate_limit_ns = patient_ns;
    cr_assert(hyp_gpu_timer_run(&timer, 2, queue_tick, NULL) >= 0, "the timer can be used again");
    hyp_gpu_timer_end(&timer);
}

static bool refuse(void *user, struct tol_stream *stream, unsigned call) {
    (void)user, (void)stream;
    return call < 3;
}

Test(gpu_timer, a_call_that_fails_opens_the_gate, .timeout = 120) {
    struct hyp_gpu_timer timer;
    start(&timer, true, true);
    cr_assert(hyp_gpu_timer_run(&timer, 10, refuse, NULL) < 0);
    cr_assert(hyp_gpu_timer_run(&timer, 10, queue_tick, NULL) >= 0);
    hyp_gpu_timer_end(&timer);
}

/* Goal: in cold mode the cache is written over before each call, outside the time. */
Test(gpu_timer, cold_calls_have_the_cache_written_over) {
    struct hyp_gpu_timer timer;
    unsigned char last[64];
    cr_assert(tol_context_device(attack.context)->l2_bytes > 0);
    start(&timer, true, true);
    cr_assert(tol_buffer_bytes(timer.cover) ==
              (size_t)tol_context_device(attack.context)->l2_bytes);
    cr_assert(hyp_gpu_timer_run(&timer, 3, queue_tick, NULL) >= 0);
    cr_assert(*counted == 3);
    cr_assert(tol_buffer_read_at(timer.cover, tol_buffer_bytes(timer.cover) - sizeof last, last,
                                 sizeof last) == TOL_OK);
    for (size_t i = 0; i < sizeof last; i++) cr_assert(last[i] == 2, "the third call's cover");
    hyp_gpu_timer_end(&timer);
}

Test(gpu_timer, rotation_does_not_fit_the_cache) {
    struct tol_device device = {.l2_bytes = 50 << 20};
    cr_assert(hyp_gpu_rotation(&device, 1 << 20) == 101);
    cr_assert(hyp_gpu_rotation(&device, (size_t)1 << 30) == 2);
    cr_assert(hyp_gpu_rotation(&device, 1024) == 256);
    cr_assert(hyp_gpu_rotation(&device, 0) == 256);
    device.l2_bytes = 0;
    cr_assert(hyp_gpu_rotation(&device, 1 << 20) == 2);
}

/* The soft device's cycle is a nanosecond, so it would be 1000 MHz were nothing between the two
 * reads of a clock; what is said here is only that both were counted. */
Test(gpu_timer, the_clock_is_counted_on_the_device) {
    for (int i = 0; i < 2; i++) {
        double mhz = hyp_gpu_clock_mhz(&attack, 200000);
        cr_assert(mhz > 1 && mhz < 1e6, "%g MHz: %s", mhz, tol_message());
    }
}

static double batch(void *user, enum hyp_side side, unsigned calls) {
    (void)side;
    return hyp_gpu_timer_run(user, calls, queue_tick, NULL);
}

static uint64_t draw(void *user) {
    return hyp_random(user);
}

/* The sampler takes the device's time as it takes the host's. */
Test(gpu_timer, the_sampler_compares_by_it) {
    static struct hyp_sample sample;
    struct hyp_gpu_timer timer;
    start(&timer, true, false);
    const struct hyp_pair pair = {.name = "tick",
                                  .is_ratio = true,
                                  .rule = {.threshold = 1.5, .family = 1},
                                  .recorded_only = true,
                                  .calls = 4,
                                  .batch = batch,
                                  .user = &timer};
    cr_assert(hyp_sampler_run(&pair, draw, NULL, &attack, &sample), "%s", sample.sentence);
    cr_assert(sample.count == 50 && *counted == 50 * 8 * 4, "%u", *counted);
    hyp_gpu_timer_end(&timer);
}

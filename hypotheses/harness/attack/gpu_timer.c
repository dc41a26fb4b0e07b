/*
 * Queues a gate, a cover and events, then opens the gate and reads the events.
 */
#include "gpu_timer.h"

#include <string.h>

enum { ROTATION_MAX = 256 };

static const uint64_t GATE_LIMIT_NS = 1000000000;

unsigned hyp_gpu_rotation(const struct tol_device *device, size_t bytes) {
    /* Twice the cache: its replacement is not quite by age. */
    size_t needed = bytes > 0 ? 2 * (size_t)device->l2_bytes / bytes + 1 : ROTATION_MAX;
    return needed < 2 ? 2 : needed > ROTATION_MAX ? ROTATION_MAX : (unsigned)needed;
}

bool hyp_gpu_timer_begin(struct hyp_attack *attack, bool is_gated, bool is_cold,
                         struct hyp_gpu_timer *timer) {
    memset(timer, 0, sizeof *timer);
    timer->attack = attack;
    timer->is_gated = is_gated;
    timer->is_cold = is_cold;
    timer->gate_limit_ns = GATE_LIMIT_NS;
    size_t cover = (size_t)tol_context_device(attack->context)->l2_bytes;
    if (!HYP_OK(attack, tol_stream_create(attack->context, NULL, &timer->stream))) return false;
    if (is_gated) {
        timer->gate = hyp_attack_kernel(attack, "gate");
        if (timer->gate == NULL ||
            !HYP_OK(attack,
                    tol_pinned_create(attack->context, 2 * sizeof(unsigned), &timer->words))) {
            return false;
        }
    }
    if (is_cold && cover > 0 &&
        !HYP_OK(attack, tol_buffer_create(attack->context, cover, 1, &timer->cover))) {
        return false;
    }
    for (unsigned i = 0; i < (is_cold ? HYP_GPU_CALLS_MAX : 1); i++) {
        if (!HYP_OK(attack, tol_event_create(attack->context, true, &timer->begins[i])) ||
            !HYP_OK(attack, tol_event_create(attack->context, true, &timer->ends[i]))) {
            return false;
        }
    }
    return true;
}

void hyp_gpu_timer_end(struct hyp_gpu_timer *timer) {
    for (unsigned i = 0; i < HYP_GPU_CALLS_MAX; i++) {
        tol_event_destroy(timer->begins[i]);
        tol_event_destroy(timer->ends[i]);
    }
    tol_buffer_destroy(timer->cover);
    tol_pinned_destroy(timer->words);
    tol_stream_destroy(timer->stream);
}

/* Queues all calls with their events. false: one could not be queued. */
static bool gpu_timer_queue_all(struct hyp_gpu_timer *timer, unsigned calls,
                                bool (*queue)(void *user, struct tol_stream *stream, unsigned call),
                                void *user) {
    struct hyp_attack *attack = timer->attack;
    struct tol_stream *stream = timer->stream;
    for (unsigned call = 0; call < calls; call++) {
        bool is_first = timer->is_cold || call == 0, is_last = timer->is_cold || call + 1 == calls;
        unsigned pair = timer->is_cold ? call : 0;
        if (timer->cover != NULL &&
            !HYP_OK(attack, tol_copy_fill(stream, timer->cover, 0, call, 1,
                                          tol_buffer_bytes(timer->cover)))) {
            return false;
        }
        if (is_first && !HYP_OK(attack, tol_event_record(timer->begins[pair], stream))) {
            return false;
        }
        if (!HYP_CHECK(attack, queue(user, stream, call), "call %u could not be queued: %.700s",
                       call, tol_message())) {
            return false;
        }
        if (is_last && !HYP_OK(attack, tol_event_record(timer->ends[pair], stream))) return false;
    }
    return true;
}

double hyp_gpu_timer_run(struct hyp_gpu_timer *timer, unsigned calls,
                         bool (*queue)(void *user, struct tol_stream *stream, unsigned call),
                         void *user) {
    struct hyp_attack *attack = timer->attack;
    volatile unsigned *words = NULL;
    void *data = NULL;
    cr_assert(calls > 0 && calls <= HYP_GPU_CALLS_MAX, "%u calls do not fit a timer", calls);
    if (timer->is_gated) {
        if (!HYP_OK(attack, tol_pinned_access(timer->words, &data))) return -1;
        words = data;
        words[0] = words[1] = 0;
        CUdeviceptr open = (CUdeviceptr)(uintptr_t)data, overdue = open + sizeof(unsigned);
        unsigned long long limit = timer->gate_limit_ns;
        if (!HYP_OK(attack, tol_launch(timer->stream, timer->gate, tol_launch_linear(1, 1),
                                       TOL_ARGUMENTS(open, overdue, limit)))) {
            return -1;
        }
    }
    bool ok = gpu_timer_queue_all(timer, calls, queue, user);
    /* Opened in any case: no work may remain queued after a closed gate. */
    if (words != NULL) words[0] = 1;
    ok = HYP_OK(attack, tol_stream_synchronize(timer->stream)) && ok;
    if (ok && words != NULL) {
        ok = HYP_CHECK(attack, words[1] == 0,
                       "the gate timed out after %.1f s: the work queued after it waited for the "
                       "device or exceeded its queue",
                       (double)timer->gate_limit_ns * 1e-9);
    }
    double sum = 0;
    for (unsigned pair = 0; ok && pair < (timer->is_cold ? calls : 1); pair++) {
        double ns = 0;
        ok = HYP_OK(attack, tol_event_elapsed_ns(timer->begins[pair], timer->ends[pair], &ns));
        sum += ns;
    }
    return ok ? sum : -1;
}

double hyp_gpu_clock_mhz(struct hyp_attack *attack, uint64_t wait_ns) {
    static struct tol_kernel *kernel; /* never destroyed: the attack is this process */
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    uint64_t counted[2] = {0, 0}; /* cycles, nanoseconds */
    if (kernel == NULL) kernel = hyp_attack_kernel(attack, "sm_clock");
    if (kernel == NULL || !HYP_OK(attack, tol_stream_create(attack->context, NULL, &stream)) ||
        !HYP_OK(attack, tol_buffer_create(attack->context, 2, sizeof counted[0], &buffer))) {
        return 0;
    }
    CUdeviceptr address = tol_buffer_address(buffer);
    unsigned long long wait = wait_ns;
    if (!HYP_OK(attack, tol_launch(stream, kernel, tol_launch_linear(1, 1),
                                   TOL_ARGUMENTS(address, wait))) ||
        !HYP_OK(attack, tol_stream_synchronize(stream)) ||
        !HYP_OK(attack, tol_buffer_read(buffer, counted, sizeof counted)) ||
        !HYP_CHECK(attack, counted[0] > 0 && counted[1] >= wait_ns,
                   "sm_clock counted %llu cycles in %llu ns", (unsigned long long)counted[0],
                   (unsigned long long)counted[1])) {
        return 0;
    }
    return (double)counted[0] * 1e3 / (double)counted[1];
}

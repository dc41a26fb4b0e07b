/*
 * Attacks on Q1: the times of events, and waits for them.
 */
#include "order_stage.h"

#include "harness/clock.h"

/* Between two events there is no more time than between the calls around them, by the host's clock.
 * A GPU's clock may differ by some parts in a million. */
HYP_ATTACK(q1, events_are_as_far_apart_as_their_work) {
    enum { LAUNCHES = 3, TIMED = 0 };
    struct order_stage stage;
    struct tol_stream *stream = NULL;
    struct tol_buffer *buffer = NULL;
    CUevent events[2] = {NULL, NULL};
    bool ok = order_stage_begin(attack, &stage) &&
              HYP_OK(attack, tol_stream_create(attack->context, NULL, &stream)) &&
              HYP_OK(attack, tol_buffer_create(attack->context, ORDER_WORDS, 4, &buffer));
    for (int i = 0; ok && i < 2; i++) {
        ok = HYP_CHECK(attack, attack->raw->cuEventCreate(&events[i], TIMED) == CUDA_SUCCESS,
                       "an event cannot be created");
    }
    for (unsigned round = 0; ok && round < 40; round++) {
        const CUstream handle = tol_stream_handle(stream);
        const struct order_pass pass = {
            .to = tol_buffer_address(buffer), .written = order_stamp(&stage), .is_slow = true};
        float ms = 0;
        const uint64_t begin_ns = hyp_clock_ns();
        ok = attack->raw->cuEventRecord(events[0], handle) == CUDA_SUCCESS;
        for (int i = 0; i < LAUNCHES; i++) {
            ok = ok && HYP_OK(attack, order_launch(&stage, stream, pass));
        }
        ok = ok && attack->raw->cuEventRecord(events[1], handle) == CUDA_SUCCESS &&
             HYP_OK(attack, tol_stream_synchronize_for(stream, ORDER_DEADLINE_MS));
        const double most_ms = (double)(hyp_clock_ns() - begin_ns) * 1e-6 * 1.01 + 0.01;
        ok = ok && attack->raw->cuEventElapsedTime(&ms, events[0], events[1]) == CUDA_SUCCESS;
        ok = HYP_CHECK(attack, ok && (double)ms > 0 && (double)ms <= most_ms,
                       "%g ms between two events, and %g between the calls around them", (double)ms,
                       most_ms);
    }
    for (int i = 0; i < 2; i++) {
        if (events[i] != NULL) (void)attack->raw->cuEventDestroy_v2(events[i]);
    }
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
    order_stage_end(&stage);
}

/* When the driver's own wait for an event returns, the kernel before it has written its block, and
 * the event says so too. The runtime calls that wait for work on pinned memory. */
HYP_ATTACK_WITH(q1, a_wait_for_an_event_ends_after_its_work, .many_queues = true,
                .soft_order = "newest") {
    struct order_stage stage;
    struct tol_stream *stream = NULL;
    CUevent event = NULL;
    void *words = NULL;
    CUdeviceptr address = 0;
    const struct tol_driver_table *raw = attack->raw;
    bool ok = order_stage_begin(attack, &stage) &&
              HYP_OK(attack, tol_stream_create(attack->context, NULL, &stream)) &&
              HYP_CHECK(attack,
                        raw->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
                            raw->cuMemHostAlloc(&words, ORDER_BYTES, CU_MEMHOSTALLOC_DEVICEMAP) ==
                                CUDA_SUCCESS &&
                            raw->cuMemHostGetDevicePointer_v2(&address, words, 0) == CUDA_SUCCESS,
                        "there is no event or no pinned memory");
    for (unsigned round = 0; ok && round < 40; round++) {
        const struct order_pass pass = {
            .to = address, .written = order_stamp(&stage), .is_slow = true};
        ok = HYP_OK(attack, order_launch(&stage, stream, pass)) &&
             HYP_CHECK(attack,
                       raw->cuEventRecord(event, tol_stream_handle(stream)) == CUDA_SUCCESS &&
                           raw->cuEventSynchronize(event) == CUDA_SUCCESS,
                       "an event was not recorded, or not waited for");
        const unsigned at = ok ? order_difference(pass.written, words) : 0;
        ok = ok &&
             HYP_CHECK(attack, at == ORDER_WORDS,
                       "position %u of a block is not yet written after the wait for the "
                       "event that follows its kernel",
                       at) &&
             HYP_CHECK(attack, raw->cuEventQuery(event) == CUDA_SUCCESS,
                       "an event is not complete after the wait for it");
    }
    (void)order_stage_settle(&stage);
    if (event != NULL) (void)raw->cuEventDestroy_v2(event);
    if (words != NULL) (void)raw->cuMemFreeHost(words);
    tol_stream_destroy(stream);
    order_stage_end(&stage);
}

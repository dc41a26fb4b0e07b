/*
 * Attacks on Q1, chains: steps in several streams that pass on blocks of numbers.
 */
#include "order_stage.h"

HYP_ATTACK_WITH(q1, a_stream_waits_for_an_event, .many_queues = true) {
    enum { ROUNDS = 60 };
    struct order_stage stage;
    struct tol_stream *streams[2] = {NULL, NULL};
    struct tol_event *event = NULL;
    struct tol_buffer *block = NULL;
    bool ok = order_stage_begin(attack, &stage) &&
              HYP_OK(attack, tol_stream_create(attack->context, NULL, &streams[0])) &&
              HYP_OK(attack, tol_stream_create(attack->context, NULL, &streams[1])) &&
              HYP_OK(attack, tol_event_create(attack->context, false, &event)) &&
              HYP_OK(attack, tol_buffer_create(attack->context, ORDER_WORDS, 4, &block));
    for (unsigned i = 0; ok && i < ROUNDS; i++) {
        const CUdeviceptr at = tol_buffer_address(block);
        const uint32_t stamp = order_stamp(&stage);
        ok = HYP_OK(attack, order_launch(&stage, streams[0],
                                         (struct order_pass){
                                             .to = at, .written = stamp, .is_slow = true})) &&
             HYP_OK(attack, tol_event_record(event, streams[0])) &&
             HYP_OK(attack, tol_stream_wait_event(streams[1], event)) &&
             HYP_OK(attack, order_launch(&stage, streams[1],
                                         (struct order_pass){.from = at, .expected = stamp})) &&
             HYP_OK(attack, tol_stream_synchronize_for(streams[1], ORDER_DEADLINE_MS)) &&
             order_stage_settle(&stage) && order_stage_judge(&stage, "after an event");
    }
    order_stage_end(&stage);
    tol_event_destroy(event);
    tol_stream_destroy(streams[0]);
    tol_stream_destroy(streams[1]);
    tol_buffer_destroy(block);
}

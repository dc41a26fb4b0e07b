/*
 * The attacks on P1 across processes, by the handles of memory and events that CUDA calls IPC, and
 * the one whose kernel must fail.
 */
#include "peer_child.h"
#include "peer_faults.h"
#include "peer_stage.h"

#include <stdio.h>
#include <time.h>

enum { BYTES = 200003 };

/* An area of device 0 with the pattern, and the order to use it. */
static bool processes_share(struct peer_stage *stage, struct peer_area *area,
                            struct peer_order *order, bool *is_skipped) {
    *order = (struct peer_order){
        .kind = PEER_OPEN, .seed = hyp_random(stage->attack), .bytes = BYTES, .offset = PEER_GUARD};
    *is_skipped = false;
    if (!peer_area_create(stage, 0, BYTES, area) ||
        !peer_area_poison(stage, area, (unsigned char)~peer_byte(order->seed, 0)) ||
        !peer_area_send(stage, area, 0, order->seed, BYTES) ||
        !HYP_OK(stage->attack, tol_context_bind(area->device->context))) {
        return false;
    }
    const CUresult result =
        stage->driver.cuIpcGetMemHandle(&order->memory, area->address - PEER_GUARD);
    *is_skipped = peer_is_unsupported(stage, (int)result, "memory handles for other processes");
    return !*is_skipped && HYP_CHECK(stage->attack, result == CUDA_SUCCESS,
                                     "cuIpcGetMemHandle: CUDA error %d", (int)result);
}

/* Bytes of the order's seed, or of the one after it if the child has overwritten them. */
static void check_area(struct peer_stage *stage, const struct peer_area *area,
                       const struct peer_order *order, const char *way) {
    peer_area_check(stage, area, 0, order->seed + (order->overwrites ? 1 : 0), BYTES,
                    (unsigned char)~peer_byte(order->seed, 0), way);
}

static void try_open(struct peer_stage *stage, size_t device, enum peer_order_kind kind,
                     bool has_kernel) {
    struct peer_child child;
    struct peer_area area = {0};
    struct peer_order order;
    struct peer_answer answer;
    bool is_skipped = false;
    char way[120];
    snprintf(way, sizeof way, "memory of device 0 %s by another process on device %zu, %s",
             kind == PEER_OPEN_TWICE ? "opened twice" : "opened", device,
             has_kernel ? "kernel" : "copy");
    if (peer_child_begin(stage, device, &child) &&
        processes_share(stage, &area, &order, &is_skipped)) {
        order.kind = kind;
        order.overwrites = true;
        order.has_kernel = has_kernel;
        if (peer_child_ask(stage, &child, &order, -1, &answer, NULL) &&
            peer_answer_check(stage, &answer, way)) {
            check_area(stage, &area, &order, way);
        }
    }
    peer_child_end(&child, false);
    peer_area_destroy(stage, &area);
}

HYP_ATTACK_WITH(p1, memory_of_another_process_returns, .soft_devices = "3") {
    struct peer_stage stage;
    if (peer_stage_begin(attack, &stage)) {
        for (size_t i = 0; i < 2 * stage.count; i++) {
            try_open(&stage, i / 2, PEER_OPEN, i % 2 == 1);
            hyp_attack_progress(attack, (double)(i + 1) / (double)(2 * stage.count));
        }
    }
    peer_stage_end(&stage);
}

HYP_ATTACK_WITH(p1, memory_opened_twice_returns_until_the_last_close, .soft_devices = "2") {
    struct peer_stage stage;
    if (peer_stage_begin(attack, &stage)) {
        for (size_t i = 0; i < stage.count; i++) try_open(&stage, i, PEER_OPEN_TWICE, i % 2 == 1);
    }
    peer_stage_end(&stage);
}

/* ---- events ---- */

/* Longer than it takes the other process to queue its copy. */
static tol_status processes_take_time(void *user, char *reason, size_t bytes) {
    const struct timespec pause = {.tv_nsec = 100000000};
    (void)user, (void)reason, (void)bytes;
    nanosleep(&pause, NULL);
    return TOL_OK;
}

/* Queues a pause, then the next pattern, then the event. */
static bool queue_pattern(struct peer_stage *stage, const struct peer_area *spare,
                          const struct peer_area *area, CUevent event) {
    const struct peer_driver *driver = &stage->driver;
    const CUstream stream = tol_stream_handle(area->device->stream);
    return HYP_OK(stage->attack,
                  tol_stream_call(area->device->stream, processes_take_time, NULL)) &&
           HYP_OK(stage->attack, tol_context_bind(area->device->context)) &&
           HYP_CHECK(stage->attack,
                     driver->cuMemcpyDtoDAsync_v2(area->address, spare->address, BYTES, stream) ==
                             CUDA_SUCCESS &&
                         driver->cuEventRecord(event, stream) == CUDA_SUCCESS,
                     "a copy and an event could not be queued");
}

static void try_event(struct peer_stage *stage, size_t device) {
    struct peer_child child;
    struct peer_area area = {0}, spare = {0};
    struct peer_order order;
    struct peer_answer answer;
    CUevent event = NULL;
    bool is_skipped = false;
    const char *way = "a copy of another process after an event of this one";
    const struct peer_driver *driver = &stage->driver;
    if (peer_child_begin(stage, device, &child) &&
        processes_share(stage, &area, &order, &is_skipped) &&
        peer_area_create(stage, 0, BYTES, &spare)) {
        order.kind = PEER_WAIT;
        order.seed += 1;
        order.forgets_to_wait = peer_fault_is(stage->attack, "peer_wait_missing");
        CUresult result =
            driver->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
        if (result == CUDA_SUCCESS) result = driver->cuIpcGetEventHandle(&order.event, event);
        if (!peer_is_unsupported(stage, (int)result, "events for other processes") &&
            HYP_CHECK(stage->attack, result == CUDA_SUCCESS, "an event to share: CUDA error %d",
                      (int)result) &&
            peer_area_send(stage, &spare, 0, order.seed, BYTES) &&
            queue_pattern(stage, &spare, &area, event) &&
            peer_child_ask(stage, &child, &order, -1, &answer, NULL)) {
            peer_answer_check(stage, &answer, way);
        }
        (void)tol_stream_synchronize_for(area.device->stream, 60000);
    }
    peer_child_end(&child, false);
    if (event != NULL) driver->cuEventDestroy_v2(event);
    peer_area_destroy(stage, &spare);
    peer_area_destroy(stage, &area);
}

HYP_ATTACK_WITH(p1, copies_wait_for_an_event_of_another_process, .soft_devices = "2") {
    struct peer_stage stage;
    if (peer_stage_begin(attack, &stage)) {
        const size_t rounds = attack->session.full ? 5 : 1;
        for (size_t i = 0; i < rounds * stage.count; i++) try_event(&stage, i % stage.count);
    }
    peer_stage_end(&stage);
}

/* ---- without access ---- */

/* A process of its own: its context, and on some drivers all of it, ends with the kernel. */
static void try_denied(struct peer_stage *stage, size_t user, size_t owner) {
    struct peer_child child;
    struct peer_answer answer;
    const struct peer_order order = {.kind = PEER_DENIED_LOAD,
                                     .other_device = (int)owner,
                                     .seed = hyp_random(stage->attack),
                                     .bytes = BYTES};
    if (peer_child_begin(stage, user, &child) &&
        peer_child_ask(stage, &child, &order, -1, &answer, NULL) &&
        peer_answer_check(stage, &answer, "a kernel's load with access")) {
        HYP_CHECK(stage->attack, answer.write_result != CUDA_SUCCESS,
                  "a kernel of device %zu loads from device %zu after its access was disabled",
                  user, owner);
    }
    peer_child_end(&child, true);
}

HYP_ATTACK_WITH(p1, a_load_without_access_fails, .soft_devices = "2") {
    struct peer_stage stage;
    if (peer_stage_begin(attack, &stage)) {
        for (size_t i = 0; i < stage.count * stage.count; i++) {
            const size_t user = i / stage.count, owner = i % stage.count;
            if (user != owner && stage.reaches[user][owner]) try_denied(&stage, user, owner);
        }
    }
    peer_stage_end(&stage);
}

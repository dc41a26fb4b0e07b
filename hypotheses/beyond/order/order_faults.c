/*
 * The faults. A name that ends with "_one_in" occurs in one of that many calls of its kind, which
 * the seed and the attack select; the others occur in a fixed share of them.
 */
#include "order_faults.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* The argument at a position, as a type. */
#define ARGUMENT(call, position, type) (*(type *)(call)->arguments[position])

#define IS(call, function) ((call)->index == TOL_DRIVER_INDEX_##function)

static void order_faults_skip(struct tol_interpose_call *call) {
    call->forward = false;
    call->result = CUDA_SUCCESS;
}

/* ---- Q1: waits ---- */

/* A wait that is part of a capture is left alone: without it, the capture itself would fail. */
static bool order_faults_is_captured(const struct tol_interpose_call *call, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return call->driver->cuStreamIsCapturing != NULL &&
           (call->driver->cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
            status != CU_STREAM_CAPTURE_STATUS_NONE);
}

static void order_faults_drop_wait(struct tol_interpose_call *call, void *user) {
    static _Atomic unsigned waits;
    (void)user;
    if (!IS(call, cuStreamWaitEvent) || order_faults_is_captured(call, ARGUMENT(call, 0, CUstream)))
        return;
    if (++waits % 4 == 0) order_faults_skip(call);
}

const struct hyp_fault order_faults[] = {
    {.name = "wait_dropped",
     .sentence = "every fourth wait of a stream for an event is skipped",
     .before = order_faults_drop_wait},
    {.name = NULL}};

/* ---- the claims: their text and their saboteurs are in beyond.toml ---- */

#define ORDER_SABOTEURS(id, ...)                                                                   \
    static const struct hyp_saboteur saboteurs_of_##id[] = {__VA_ARGS__};
#include "beyond.def"

static const struct hyp_plugin_claim claims[] = {
#define ORDER_CLAIM(id, ...) {__VA_ARGS__, .saboteurs = saboteurs_of_##id},
#include "beyond.def"
    {.id = NULL}};

HYP_PLUGIN(.name = "order", .version = "1", .claims = claims, .faults = order_faults);

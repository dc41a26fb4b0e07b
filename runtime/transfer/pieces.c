/*
 * Copies in pieces: each thread has two staging blocks, and works on the one while the device works
 * on the other; the threads take the pieces in turn.
 *
 * The first failure stops all and is told by the calling thread. Whatever happened, no block is
 * given back while a copy uses it.
 */
#include "../deadline.h"
#include "transfer_state.h"

#include <stdio.h>
#include <string.h>

/* What the threads of one copy share. */
struct run {
    struct tol_pieces *pieces;
    atomic_size_t next;
    atomic_bool failed;
    pthread_mutex_t lock; /* guards what follows */
    tol_status status;
    int result;
    char message[TOL_MESSAGE_BYTES];
};

/* A block on its way. */
struct slot {
    struct tol_stage *stage;
    size_t piece;
    bool in_flight;
};

enum { SLOTS = 2 };

static void note_failure(struct run *run, tol_status status) {
    pthread_mutex_lock(&run->lock);
    if (run->status == TOL_OK) {
        run->status = status;
        run->result = tol_message_cuda();
        snprintf(run->message, sizeof run->message, "%s", tol_message());
    }
    pthread_mutex_unlock(&run->lock);
    atomic_store_explicit(&run->failed, true, memory_order_release);
}

static tol_status begin(struct run *run, struct slot *slot, size_t piece) {
    tol_status status = TOL_OK;
    const struct tol_pieces *pieces = run->pieces;
    struct tol_transfer *transfer = pieces->transfer;
    struct tol_context *context = transfer->context;
    struct tol_retry retry = {.policy = &transfer->retry};
    CUresult result = CUDA_SUCCESS;
    if (pieces->pack != NULL) pieces->pack(pieces->copy, piece, slot->stage->data);
    do {
        result = pieces->queue(pieces->copy, piece, slot->stage->data, context->functions,
                               transfer->stream->handle);
        /* A piece may be several calls, and the last alone have failed. */
        slot->in_flight = true;
    } while (tol_retry_again(&retry, result));
    slot->piece = piece;
    if (result != CUDA_SUCCESS) {
        status = tol_context_fail(context, __FILE__, __LINE__, pieces->call, (int)result,
                                  "piece %zu of %zu of a copy, attempt %u", piece + 1,
                                  pieces->count, retry.failures + (retry.failures == 0));
        goto out;
    }
    TOL_TRANSFER_CU(transfer, cuEventRecord, (slot->stage->done.handle, transfer->stream->handle),
                    "recording a piece of a copy");
    atomic_fetch_add_explicit(&transfer->pieces, 1, memory_order_relaxed);
    return TOL_OK;
out:
    /* There is no event behind it: the stream is. */
    if (tol_transfer_wait(transfer) == TOL_OK) slot->in_flight = false;
    return status;
}

static tol_status end(struct run *run, struct slot *slot) {
    tol_status status = TOL_OK;
    const struct tol_pieces *pieces = run->pieces;
    struct tol_deadline deadline = tol_deadline_after(pieces->transfer->options.deadline_ms);
    if (!slot->in_flight) return TOL_OK;
    TOL_TRY(tol_deadline_wait_event(&slot->stage->done, &deadline));
    slot->in_flight = false;
    if (pieces->unpack != NULL && !atomic_load_explicit(&run->failed, memory_order_acquire)) {
        pieces->unpack(pieces->copy, slot->piece, slot->stage->data);
    }
out:
    return status;
}

static tol_status carry(struct run *run, struct slot *slots, size_t depth) {
    tol_status status = TOL_OK;
    for (size_t i = 0;; i++) {
        struct slot *slot = &slots[i % depth];
        TOL_TRY(end(run, slot));
        if (atomic_load_explicit(&run->failed, memory_order_acquire)) break;
        size_t piece = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed);
        if (piece >= run->pieces->count) break;
        TOL_TRY(begin(run, slot, piece));
    }
out:
    return status;
}

/* One thread's share. */
static void work(void *user) {
    struct run *run = user;
    struct tol_transfer *transfer = run->pieces->transfer;
    struct slot slots[SLOTS] = {0};
    size_t depth = 1;
    if (atomic_load_explicit(&run->next, memory_order_relaxed) >= run->pieces->count) return;
    tol_status status =
        tol_stages_take(&transfer->stages, transfer->options.deadline_ms, &slots[0].stage);
    if (status == TOL_OK && run->pieces->count > 1) {
        /* One block does where a second is not to be had. */
        status = tol_stages_take(&transfer->stages, 0, &slots[1].stage);
        if (status == TOL_OK) depth = SLOTS;
        if (status == TOL_NOT_READY || status == TOL_OUT_OF_HOST_MEMORY) status = TOL_OK;
    }
    if (status == TOL_OK) status = carry(run, slots, depth);
    if (status != TOL_OK) note_failure(run, status);
    for (size_t i = 0; i < SLOTS && slots[i].stage != NULL; i++) {
        /* A message that is worth telling has been noted; an earlier end may still matter. */
        status = end(run, &slots[i]);
        if (status != TOL_OK) note_failure(run, status);
        tol_stages_give(&transfer->stages, slots[i].stage, slots[i].in_flight);
    }
}

tol_status tol_pieces_run(struct tol_pieces *pieces) {
    struct run run = {.pieces = pieces};
    pthread_mutex_init(&run.lock, NULL);
    size_t helpers = pieces->helpers;
    if (helpers > pieces->count - 1) helpers = pieces->count - 1;
    tol_team_run(&pieces->transfer->team, (unsigned)helpers, work, &run);
    pthread_mutex_destroy(&run.lock);
    return run.status == TOL_OK ? TOL_OK : tol_fail_again(run.status, run.result, run.message);
}

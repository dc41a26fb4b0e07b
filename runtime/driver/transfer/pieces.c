/*
 * Copies in pieces. Only the calling thread makes driver calls; it and its helpers copy between the
 * program's memory and the staging blocks.
 *
 * A piece is what the device copies at once. Several threads copy the parts of a piece in parallel.
 * With b blocks, piece n uses block n modulo b, so it waits only for piece n - b. Threads take
 * parts in order, so the first pieces are complete first.
 *
 * The first failure stops all threads. No block is released while a copy uses it.
 */
#include "core/deadline.h"
#include "transfer_state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A staging block of this copy. */
struct piece_slot {
    struct tol_stage *stage;
    atomic_size_t next;  /* the only piece that may use the block now */
    atomic_size_t full;  /* one more than the number of the piece whose bytes are in it */
    atomic_size_t parts; /* the packed or unpacked parts of that piece */
};

/* What the threads of one copy share. */
struct piece_run {
    struct tol_pieces *pieces;
    struct piece_slot *slots;
    size_t slot_count;
    pthread_t caller;
    atomic_size_t claimed;  /* parts that threads have taken */
    atomic_size_t unpacked; /* pieces */
    atomic_bool stopped;    /* a step failed, or the copy is done */
    /* The caller alone uses these. */
    size_t queued;   /* pieces given to the driver */
    size_t recorded; /* of these, the pieces followed by an event */
    size_t arrived;  /* of these, the pieces that the device has finished */
    bool has_stirred;
};

/* Polls something that another thread or the device changes: first without a pause, then with. */
struct patience {
    unsigned looks;
    struct timespec since;
};

enum { LOOKS_HOT = 4000, SLEEP_NS = 50000 };

static bool is_patient(const struct patience *patience) {
    return patience->looks >= LOOKS_HOT;
}

static void pieces_wait_a_little(struct patience *patience) {
    const struct timespec pause = {.tv_nsec = SLEEP_NS};
    if (is_patient(patience)) {
        nanosleep(&pause, NULL);
        return;
    }
    patience->looks++;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static struct piece_slot *pieces_slot_of(const struct piece_run *run, size_t piece) {
    return &run->slots[piece % run->slot_count];
}

static bool pieces_is_at(atomic_size_t *number, size_t value) {
    return atomic_load_explicit(number, memory_order_acquire) == value;
}

static bool is_stopped(const struct piece_run *run) {
    return atomic_load_explicit(&run->stopped, memory_order_acquire);
}

/* ---- the host's part ---- */

/* Whether threads can pack or unpack a piece now. */
static bool is_ready(const struct piece_run *run, size_t piece) {
    struct piece_slot *slot = pieces_slot_of(run, piece);
    return run->pieces->pack != NULL ? pieces_is_at(&slot->next, piece)
                                     : pieces_is_at(&slot->full, piece + 1);
}

static void do_part(struct piece_run *run, size_t number) {
    const struct tol_pieces *pieces = run->pieces;
    const size_t piece = number / pieces->parts, part = number % pieces->parts;
    struct piece_slot *slot = pieces_slot_of(run, piece);
    if (pieces->pack != NULL) {
        pieces->pack(pieces->copy, piece, part, slot->stage->data);
    } else {
        pieces->unpack(pieces->copy, piece, part, slot->stage->data);
    }
    /* The thread that finishes the last part passes the block on. */
    if (atomic_fetch_add_explicit(&slot->parts, 1, memory_order_acq_rel) + 1 < pieces->parts)
        return;
    atomic_store_explicit(&slot->parts, 0, memory_order_relaxed);
    if (pieces->pack != NULL) {
        atomic_store_explicit(&slot->full, piece + 1, memory_order_release);
    } else {
        atomic_store_explicit(&slot->next, piece + run->slot_count, memory_order_release);
        atomic_fetch_add_explicit(&run->unpacked, 1, memory_order_release);
    }
}

static bool is_read(const struct piece_run *run) {
    return run->pieces->pack == NULL;
}

/* Waits until a part is ready. false: the copy has stopped. */
static bool await_part(struct piece_run *run, size_t number) {
    struct patience patience = {0};
    while (!is_ready(run, number / run->pieces->parts)) {
        if (is_stopped(run)) return false;
        pieces_wait_a_little(&patience);
    }
    return !is_stopped(run);
}

static void pieces_help(struct piece_run *run) {
    const size_t count = run->pieces->count * run->pieces->parts;
    for (;;) {
        size_t number = atomic_fetch_add_explicit(&run->claimed, 1, memory_order_relaxed);
        if (number >= count || !await_part(run, number)) return;
        do_part(run, number);
    }
}

/* The caller takes the next part only if that part is ready. */
static bool help_once(struct piece_run *run) {
    const size_t count = run->pieces->count * run->pieces->parts;
    size_t number = atomic_load_explicit(&run->claimed, memory_order_relaxed);
    if (number >= count || !is_ready(run, number / run->pieces->parts) ||
        !atomic_compare_exchange_strong(&run->claimed, &number, number + 1)) {
        return false;
    }
    do_part(run, number);
    return true;
}

/* ---- the device's part, by the caller ---- */

static tol_status pieces_queue(struct piece_run *run, size_t piece) {
    tol_status status = TOL_OK;
    const struct tol_pieces *pieces = run->pieces;
    struct tol_transfer *transfer = pieces->transfer;
    struct tol_context *context = transfer->context;
    struct tol_retry retry = {.policy = &transfer->retry};
    struct tol_stage *stage = pieces_slot_of(run, piece)->stage;
    CUresult result = CUDA_SUCCESS;
    run->queued++; /* before the calls: of several, the last alone may fail */
    do {
        result = pieces->queue(pieces->copy, piece, stage->data, context->functions,
                               transfer->stream->handle);
    } while (tol_retry_again(&retry, result));
    if (result != CUDA_SUCCESS) {
        status = tol_context_fail(context, __FILE__, __LINE__, pieces->call, (int)result,
                                  "piece %zu of %zu of a copy, attempt %u", piece + 1,
                                  pieces->count, retry.failures + (retry.failures == 0));
        goto out;
    }
    TOL_TRANSFER_CU(transfer, cuEventRecord, (stage->done.handle, transfer->stream->handle),
                    "recording a piece of a copy");
    run->recorded = run->queued;
    atomic_fetch_add_explicit(&transfer->pieces, 1, memory_order_relaxed);
out:
    return status;
}

/* Whether the next piece can be queued. */
static bool can_queue(const struct piece_run *run) {
    if (run->queued >= run->pieces->count) return false;
    struct piece_slot *slot = pieces_slot_of(run, run->queued);
    return run->pieces->pack != NULL ? pieces_is_at(&slot->full, run->queued + 1)
                                     : pieces_is_at(&slot->next, run->queued);
}

/* Takes in the piece that was queued first, if the device has finished it. */
static tol_status take_in(struct piece_run *run, bool *moved) {
    struct tol_context *context = run->pieces->transfer->context;
    const size_t piece = run->arrived;
    if (piece == run->recorded) return TOL_OK;
    struct piece_slot *slot = pieces_slot_of(run, piece);
    const CUresult result = context->functions->cuEventQuery(slot->stage->done.handle);
    if (result == CUDA_ERROR_NOT_READY) return TOL_OK;
    if (result != CUDA_SUCCESS) {
        return tol_context_fail(context, __FILE__, __LINE__, "cuEventQuery", (int)result,
                                "waiting for a piece of a copy");
    }
    run->arrived = piece + 1;
    *moved = true;
    if (run->pieces->pack != NULL) {
        atomic_store_explicit(&slot->next, piece + run->slot_count, memory_order_release);
    } else {
        atomic_store_explicit(&slot->full, piece + 1, memory_order_release);
    }
    return TOL_OK;
}

static tol_status check_headway(struct piece_run *run, struct patience *patience) {
    tol_status status = TOL_OK;
    const unsigned most_ms = run->pieces->transfer->options.deadline_ms;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (patience->looks == 0) patience->since = now;
    if (is_patient(patience)) {
        double ms = (double)(now.tv_sec - patience->since.tv_sec) * 1e3 +
                    (double)(now.tv_nsec - patience->since.tv_nsec) * 1e-6;
        TOL_CHECK(
            ms < most_ms, TOL_TIMEOUT,
            "a copy has made no progress in %u ms: of %zu pieces, %zu are queued and %zu are done",
            most_ms, run->pieces->count, run->queued, run->arrived);
    }
out:
    return status;
}

static bool pieces_is_over(struct piece_run *run) {
    if (run->arrived < run->pieces->count) return false;
    return run->pieces->pack != NULL || pieces_is_at(&run->unpacked, run->pieces->count);
}

/* Wakes helpers for the next small copy while the device works and the caller waits. */
static void stir_once(struct piece_run *run) {
    const struct tol_pieces *pieces = run->pieces;
    if (!pieces->is_small || run->has_stirred || run->queued < pieces->count) return;
    run->has_stirred = true;
    tol_team_stir(&pieces->transfer->team, (unsigned)pieces->helpers);
}

static tol_status pieces_lead(struct piece_run *run) {
    tol_status status = TOL_OK;
    struct patience patience = {0};
    while (!pieces_is_over(run)) {
        bool moved = false;
        if (can_queue(run)) {
            TOL_TRY(pieces_queue(run, run->queued));
            moved = true;
        }
        TOL_TRY(take_in(run, &moved));
        if (!moved) moved = help_once(run);
        if (moved) {
            patience.looks = 0;
            continue;
        }
        if (patience.looks == 0 || is_patient(&patience)) TOL_TRY(check_headway(run, &patience));
        stir_once(run);
        pieces_wait_a_little(&patience);
    }
out:
    atomic_store_explicit(&run->stopped, true, memory_order_release);
    return status;
}

/* ---- together ---- */

struct share {
    struct piece_run run;
    tol_status status;
};

static void pieces_work(void *user) {
    struct share *share = user;
    if (pthread_equal(pthread_self(), share->run.caller)) {
        share->status = pieces_lead(&share->run);
    } else {
        pieces_help(&share->run);
    }
}

/* Takes staging blocks: waits for the first, and takes up to want - 1 more that are free now. */
static tol_status take_slots(struct piece_run *run, size_t want) {
    tol_status status = TOL_OK;
    struct tol_transfer *transfer = run->pieces->transfer;
    run->slots = calloc(want, sizeof *run->slots);
    TOL_CHECK(run->slots != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a list of %zu staging blocks", want);
    while (run->slot_count < want) {
        struct piece_slot *slot = &run->slots[run->slot_count];
        unsigned patience_ms = run->slot_count == 0 ? transfer->options.deadline_ms : 0;
        status = tol_stages_take(&transfer->stages, patience_ms, &slot->stage);
        if (status != TOL_OK) break;
        atomic_init(&slot->next, run->slot_count++);
    }
    if (run->slot_count > 0 && (status == TOL_NOT_READY || status == TOL_OUT_OF_HOST_MEMORY)) {
        status = TOL_OK;
    }
out:
    return status;
}

static void give_slots(struct piece_run *run) {
    for (size_t i = 0; i < run->slot_count; i++) {
        bool is_in_flight = false;
        for (size_t piece = run->arrived; piece < run->queued; piece++) {
            is_in_flight = is_in_flight || piece % run->slot_count == i;
        }
        tol_stages_give(&run->pieces->transfer->stages, run->slots[i].stage, is_in_flight);
    }
    free(run->slots);
}

/* After a failure, waits for the stream: not every queued piece has an event. */
static void pieces_land(struct piece_run *run, tol_status status) {
    int result = tol_message_cuda();
    char message[TOL_MESSAGE_BYTES];
    snprintf(message, sizeof message, "%s", tol_message());
    if (tol_transfer_wait(run->pieces->transfer) == TOL_OK) run->arrived = run->queued;
    (void)tol_fail_again(status, result, message);
}

/* A read queues pieces before it wakes helpers, since a wake-up takes some microseconds. */
static tol_status queue_first(struct piece_run *run) {
    tol_status status = TOL_OK;
    assert(run->slot_count > 0);
    if (!is_read(run)) return TOL_OK;
    while (status == TOL_OK && can_queue(run)) status = pieces_queue(run, run->queued);
    return status;
}

tol_status tol_pieces_run(struct tol_pieces *pieces) {
    struct share share = {.run = {.pieces = pieces, .caller = pthread_self()}};
    struct piece_run *run = &share.run;
    const size_t parts = pieces->count * pieces->parts;
    if (pieces->helpers > parts - 1) pieces->helpers = parts - 1;
    const size_t want = TOL_TRANSFER_BLOCKS;
    tol_status status = take_slots(run, want < pieces->count ? want : pieces->count);
    if (status == TOL_OK) status = share.status = queue_first(run);
    if (status == TOL_OK) {
        tol_team_run(&pieces->transfer->team, (unsigned)pieces->helpers, pieces->is_small,
                     pieces_work, &share);
        status = share.status;
    }
    if (status != TOL_OK && status != TOL_TIMEOUT && run->arrived < run->queued)
        pieces_land(run, status);
    give_slots(run);
    return status;
}

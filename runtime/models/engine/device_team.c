/*
 * The devices of a model: joining, synchronising, and combining their results.
 */
#include "device_team.h"

#include "collective/gather_columns.h"
#include "core/check.h"
#include "decode/best.h"
#include "decode/draw_arguments.h"

#include <stdlib.h>
#include <string.h>

/* ---- joining ---- */

static tol_status device_team_check_kind(const struct tol_device *first,
                                         const struct tol_device *other) {
    tol_status status = TOL_OK;
    TOL_CHECK(other->compute_capability == first->compute_capability, TOL_UNSUPPORTED,
              "devices %d and %d have compute capabilities %d and %d, whose results differ",
              first->ordinal, other->ordinal, first->compute_capability, other->compute_capability);
out:
    return status;
}

tol_status loaded_team_with(const struct tol_loaded *l, unsigned rank, struct tol_context *to,
                            struct kn_collective **collective) {
    tol_status status = TOL_OK;
    struct tol_context *contexts[KN_COLLECTIVE_RANKS_MAX];
    const unsigned ranks = l->share.ranks;
    for (unsigned i = 0; i < ranks; i++) {
        contexts[i] = i == rank ? to : l->team.part[i]->context;
        TOL_TRY(device_team_check_kind(tol_context_device(l->context),
                                       tol_context_device(contexts[i])));
    }
    *collective = NULL;
    if (ranks == 1) return TOL_OK;
    status = kn_collective_create(
        contexts, ranks,
        &(struct kn_collective_options){.way = l->team.way, .patience_ms = l->deadline_ms},
        collective);
out:
    return status;
}

tol_status loaded_team_join(struct tol_loaded *l, const struct tol_load_options *options) {
    tol_status status = TOL_OK;
    struct loaded_team *team = &l->team;
    team->way = options->way;
    TOL_TRY(loaded_team_with(l, 0, l->context, &team->collective));
    team->best = calloc(l->sessions, sizeof *team->best);
    if (l->share.ranks > 1) {
        team->logits = calloc(l->sessions * l->shape.vocabulary, sizeof *team->logits);
    }
    TOL_CHECK(team->best != NULL && (team->logits != NULL || l->share.ranks == 1),
              TOL_OUT_OF_HOST_MEMORY, "logits of %zu sessions", l->sessions);
out:
    return status;
}

void loaded_team_end(struct tol_loaded *l) {
    kn_collective_destroy(l->team.collective);
    free(l->team.best);
    free(l->team.logits);
}

/* ---- in step ---- */

tol_status loaded_team_exchange(struct tol_loaded *l, const struct loaded_columns *x) {
    struct kn_columns_part parts[KN_COLLECTIVE_RANKS_MAX];
    const struct kn_columns columns = {x->rows, x->part_bytes, x->stride};
    if (l->share.ranks == 1) return TOL_OK;
    for (unsigned i = 0; i < l->share.ranks; i++) {
        const struct tol_loaded *part = l->team.part[i];
        const struct tol_buffer *buffer = x->is_prompt ? part->prompt.buffer : part->scratch.buffer;
        const bool in_place = x->in_stride == 0;
        parts[i] = (struct kn_columns_part){
            .in = kn_place_of(buffer, in_place ? x->out + i * x->part_bytes : x->in),
            .in_stride = in_place ? x->stride : x->in_stride,
            .out = kn_place_of(buffer, x->out),
            .stream = part->stream,
            .number = kn_place_of(part->input, l->team.number_at)};
    }
    return kn_gather_columns(l->team.collective, parts, &columns);
}

tol_status loaded_team_check(const struct tol_loaded *l) {
    tol_status status = TOL_OK;
    for (unsigned i = 0; i < l->share.ranks; i++) {
        TOL_TRY(tol_context_check(l->team.part[i]->context));
    }
    TOL_CHECK(
        !l->team.is_lost, TOL_POISONED,
        "the %u devices of the model no longer respond to each other: unload it and load it again",
        l->share.ranks);
out:
    return status;
}

tol_status loaded_team_wait(struct tol_loaded *l) {
    tol_status status = TOL_OK;
    if (l->share.ranks == 1) return tol_stream_synchronize_for(l->stream, l->deadline_ms);
    status = kn_collective_wait(l->team.collective, l->deadline_ms);
    if (status != TOL_OK) l->team.is_lost = true;
    return status;
}

tol_status loaded_team_settle(struct tol_loaded *l, tol_status status) {
    enum { TEXT_BYTES = 1024 };
    char text[TEXT_BYTES] = "";
    if (status == TOL_OK || l->share.ranks == 1 || l->team.is_lost) return status;
    const int cuda = tol_message_cuda();
    strncpy(text, tol_message(), sizeof text - 1);
    (void)loaded_team_wait(l);
    return tol_fail_again(status, cuda, text);
}

/* ---- results ---- */

static size_t keys_bytes(const struct tol_loaded *l) {
    return kn_best_workspace(l->sessions);
}

size_t loaded_slots(const struct tol_loaded *l) {
    return l->sessions + 1;
}

size_t loaded_notices_bytes(const struct tol_loaded *l) {
    return loaded_slots(l) * sizeof(uint64_t);
}

size_t loaded_received_notices(const struct tol_loaded *l) {
    return keys_bytes(l);
}

size_t loaded_received_best(const struct tol_loaded *l) {
    return loaded_received_notices(l) + loaded_notices_bytes(l);
}

size_t loaded_received_logits(const struct tol_loaded *l) {
    return loaded_received_best(l) + l->sessions * sizeof(int);
}

size_t loaded_received_bytes(const struct tol_loaded *l) {
    return loaded_received_logits(l) + l->sessions * l->share.vocabulary_most * sizeof(float);
}

tol_status loaded_team_notice(struct tol_loaded *l, size_t slot, uint64_t *bits) {
    tol_status status = TOL_OK;
    *bits = kn_notice_none;
    for (unsigned i = 0; i < l->share.ranks; i++) {
        void *received = NULL;
        uint64_t own = 0;
        TOL_TRY(tol_pinned_access(l->team.part[i]->received, &received));
        memcpy(&own, (char *)received + loaded_received_notices(l) + slot * sizeof own, sizeof own);
        if (own < *bits) *bits = own;
    }
out:
    return status;
}

tol_status loaded_team_forget_notice(struct tol_loaded *l, size_t slot) {
    tol_status status = TOL_OK;
    for (unsigned i = 0; i < l->share.ranks; i++) {
        const struct tol_loaded *part = l->team.part[i];
        TOL_TRY(tol_copy_from_pageable(part->stream, part->scratch.buffer,
                                       part->scratch.notices + slot * sizeof kn_notice_none,
                                       &kn_notice_none, sizeof kn_notice_none));
    }
out:
    return status;
}

/* The token of the largest logit of a row, by kn_best_order; as a draw answers. */
static int device_team_answer(uint32_t order, int token) {
    enum { MINUS_INFINITY = 0x007fffff };
    static const uint32_t infinity = 0xff800000;
    return order >= infinity ? DRAW_BAD - token : order <= MINUS_INFINITY ? DRAW_NONE : token;
}

/* Of equal ones the first device's, whose tokens are lower. */
static int best_of(char *const *received, const struct tol_loaded *l, size_t row) {
    uint32_t highest = 0;
    int best = 0;
    for (unsigned i = 0; i < l->share.ranks; i++) {
        const struct loaded_share *share = &l->team.part[i]->share;
        const int *tokens = (const int *)(void *)(received[i] + loaded_received_best(l));
        if (share->vocabulary == 0) continue;
        const uint32_t order = kn_best_order(received[i], row);
        if (i > 0 && order <= highest) continue;
        highest = order;
        best = device_team_answer(order, tokens[row] + (int)share->first_token);
    }
    return best;
}

static void join_logits(char *const *received, struct tol_loaded *l, size_t row) {
    for (unsigned i = 0; i < l->share.ranks; i++) {
        const struct loaded_share *share = &l->team.part[i]->share;
        const char *from = received[i] + loaded_received_logits(l);
        const size_t bytes = share->vocabulary * sizeof(float);
        if (bytes == 0) continue;
        memcpy(l->team.logits + row * l->shape.vocabulary + share->first_token, from + row * bytes,
               bytes);
    }
}

tol_status loaded_team_outcome(struct tol_loaded *l, size_t wanted, bool wants_logits,
                               bool is_drawn, struct loaded_outcome *outcome) {
    tol_status status = TOL_OK;
    char *received[KN_COLLECTIVE_RANKS_MAX] = {NULL};
    for (unsigned i = 0; i < l->share.ranks; i++) {
        void *bytes = NULL;
        TOL_TRY(tol_pinned_access(l->team.part[i]->received, &bytes));
        received[i] = bytes;
    }
    *outcome = (struct loaded_outcome){
        .best = (const int *)(void *)(received[0] + loaded_received_best(l)),
        .logits = (const float *)(void *)(received[0] + loaded_received_logits(l))};
    for (size_t row = 0; row < wanted && !is_drawn; row++) {
        l->team.best[row] = best_of(received, l, row);
        if (l->share.ranks > 1 && wants_logits) join_logits(received, l, row);
    }
    if (!is_drawn) outcome->best = l->team.best;
    if (l->share.ranks > 1) outcome->logits = l->team.logits;
    if (!wants_logits) outcome->logits = NULL;
out:
    return status;
}

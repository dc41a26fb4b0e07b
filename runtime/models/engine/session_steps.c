/*
 * Sessions: prompts in pieces, and steps of several sessions in one pass.
 */
#include "decode_session.h"

#include "core/check.h"
#include "core/monotonic.h"
#include "decode/draw_arguments.h"
#include "loaded_state.h"
#include "pass.h"
#include "pass_draw.h"
#include "prompt.h"
#include "session_state.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

tol_status tol_session_create(struct tol_loaded *l, const struct tol_session_options *options,
                              struct tol_session **session) {
    tol_status status = TOL_OK;
    const struct tol_session_options none = {0};
    const struct tol_session_options *wanted = options != NULL ? options : &none;
    struct tol_session *s = NULL;
    size_t slot = 0;
    TOL_CHECK(l != NULL && session != NULL, TOL_INVALID_ARGUMENT, "a session needs a loaded model");
    s = calloc(1, sizeof *s);
    TOL_CHECK(s != NULL, TOL_OUT_OF_HOST_MEMORY, "a session");
    s->slot = SIZE_MAX;
    s->loaded = l;
    s->drawn = NONE;
    s->is_greedy = tol_sampling_is_greedy(&wanted->sampling);
    s->keeps_logits = wanted->keeps_logits;
    s->cancels = wanted->cancels;
    if (wanted->time_ms > 0) s->end_ns = tol_now_ns() + wanted->time_ms * 1000000;
    TOL_TRY(tol_sampler_create(&wanted->sampling, l->shape.vocabulary, &s->sampler));
    tol_sampler_skip(s->sampler, wanted->draws);
    s->page = calloc(l->pages_max, sizeof *s->page);
    s->tokens = calloc(l->positions, sizeof *s->tokens);
    s->logits = calloc(l->shape.vocabulary, sizeof *s->logits);
    TOL_CHECK(s->page != NULL && s->tokens != NULL && s->logits != NULL, TOL_OUT_OF_HOST_MEMORY,
              "a session");
    pthread_mutex_lock(&l->lock);
    while (slot < l->sessions && l->slots[slot] != NULL) slot++;
    if (slot < l->sessions) {
        l->slots[slot] = s;
        s->slot = slot;
    }
    pthread_mutex_unlock(&l->lock);
    TOL_CHECK(slot < l->sessions, TOL_OVER_LIMIT, "all %zu sessions of the model are in use",
              l->sessions);
    *session = s;
    s = NULL;
out:
    tol_session_destroy(s);
    return status;
}

void tol_session_destroy(struct tol_session *s) {
    if (s == NULL) return;
    if (s->slot != SIZE_MAX) {
        pthread_mutex_lock(&s->loaded->lock);
        session_shrink(s, 0);
        s->loaded->slots[s->slot] = NULL;
        pthread_mutex_unlock(&s->loaded->lock);
    }
    tol_sampler_destroy(s->sampler);
    free(s->page);
    free(s->tokens);
    free(s->logits);
    free(s);
}

static bool wants_logits(const struct tol_session *s) {
    return s->keeps_logits || !s->is_greedy;
}

/* Whether the device draws this session's tokens in steps. After a prompt the host draws. */
static bool draws_there(const struct tol_session *s) {
    return !s->is_greedy && loaded_draw_can(s->loaded, s->sampler);
}

/* Takes the results of a pass for a session, in row `row` of the wanted rows. */
static void take_outcome(struct tol_session *s, const struct loaded_outcome *outcome, size_t row,
                         bool draws) {
    const size_t vocabulary = s->loaded->shape.vocabulary;
    s->best = outcome->best[row];
    s->is_drawn = draws && (s->is_greedy || draws_there(s));
    if (wants_logits(s) && outcome->logits != NULL) {
        memcpy(s->logits, outcome->logits + row * vocabulary, vocabulary * sizeof *s->logits);
    }
    s->is_ready = true;
}

/* Whether it may go on. */
static tol_status check_time(struct tol_session *s) {
    tol_status status = TOL_OK;
    TOL_CHECK(!atomic_load(&s->is_cancelled) && !(s->cancels != NULL && atomic_load(s->cancels)),
              TOL_CANCELLED, "the session was cancelled after %zu positions", s->length);
    TOL_CHECK(s->end_ns == 0 || tol_now_ns() < s->end_ns, TOL_OVERDUE,
              "the session's time has passed after %zu positions", s->length);
out:
    return status;
}

/* ---- prompts ---- */

static tol_status session_steps_check_prompt(const struct tol_session *s, const int *tokens,
                                             size_t count) {
    tol_status status = TOL_OK;
    const size_t before = s->length + s->owed + (s->drawn != NONE);
    TOL_CHECK(count > 0, TOL_INVALID_ARGUMENT, "a prompt of no tokens");
    for (size_t i = 0; i < count; i++) {
        TOL_CHECK(tokens[i] >= 0 && (size_t)tokens[i] < s->loaded->shape.vocabulary,
                  TOL_INVALID_ARGUMENT, "token %zu of the prompt is %d; the vocabulary has %zu", i,
                  tokens[i], s->loaded->shape.vocabulary);
    }
    TOL_CHECK(count <= s->loaded->positions && before <= s->loaded->positions - count,
              TOL_OVER_LIMIT,
              "a prompt of %zu tokens after %zu positions does not fit a context of %zu", count,
              before, s->loaded->positions);
out:
    return status;
}

/* Adds positions to the session, and passes those that are new to the sampler. */
static void session_steps_advance(struct tol_session *s, const int *tokens, size_t count) {
    for (size_t i = 0; i < count; i++) {
        s->tokens[s->length] = tokens[i];
        if (s->length++ < s->heard) continue;
        tol_sampler_accept(s->sampler, tokens[i]);
        s->heard = s->length;
    }
}

/* By the length of the whole prompt, including shared positions. */
static enum session_way way_of(const struct tol_loaded *l, size_t count) {
    return l->prompt.rows > 0 && count >= l->prompt.from ? AS_PROMPT : AS_STEP;
}

/* Computes the next `count` tokens in one pass. */
static tol_status run_piece(struct tol_session *s, const int *tokens, size_t count, bool is_last,
                            enum session_way way, struct loaded_row *rows) {
    tol_status status = TOL_OK;
    struct loaded_outcome outcome;
    session_note(s, s->length, count, way);
    for (size_t i = 0; i < count; i++) {
        rows[i] = (struct loaded_row){tokens[i], (int)(s->length + i), (int)s->slot};
    }
    const struct loaded_pass pass = {
        .rows = rows, .count = count, .wanted = is_last, .wants_logits = wants_logits(s)};
    TOL_TRY(way == AS_PROMPT ? loaded_prompt_run(s->loaded, &pass, &outcome)
                             : loaded_pass_run(s->loaded, &pass, &outcome));
    session_steps_advance(s, tokens, count);
    if (is_last) take_outcome(s, &outcome, 0, false);
    status = session_take_notice(s);
out:
    return status;
}

/* The tokens of the next pass. */
static size_t piece_of(const struct tol_session *s, size_t left, enum session_way way) {
    const struct tol_loaded *l = s->loaded;
    if (way == AS_PROMPT) return left < l->prompt.rows ? left : l->prompt.rows;
    const size_t now = left < l->rows ? left : l->rows;
    const size_t room = loaded_pass_room(l, s->length + now - 1);
    return now < room ? now : room;
}

static tol_status session_steps_run_prompt(struct tol_session *s, const int *tokens, size_t count,
                                           enum session_way way) {
    tol_status status = TOL_OK;
    struct tol_loaded *l = s->loaded;
    const size_t most = l->rows > l->prompt.rows ? l->rows : l->prompt.rows;
    struct loaded_row *rows = malloc(most * sizeof *rows);
    TOL_CHECK(rows != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu rows", most);
    for (size_t done = 0, now; done < count; done += now) {
        const size_t left = count - done;
        now = piece_of(s, left, way);
        TOL_TRY(check_time(s));
        pthread_mutex_lock(&l->lock);
        status = run_piece(s, tokens + done, now, now == left, way, rows);
        pthread_mutex_unlock(&l->lock);
        TOL_TRY(status);
        TOL_TRY(session_check_notice(s));
    }
out:
    free(rows);
    return status;
}

/* Recomputes the session's positions of a page that it shared. */
static tol_status run_owed(struct tol_session *s) {
    int tokens[KN_PAGE_POSITIONS];
    const size_t owed = s->owed, end = s->length + owed;
    memcpy(tokens, s->tokens + s->length, owed * sizeof *tokens);
    const tol_status status = session_steps_run_prompt(s, tokens, owed, s->owed_way);
    s->owed = end - s->length;
    return status;
}

/* Pages for the prompt and the positions before it; shared pages of another session for its
 * beginning. */
static tol_status session_steps_take_pages(struct tol_session *s, const int *tokens, size_t count,
                                           size_t *shared) {
    tol_status status = TOL_OK;
    *shared = 0;
    if (s->loaded->shares && s->length + s->owed == 0 && s->drawn == NONE) {
        TOL_TRY(session_share(s, tokens, count, way_of(s->loaded, count), shared));
    }
    status = session_grow(s, s->length + s->owed + (s->drawn != NONE) + count);
    if (status != TOL_OK && *shared > 0) session_shrink(s, 0);
out:
    return status;
}

tol_status tol_session_prompt(struct tol_session *s, const int *tokens, size_t count) {
    tol_status status = TOL_OK;
    size_t shared = 0;
    TOL_CHECK(s != NULL && tokens != NULL, TOL_INVALID_ARGUMENT, "a prompt needs tokens");
    TOL_TRY(session_steps_check_prompt(s, tokens, count));
    TOL_TRY(session_check_notice(s));
    TOL_TRY(check_time(s));
    pthread_mutex_lock(&s->loaded->lock);
    status = session_steps_take_pages(s, tokens, count, &shared);
    if (status == TOL_OK) session_steps_advance(s, tokens, shared);
    pthread_mutex_unlock(&s->loaded->lock);
    TOL_TRY(status);
    s->is_ready = false;
    if (s->drawn != NONE) {
        const int drawn = s->drawn;
        TOL_TRY(session_steps_run_prompt(s, &drawn, 1, AS_STEP));
        s->drawn = NONE;
    }
    if (s->owed > 0) TOL_TRY(run_owed(s));
    status = session_steps_run_prompt(s, tokens + shared, count - shared, way_of(s->loaded, count));
out:
    return status;
}

/* ---- steps ---- */

static tol_status check_step(struct tol_session *s) {
    tol_status status = TOL_OK;
    TOL_TRY(session_check_notice(s));
    TOL_TRY(check_time(s));
    TOL_CHECK(s->drawn != NONE || s->is_ready, TOL_INVALID_ARGUMENT,
              "a session steps after a prompt");
    TOL_CHECK(s->drawn == NONE || s->length < s->loaded->positions, TOL_OVER_LIMIT,
              "the context of %zu positions is full", s->loaded->positions);
out:
    return status;
}

/* Computes the drawn tokens of those that have one. Steps with another status take no part. */
static tol_status session_steps_run_steps(struct tol_loaded *l, struct tol_step *steps,
                                          size_t count) {
    tol_status status = TOL_OK;
    struct loaded_row *rows = l->step_rows;
    struct tol_sampler **samplers = l->step_samplers;
    struct loaded_outcome outcome;
    size_t live = 0;
    bool wants = false, draws = false;
    for (size_t i = 0; i < count; i++) {
        struct tol_session *s = steps[i].session;
        if (steps[i].status != TOL_OK || s->drawn == NONE) continue;
        steps[i].status = session_grow(s, s->length + 1);
        if (steps[i].status != TOL_OK) continue;
        session_note(s, s->length, 1, AS_STEP);
        samplers[live] = s->sampler;
        rows[live++] = (struct loaded_row){s->drawn, (int)s->length, (int)s->slot};
        wants |= s->keeps_logits || (wants_logits(s) && !draws_there(s));
        draws |= draws_there(s);
    }
    if (live == 0) goto out;
    const struct loaded_pass pass = {.rows = rows,
                                     .count = live,
                                     .wanted = live,
                                     .wants_logits = wants,
                                     .samplers = draws ? samplers : NULL};
    TOL_TRY(loaded_pass_run(l, &pass, &outcome));
    for (size_t i = 0, row = 0; i < count; i++) {
        struct tol_session *s = steps[i].session;
        if (steps[i].status != TOL_OK || s->drawn == NONE) continue;
        session_steps_advance(s, &s->drawn, 1);
        s->drawn = NONE;
        take_outcome(s, &outcome, row++, draws);
        steps[i].status = session_take_notice(s);
    }
out:
    return status;
}

static tol_status session_steps_draw(struct tol_session *s, int *token) {
    tol_status status = session_check_notice(s);
    if (status != TOL_OK) return status;
    status = s->is_greedy || s->is_drawn ? tol_sampler_take(s->sampler, s->best, token)
                                         : tol_sampler_draw(s->sampler, s->logits, token);
    if (status == TOL_MISMATCH) return session_explain_draw(s);
    TOL_TRY(status);
    TOL_CHECK(*token >= 0 && (size_t)*token < s->loaded->shape.vocabulary, TOL_MISMATCH,
              "the device drew token %d of a vocabulary of %zu", *token,
              s->loaded->shape.vocabulary);
    tol_sampler_accept(s->sampler, *token);
    s->heard = s->length + 1;
    s->drawn = *token;
    s->is_ready = false;
out:
    return status;
}

static tol_status check_steps(const struct tol_step *steps, size_t count) {
    tol_status status = TOL_OK;
    TOL_CHECK(steps != NULL && count > 0 && steps[0].session != NULL, TOL_INVALID_ARGUMENT,
              "a step needs sessions");
    const struct tol_loaded *l = steps[0].session->loaded;
    TOL_CHECK(count <= l->sessions, TOL_INVALID_ARGUMENT, "%zu sessions; the model has %zu", count,
              l->sessions);
    for (size_t i = 0; i < count; i++) {
        TOL_CHECK(steps[i].session != NULL && steps[i].session->loaded == l, TOL_INVALID_ARGUMENT,
                  "session %zu is NULL or of another model", i);
        for (size_t j = 0; j < i; j++) {
            TOL_CHECK(steps[i].session != steps[j].session, TOL_INVALID_ARGUMENT,
                      "sessions %zu and %zu are the same", j, i);
        }
    }
out:
    return status;
}

tol_status tol_sessions_step(struct tol_step *steps, size_t count) {
    tol_status status = TOL_OK;
    TOL_TRY(check_steps(steps, count));
    struct tol_loaded *l = steps[0].session->loaded;
    for (size_t i = 0; i < count; i++) {
        steps[i].token = NONE;
        steps[i].status = check_step(steps[i].session);
    }
    pthread_mutex_lock(&l->lock);
    status = session_steps_run_steps(l, steps, count);
    pthread_mutex_unlock(&l->lock);
    for (size_t i = 0; i < count; i++) {
        if (status != TOL_OK) steps[i].status = status;
        if (steps[i].status != TOL_OK) continue;
        steps[i].status = session_steps_draw(steps[i].session, &steps[i].token);
        if (steps[i].status != TOL_OK) steps[i].token = NONE;
    }
out:
    return status;
}

tol_status tol_session_step(struct tol_session *s, int *token) {
    tol_status status = TOL_OK;
    struct tol_step step = {s, NONE, TOL_OK};
    TOL_CHECK(s != NULL && token != NULL, TOL_INVALID_ARGUMENT, "a step needs a session");
    TOL_TRY(tol_sessions_step(&step, 1));
    TOL_TRY(step.status);
    *token = step.token;
out:
    return status;
}

/* ---- the rest ---- */

void tol_session_cancel(struct tol_session *s) {
    atomic_store(&s->is_cancelled, true);
}

void tol_session_resume(struct tol_session *s) {
    atomic_store(&s->is_cancelled, false);
}

size_t tol_session_length(const struct tol_session *s) {
    return s->length + s->owed;
}

size_t tol_session_room(const struct tol_session *s) {
    return s->loaded->positions;
}

const float *tol_session_logits(const struct tol_session *s) {
    return s->keeps_logits && s->length > 0 ? s->logits : NULL;
}

tol_status tol_session_rewind(struct tol_session *s, size_t length) {
    tol_status status = TOL_OK;
    TOL_CHECK(length <= s->length + s->owed, TOL_OUT_OF_RANGE,
              "the session has %zu positions, not %zu", s->length + s->owed, length);
    pthread_mutex_lock(&s->loaded->lock);
    if (s->length > length) s->length = length;
    if (length % KN_PAGE_POSITIONS > 0 && session_is_shared(s, length)) {
        s->owed_way =
            s->page[length / KN_PAGE_POSITIONS]->made == 1U << AS_PROMPT ? AS_PROMPT : AS_STEP;
        s->length = length / KN_PAGE_POSITIONS * KN_PAGE_POSITIONS;
    }
    session_shrink(s, s->length);
    pthread_mutex_unlock(&s->loaded->lock);
    s->owed = length - s->length;
    s->heard = length;
    s->drawn = NONE;
    s->is_ready = false;
    if (length == 0) s->is_noticed = false;
out:
    return status;
}

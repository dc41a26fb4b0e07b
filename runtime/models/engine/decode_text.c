/*
 * Text from tokens, stop strings, and the ends of a text.
 */
#include "decode_text.h"

#include "core/check.h"

#include <tokenizer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tol_text {
    struct tol_session *session;
    const struct tol_tokenizer *tokenizer;
    struct tol_decoder decoder;
    struct tol_text_about about;
    size_t tokens_max;
    bool ignores_end;
    char **stops;
    size_t stop_count;
    char *pending; /* text that was decoded and not given away: fresh, then held back */
    size_t pending_bytes, pending_room, fresh_bytes;
    char message[512];
};

/* ---- stop strings ---- */

/* The first byte of the first stop string in the text; pending_bytes if there is none. */
static size_t find_stop(const struct tol_text *t) {
    size_t first = t->pending_bytes;
    for (size_t i = 0; i < t->stop_count; i++) {
        const size_t length = strlen(t->stops[i]);
        for (size_t at = 0; at + length <= t->pending_bytes && at < first; at++) {
            if (memcmp(t->pending + at, t->stops[i], length) == 0) first = at;
        }
    }
    return first;
}

/* How many bytes at the end may be the beginning of a stop string. */
static size_t held_back(const struct tol_text *t) {
    size_t most = 0;
    for (size_t i = 0; i < t->stop_count; i++) {
        const size_t length = strlen(t->stops[i]);
        size_t part = length - 1 < t->pending_bytes ? length - 1 : t->pending_bytes;
        while (part > most &&
               memcmp(t->pending + t->pending_bytes - part, t->stops[i], part) != 0) {
            part--;
        }
        if (part > most) most = part;
    }
    return most;
}

static tol_status decode_text_make_room(struct tol_text *t, size_t more) {
    tol_status status = TOL_OK;
    if (t->pending_room - t->pending_bytes >= more) return TOL_OK;
    char *grown = realloc(t->pending, 2 * (t->pending_bytes + more));
    TOL_CHECK(grown != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes of text", t->pending_bytes + more);
    t->pending = grown;
    t->pending_room = 2 * (t->pending_bytes + more);
out:
    return status;
}

/* Drops what was given away by the step before. */
static void drop_fresh(struct tol_text *t) {
    memmove(t->pending, t->pending + t->fresh_bytes, t->pending_bytes - t->fresh_bytes);
    t->pending_bytes -= t->fresh_bytes;
    t->fresh_bytes = 0;
}

/* The text is over: all of it is fresh, with a character that was begun. */
static tol_status decode_text_finish(struct tol_text *t, enum tol_text_end end) {
    tol_status status = TOL_OK;
    size_t bytes = 0;
    TOL_TRY(decode_text_make_room(t, tol_decoder_room(t->tokenizer)));
    TOL_TRY(tol_decoder_end(&t->decoder, t->pending + t->pending_bytes,
                            t->pending_room - t->pending_bytes, &bytes));
    t->pending_bytes += bytes;
    t->fresh_bytes = t->pending_bytes;
    t->about.end = end;
out:
    return status;
}

static tol_status take_token(struct tol_text *t, int token) {
    tol_status status = TOL_OK;
    size_t bytes = 0;
    t->about.token = token;
    if (tol_tokenizer_is_end(t->tokenizer, token) && !t->ignores_end) {
        return decode_text_finish(t, TOL_TEXT_END_TOKEN);
    }
    t->about.tokens++;
    TOL_TRY(decode_text_make_room(t, tol_decoder_room(t->tokenizer)));
    TOL_TRY(tol_decoder_push(&t->decoder, token, t->pending + t->pending_bytes,
                             t->pending_room - t->pending_bytes, &bytes));
    t->pending_bytes += bytes;
    const size_t stop = find_stop(t);
    if (stop < t->pending_bytes) {
        t->fresh_bytes = t->pending_bytes = stop;
        t->about.end = TOL_TEXT_STOP_STRING;
        return TOL_OK;
    }
    if (t->about.tokens == t->tokens_max) return decode_text_finish(t, TOL_TEXT_LENGTH);
    t->fresh_bytes = t->pending_bytes - held_back(t);
    /* The token has a position to be computed at, or nothing can follow it. What is computed when
     * it is drawn is all before it; a replay computes later. */
    if (t->about.prompt_tokens + t->about.tokens - 1 == tol_session_room(t->session)) {
        return decode_text_finish(t, TOL_TEXT_CONTEXT);
    }
out:
    return status;
}

/* ---- the text ---- */

static tol_status copy_stops(struct tol_text *t, const struct tol_text_options *options) {
    tol_status status = TOL_OK;
    t->stops = calloc(options->stop_count + 1, sizeof *t->stops);
    TOL_CHECK(t->stops != NULL, TOL_OUT_OF_HOST_MEMORY, "stop strings");
    for (size_t i = 0; i < options->stop_count; i++) {
        TOL_CHECK(options->stops[i] != NULL && options->stops[i][0] != '\0', TOL_INVALID_ARGUMENT,
                  "stop string %zu is empty", i);
        t->stops[i] = strdup(options->stops[i]);
        TOL_CHECK(t->stops[i] != NULL, TOL_OUT_OF_HOST_MEMORY, "stop strings");
        t->stop_count++;
    }
out:
    return status;
}

static bool decode_text_is_cancelled(const void *user) {
    return atomic_load((const atomic_bool *)user);
}

/* The tokens of the prompt, and room for more of them. Free *tokens. */
static tol_status decode_text_encode(struct tol_text *t, const struct tol_text_options *options,
                                     const char *prompt, size_t bytes, size_t more,
                                     int32_t **tokens) {
    enum { ADDED = 8 }; /* more than what is added to a text */
    tol_status status = TOL_OK;
    const size_t positions = tol_session_room(t->session);
    /* A byte has three tokens at most: a space of SPM that is three bytes. */
    const size_t most = bytes < positions ? 3 * bytes + ADDED : positions;
    const size_t room = most < positions ? most : positions;
    const struct tol_encode_options encoding = {
        .add_special = true,
        .parse_special = options->parses_special,
        .tokens_max = positions,
        .is_cancelled = options->cancels != NULL ? decode_text_is_cancelled : NULL,
        .user = options->cancels};
    size_t count = 0;
    *tokens = malloc((room + more) * sizeof **tokens);
    TOL_CHECK(*tokens != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu tokens", room + more);
    status = tol_tokenizer_encode(t->tokenizer, prompt, bytes, &encoding, *tokens, room, &count);
    TOL_CHECK(status != TOL_OVER_LIMIT, TOL_OVER_LIMIT,
              "the prompt has more than %zu tokens, and the context %zu positions", positions,
              positions);
    TOL_TRY(status);
    TOL_CHECK(count > 0, TOL_INVALID_ARGUMENT, "the prompt has no tokens");
    t->about.prompt_tokens = count;
out:
    return status;
}

/* Takes tokens that another process drew; all text of them is fresh. */
static tol_status decode_text_replay(struct tol_text *t, const int *tokens, size_t count) {
    tol_status status = TOL_OK;
    for (size_t i = 0; i < count; i++) {
        TOL_CHECK(t->about.end == TOL_TEXT_GOES_ON, TOL_MISMATCH,
                  "the text that is replayed ends after %zu of %zu tokens: it was drawn with other "
                  "options",
                  i, count);
        TOL_TRY(take_token(t, tokens[i]));
    }
out:
    return status;
}

static tol_status decode_text_run_prompt(struct tol_text *t, const struct tol_text_options *options,
                                         const char *prompt, size_t bytes) {
    tol_status status = TOL_OK;
    const size_t replayed = options->replayed_count;
    int32_t *tokens = NULL;
    TOL_TRY(decode_text_encode(t, options, prompt, bytes, replayed, &tokens));
    const size_t count = t->about.prompt_tokens;
    TOL_TRY(decode_text_replay(t, options->replayed, replayed));
    if (t->about.end != TOL_TEXT_GOES_ON) goto out; /* there is nothing to compute any more */
    if (replayed > 0) memcpy(tokens + count, options->replayed, replayed * sizeof *tokens);
    status = tol_session_prompt(t->session, tokens, count + replayed);
out:
    free(tokens);
    return status;
}

tol_status tol_text_create(struct tol_loaded *loaded, const struct tol_tokenizer *tokenizer,
                           const struct tol_text_options *options, const char *prompt, size_t bytes,
                           struct tol_text **text) {
    tol_status status = TOL_OK;
    const struct tol_text_options none = {.tokens_max = 0};
    const struct tol_text_options *wanted = options != NULL ? options : &none;
    struct tol_text *t = NULL;
    TOL_CHECK(loaded != NULL && tokenizer != NULL && prompt != NULL && text != NULL,
              TOL_INVALID_ARGUMENT, "a text needs a loaded model, a tokenizer and a prompt");
    TOL_CHECK(wanted->replayed != NULL || wanted->replayed_count == 0, TOL_INVALID_ARGUMENT,
              "%zu tokens to replay are NULL", wanted->replayed_count);
    t = calloc(1, sizeof *t);
    TOL_CHECK(t != NULL, TOL_OUT_OF_HOST_MEMORY, "a text");
    t->tokenizer = tokenizer;
    t->tokens_max = wanted->tokens_max;
    t->ignores_end = wanted->ignores_end;
    t->about.token = TOL_TOKEN_NONE;
    TOL_TRY(decode_text_make_room(t, tol_decoder_room(tokenizer)));
    TOL_TRY(copy_stops(t, wanted));
    tol_decoder_begin(&t->decoder, tokenizer, false, false);
    TOL_TRY(tol_session_create(loaded,
                               &(struct tol_session_options){.sampling = wanted->sampling,
                                                             .cancels = wanted->cancels,
                                                             .draws = wanted->replayed_count},
                               &t->session));
    TOL_TRY(decode_text_run_prompt(t, wanted, prompt, bytes));
    *text = t;
    t = NULL;
out:
    tol_text_destroy(t);
    return status;
}

void tol_text_destroy(struct tol_text *t) {
    if (t == NULL) return;
    tol_session_destroy(t->session);
    for (size_t i = 0; i < t->stop_count; i++) free(t->stops[i]);
    free(t->stops);
    free(t->pending);
    free(t);
}

tol_status tol_texts_step(struct tol_text *const *texts, size_t count) {
    tol_status status = TOL_OK;
    enum { FEW = 32 };
    struct tol_step few[FEW], *many = NULL, *steps = few;
    size_t live = 0;
    TOL_CHECK(texts != NULL, TOL_INVALID_ARGUMENT, "a step needs texts");
    if (count > FEW) {
        steps = many = malloc(count * sizeof *many);
        TOL_CHECK(many != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu steps", count);
    }
    for (size_t i = 0; i < count; i++) {
        drop_fresh(texts[i]);
        if (texts[i]->about.end == TOL_TEXT_GOES_ON) steps[live++].session = texts[i]->session;
    }
    if (live == 0) goto out;
    TOL_TRY(tol_sessions_step(steps, live));
    for (size_t i = 0, at = 0; i < count; i++) {
        struct tol_text *t = texts[i];
        if (t->about.end != TOL_TEXT_GOES_ON) continue;
        t->about.status = steps[at].status;
        if (t->about.status == TOL_OK) t->about.status = take_token(t, steps[at].token);
        if (t->about.status != TOL_OK) {
            t->about.end = TOL_TEXT_FAILED;
            const char *own = tol_session_trouble(t->session);
            const bool has_own = t->about.status == TOL_MISMATCH && own[0] != '\0';
            snprintf(t->message, sizeof t->message, "%s", has_own ? own : tol_message());
        }
        at++;
    }
out:
    free(many);
    return status;
}

struct tol_gguf_text tol_text_fresh(const struct tol_text *t) {
    return (struct tol_gguf_text){t->pending, t->fresh_bytes};
}

struct tol_text_about tol_text_about(const struct tol_text *t) {
    struct tol_text_about about = t->about;
    about.message = t->message;
    return about;
}

const char *tol_text_end_name(enum tol_text_end end) {
    static const char *const names[] = {"", "end", "stop", "length", "context", "failed"};
    return (unsigned)end < sizeof names / sizeof names[0] ? names[end] : "?";
}

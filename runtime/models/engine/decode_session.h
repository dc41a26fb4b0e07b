/*
 * Session: one text on a loaded model: its positions' keys and values, and the draw of its next
 * token.
 *
 *     tol_session_create(loaded, &options, &session);
 *     tol_session_prompt(session, tokens, count);
 *     while (...) tol_session_step(session, &token);
 *
 * Several sessions step together with tol_sessions_step, and may join and leave between steps. What
 * a session gets does not depend on those beside it, bit for bit. Keys and values are in pages of
 * 16 positions from the loaded model's pool; if a page cannot be had, that session's step fails
 * with TOL_OUT_OF_DEVICE_MEMORY, it keeps what it has, and the others go on.
 *
 * A session whose first prompt begins with 16 tokens or more that another session of the model has
 * computed shares its full pages, and computes only the rest; what it gets is the same bits. Shared
 * pages are never written: a session that goes back into one gets a page for itself.
 *
 * Threads: a session is for one thread at a time, but tol_session_cancel may come from any.
 */
#ifndef TOLLENS_DECODE_SESSION_H
#define TOLLENS_DECODE_SESSION_H

#include <stdatomic.h>

#include "loaded.h"
#include "token_sampler.h"

struct tol_session;

/* All zero are the defaults. */
struct tol_session_options {
    struct tol_sampling sampling;
    bool keeps_logits; /* tol_session_logits has them after each pass */
    /* May be NULL. While it is true the session is cancelled, as by tol_session_cancel: one flag
     * for several sessions, which a handler of signals may set. */
    const atomic_bool *cancels;
    /* Milliseconds from now on, of the monotonic clock, after which steps and the rest of a prompt
     * fail with TOL_OVERDUE; 0: any time. A pass that has begun is not ended. */
    uint64_t time_ms;
    /* Draws of this text that another session has made: the generator skips them. Their
     * tokens are the end of the first prompt. */
    size_t draws;
};

/* TOL_OVER_LIMIT: the loaded model has no more sessions. TOL_INVALID_ARGUMENT: as
 * tol_sampler_create. The caller destroys *session, before the model is unloaded. */
TOL_API tol_status tol_session_create(struct tol_loaded *loaded,
                                      const struct tol_session_options *options,
                                      struct tol_session **session);

/* Gives its pages back. NULL is a no-op. */
TOL_API void tol_session_destroy(struct tol_session *session);

/*
 * Appends tokens to the text and computes them. A token that was drawn last belongs before them and
 * is computed too. TOL_INVALID_ARGUMENT: no tokens, or one outside the vocabulary. TOL_OVER_LIMIT:
 * they do not fit the session's positions; nothing was computed. TOL_OUT_OF_DEVICE_MEMORY: no page
 * for them; nothing was computed. TOL_CANCELLED, TOL_OVERDUE. TOL_MISMATCH: a
 * key or value is not finite, or beyond the range of the cache (kn_cache_end); the message names
 * the layer, and where values stop being finite. The session has no further use until it is
 * rewound to 0. TOL_POISONED, TOL_TIMEOUT, TOL_DRIVER_ERROR: the session is over.
 */
TOL_API tol_status tol_session_prompt(struct tol_session *session, const int *tokens, size_t count);

/* Computes the token that was drawn last, if there is one, and draws the next. Fails as
 * tol_session_prompt; TOL_INVALID_ARGUMENT: there was no prompt. TOL_MISMATCH: as
 * tol_session_prompt, or as tol_sampler_draw; then the message also names the layer in which values
 * stop being finite. */
TOL_API tol_status tol_session_step(struct tol_session *session, int *token);

/* One step of several sessions of one loaded model, in one pass. */
struct tol_step {
    struct tol_session *session;
    int token;         /* drawn; -1 if status is not TOL_OK */
    tol_status status; /* of this session, as tol_session_step would fail */
};

/* Returns the status of the pass: if it is not TOL_OK, that of each step is the same.
 * TOL_INVALID_ARGUMENT: sessions of several models, or one twice. */
TOL_API tol_status tol_sessions_step(struct tol_step *steps, size_t count);

/* Makes the next step, or the rest of a prompt, fail with TOL_CANCELLED, until tol_session_resume.
 * */
TOL_API void tol_session_cancel(struct tol_session *session);
TOL_API void tol_session_resume(struct tol_session *session);

/* Positions that were computed, and that a session can have. */
TOL_API size_t tol_session_length(const struct tol_session *session);
TOL_API size_t tol_session_room(const struct tol_session *session);

/* The logits of the latest position, if the session keeps them; else NULL. Valid until the next
 * call on the session. */
TOL_API const float *tol_session_logits(const struct tol_session *session);

/* Forgets the positions from length on, and gives their pages back. The text ends with the token at
 * length - 1; the next call must be a prompt. The sampler's history stays as it is.
 * TOL_OUT_OF_RANGE: the session has fewer. */
TOL_API tol_status tol_session_rewind(struct tol_session *session, size_t length);

#endif

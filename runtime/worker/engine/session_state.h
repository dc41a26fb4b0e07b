/*
 * Session state: what a session consists of, for the files that step it and look at its pages.
 */
#ifndef TOLLENS_SESSION_STATE_H
#define TOLLENS_SESSION_STATE_H

#include "decode_session.h"

struct tol_session {
    struct tol_loaded *loaded;
    size_t slot;
    struct tol_sampler *sampler;
    bool is_greedy, keeps_logits;
    struct tol_block *blocks; /* of its pages, pages_max */
    size_t pages;
    size_t length; /* positions computed */
    int drawn;     /* a token that was drawn and not computed; -1: none */
    bool is_ready; /* the latest position has an outcome to draw from */
    int best;      /* its largest logit's token */
    float *logits; /* of the latest position; NULL if greedy and nobody wants them */
    atomic_bool is_cancelled;
    const atomic_bool *cancels;
};

/* Gets pages until there is room for `length` positions. The caller holds the lock.
 * TOL_OUT_OF_DEVICE_MEMORY: it has as many as before. */
tol_status session_grow(struct tol_session *session, size_t length);

/* Gives back the pages behind `length` positions. */
void session_shrink(struct tol_session *session, size_t length);

#endif

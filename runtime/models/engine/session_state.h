/*
 * Session state: what a session consists of, for the files that step it and look at its pages.
 */
#ifndef TOLLENS_SESSION_STATE_H
#define TOLLENS_SESSION_STATE_H

#include "decode_session.h"

/* The keys and values of 16 positions. Full pages may be of several sessions whose texts begin
 * alike; they are not written again. */
struct session_page {
    size_t users;
    unsigned made; /* by which ways its positions were computed: 1 << enum session_way each */
    struct tol_block there; /* where it moves to, while it moves */
    bool moves;
    struct tol_block block[]; /* on each of the model's devices */
};

/* How a position is computed. Both give bits that depend on its session alone, but not the same. */
enum session_way {
    AS_STEP,  /* pass.h */
    AS_PROMPT /* prompt.h */
};

enum { TROUBLE_BYTES = 512 };

struct tol_session {
    struct tol_loaded *loaded;
    size_t slot;
    struct tol_sampler *sampler;
    bool is_greedy, keeps_logits;
    bool is_drawn;              /* `best` is what the device drew */
    struct session_page **page; /* pages_max */
    size_t pages;
    int *tokens;               /* of its positions */
    size_t length;             /* positions computed */
    enum session_way owed_way; /* of the page that the owed positions are in */
    size_t owed;     /* after them, whose page was shared when the session went back into it: they
                    * are computed again before the next prompt */
    size_t heard;    /* positions that the sampler's history has */
    uint64_t end_ns; /* of its time, of the monotonic clock; 0: none */
    int drawn;       /* a token that was drawn and not computed; -1: none */
    bool is_ready;   /* the latest position has an outcome to draw from */
    int best;        /* its largest logit's token */
    float *logits;   /* of the latest position; NULL if greedy and not wanted */
    atomic_bool is_cancelled;
    const atomic_bool *cancels;
    bool is_noticed; /* the cache does not have what was computed: it cannot go on (see notice) */
    struct kn_notice notice;
    char trouble[TROUBLE_BYTES]; /* the sentence; "" until it was made */
};

/* Takes what the latest pass noted of the session. The caller holds the lock. */
tol_status session_take_notice(struct tol_session *session);

/* TOL_MISMATCH: the session was noticed; the message says where its values stop being finite, or
 * stop fitting the cache. The caller does not hold the lock. */
tol_status session_check_notice(struct tol_session *session);

/* After a draw that failed because of a logit: adds to its message where values stop being finite.
 * Returns TOL_MISMATCH. The caller does not hold the lock. */
tol_status session_explain_draw(struct tol_session *session);

/* Adds pages until `length` positions fit. The caller holds the lock.
 * TOL_OUT_OF_DEVICE_MEMORY: its length is unchanged. */
tol_status session_grow(struct tol_session *session, size_t length);

/* Releases the pages after `length` positions, or its share in them. */
void session_shrink(struct tol_session *session, size_t length);

/*
 * Shares pages of the other session of the model whose text begins with most of these tokens: full
 * ones that were computed in this way alone, and never all tokens, so that a position is left to be
 * computed. The session has none yet.
 * *positions: how many it has now. The caller holds the lock.
 */
tol_status session_share(struct tol_session *session, const int *tokens, size_t count,
                         enum session_way way, size_t *positions);

/* Notes that positions from `first` on are computed in this way. The caller holds the lock. */
void session_note(struct tol_session *session, size_t first, size_t count, enum session_way way);

/* Whether another session has the page of this position, too. The caller holds the lock. */
bool session_is_shared(const struct tol_session *session, size_t position);

#endif

/*
 * Limit: the smallest fault of a ladder that a claim's attacks notice.
 */
#ifndef HYP_LIMIT_H
#define HYP_LIMIT_H

#include "attack/ladder.h"

struct hyp_limit {
    char fault[HYP_LADDER_NAME_BYTES];
    char noticed[HYP_LADDER_NAME_BYTES]; /* the finest step that was noticed; "": none */
    char missed[HYP_LADDER_NAME_BYTES];  /* the step after it, which was not; "": none */
};

/* Tries a saboteur and sets *noticed. false: it could not be tried; hyp_error(). */
typedef bool (*hyp_limit_try)(void *user, const char *saboteur, bool *noticed);

/*
 * Searches a ladder: first the finest step, and if that is not noticed the rest by halves. A fault
 * is taken to be noticed if a finer one is, so both steps of the result were tried, and others need
 * not have been. false: a step could not be tried; hyp_error().
 */
bool hyp_limit_search(const struct hyp_ladder *ladder, hyp_limit_try try_step, void *user,
                      struct hyp_limit *limit);

#endif

/*
 * Timeline: one of all attacks of a run, `tollens run --trace FILE`.
 *
 * Each attack is a process, and adds its events to the list that the run began; the run ends it.
 * Attacks on claims about time are left out, since a trace would cost what they measure, and so are
 * those under saboteurs.
 */
#ifndef HYP_TIMELINE_H
#define HYP_TIMELINE_H

#include "harness/session.h"

enum { HYP_TRACE_EVERY_MAX = 1000000 };

/* Begins the file anew and lets the workers know of it, and of every and share, which are as in
 * tol_trace_options: 0 for its own choice. false: hyp_error(). */
bool hyp_timeline_begin(const char *path, unsigned every, unsigned share);

/* Ends it, so that it is JSON. false: hyp_error(). Does nothing where none was begun. */
bool hyp_timeline_end(void);

/* Whether an attack is to be traced. */
bool hyp_timeline_wants(const struct hyp_session *session, const char *suite);

/* What the run asked for, as TOLLENS_TRACE_EVERY and TOLLENS_TRACE_SHARE. false: hyp_error(). */
bool hyp_timeline_options(struct tol_trace_options *options);

/* Adds this process's trace under its name. false: hyp_error(). */
bool hyp_timeline_add(const struct hyp_session *session, const char *name);

#endif

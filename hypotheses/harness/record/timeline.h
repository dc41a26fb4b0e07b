/*
 * Timeline: one trace of all attacks of a run, `tollens run --trace FILE`.
 *
 * The run begins the file, each attack's process adds its events, and the run ends the file.
 * Attacks on claims about time are not traced, because tracing would change the times; neither are
 * attacks under a saboteur.
 */
#ifndef HYP_TIMELINE_H
#define HYP_TIMELINE_H

#include "harness/session.h"

enum { HYP_TRACE_EVERY_MAX = 1000000 };

/* Begins the file and passes its path, every and share to the workers. every and share are those of
 * tol_trace_options; 0 selects the default. false: hyp_error(). */
bool hyp_timeline_begin(const char *path, unsigned every, unsigned share);

/* Completes the JSON of the file, if one was begun. false: hyp_error(). */
bool hyp_timeline_end(void);

/* Whether an attack must be traced. */
bool hyp_timeline_wants(const struct hyp_session *session, const char *suite);

/* Reads the run's TOLLENS_TRACE_EVERY and TOLLENS_TRACE_SHARE. false: hyp_error(). */
bool hyp_timeline_options(struct tol_trace_options *options);

/* Adds this process's trace under its name. false: hyp_error(). */
bool hyp_timeline_add(const struct hyp_session *session, const char *name);

#endif

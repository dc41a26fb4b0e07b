/*
 * Timeline: one of all attacks of a run, `tollens run --trace FILE`.
 *
 * Each attack is a process, and adds its events to the list that the run began; the run ends it.
 * Attacks on claims about time are left out, since a trace would cost what they measure, and so are
 * those under saboteurs.
 */
#ifndef HYP_TIMELINE_H
#define HYP_TIMELINE_H

#include "session.h"

/* Begins the file anew and lets the workers know of it. false: hyp_error(). */
bool hyp_timeline_begin(const char *path);

/* Ends it, so that it is JSON. false: hyp_error(). Does nothing where none was begun. */
bool hyp_timeline_end(void);

/* Whether an attack is to be traced. */
bool hyp_timeline_wants(const struct hyp_session *session, const char *suite);

/* Adds this process's trace under its name. false: hyp_error(). */
bool hyp_timeline_add(const struct hyp_session *session, const char *name);

#endif

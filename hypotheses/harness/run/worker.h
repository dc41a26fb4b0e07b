/*
 * Worker: a process in which Criterion runs the attacks of one claim, each in its own process.
 *
 * `tollens run` starts this program again as `tollens attack h03` and reads the result of each test
 * from a pipe, line by line. A crash, a kill or a deadline therefore ends the worker and not the
 * run.
 *
 *     begin NAME
 *     end NAME passed|failed|skipped|crashed|overdue DETAIL
 */
#ifndef HYP_WORKER_H
#define HYP_WORKER_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a glob of --filter matches an attack's name, or "H3/" and its name, ignoring case. A NULL
 * filter matches all. */
bool hyp_worker_chooses(const char *filter, const char *suite, const char *attack);

/* Lists up to room names of a suite's attacks that match a filter, in the order they run.
 * Returns the number of matches. The names remain valid. */
size_t hyp_worker_list(const char *suite, const char *filter, const char **names, size_t room);

/* Runs the attacks of a suite that match a filter, each for at most deadline_s seconds, and
 * writes the lines above to a file descriptor. Returns the exit code: 0, or 2 if Criterion
 * itself failed. */
int hyp_worker_run(const char *suite, const char *filter, int pipe, double deadline_s);

#endif

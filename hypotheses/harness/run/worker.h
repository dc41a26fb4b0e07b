/*
 * Worker: a process in which Criterion runs one claim's attacks, each in a process of its own.
 *
 * `tollens run` starts this program again as `tollens attack h03`, and reads from a pipe, a line at
 * a time, what becomes of each test: so a crash, a kill or a deadline takes the worker and not the
 * run.
 *
 *     begin NAME
 *     end NAME passed|failed|skipped|crashed|overdue DETAIL
 */
#ifndef HYP_WORKER_H
#define HYP_WORKER_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a glob of --filter chooses an attack: by its name, or by "H3/" and its name. Capital and
 * small letters are the same. filter NULL: all are chosen. */
bool hyp_worker_chooses(const char *filter, const char *suite, const char *attack);

/* The names of a suite's attacks that a filter chooses, in the order they run; at most room of
 * them. Returns how many there are. The names live as long as the program. */
size_t hyp_worker_list(const char *suite, const char *filter, const char **names, size_t room);

/* Runs what a filter chooses of a suite; the lines above go to the file descriptor. deadline_s is
 * what each attack may take. Returns the exit code: 0, or 2 where Criterion itself failed. */
int hyp_worker_run(const char *suite, const char *filter, int pipe, double deadline_s);

#endif

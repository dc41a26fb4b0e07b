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

#include <stddef.h>

/* The names of a suite's attacks, in the order they run; at most room of them. Returns how many
 * there are. The names live as long as the program. */
size_t hyp_worker_list(const char *suite, const char **names, size_t room);

/* Runs a suite; the lines above go to the file descriptor. deadline_s is what each attack may take.
 * Returns the exit code: 0, or 2 where Criterion itself failed. */
int hyp_worker_run(const char *suite, int pipe, double deadline_s);

#endif

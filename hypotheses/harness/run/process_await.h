/*
 * Process await: waits for a child process that may never end.
 */
#ifndef HYP_PROCESS_AWAIT_H
#define HYP_PROCESS_AWAIT_H

#include <stdbool.h>
#include <sys/types.h>

/* Reaps a child and sets its wait status. Waits for at most `seconds`, or for as long as it takes
 * if that is 0. false: it still runs, and is reaped when this process ends. */
bool hyp_process_await(pid_t process, double seconds, int *status);

#endif

/*
 * The end of a process, for `tollens soft`.
 */
#ifndef SOFT_PROCESS_END_H
#define SOFT_PROCESS_END_H

/* Called once the device is initialised: appends a line of JSON to the file that
 * TOLLENS_SOFT_SUMMARY names, and a second one with the counts when the process ends. Before that
 * one the queued work is executed, for a limited time, and what could not be tested is reported as
 * a finding, refused or not run. A process that is killed or calls _exit adds no second line.
 * Thread-safe. */
void soft_process_end_watch(void);

#endif

/*
 * Usage: a process's use of the device, for the summary at its end. Thread-safe.
 */
#ifndef SOFT_USAGE_H
#define SOFT_USAGE_H

#include "lower/loaded_module.h"

/* Counts a launch that begins. The caller holds soft_lock. */
void soft_usage_launch(struct soft_function *function);

/* Called once the device is initialised: when the process ends, a line of JSON is appended to the
 * file that TOLLENS_SOFT_SUMMARY names. A process that is killed or calls _exit adds none. */
void soft_usage_watch_exit(void);

#endif

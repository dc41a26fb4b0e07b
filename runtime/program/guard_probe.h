/*
 * What a guard learns about devices from other processes: their number, and whether one works.
 */
#ifndef HYP_GUARD_PROBE_H
#define HYP_GUARD_PROBE_H

/* Prints "cuda:0,cuda:1", or why there is none. Returns the exit code. */
int hyp_guard_count(void);

/* Runs a kernel on the device of TOLLENS_DEVICE and reads its counters. Prints why it cannot be
 * used, one line. Returns the exit code. */
int hyp_guard_probe(void);

#endif

/*
 * Collectives of processes, timed: each device has a process of its own. Internal to the bench.
 */
#ifndef KN_COLLECTIVES_PROCESSES_H
#define KN_COLLECTIVES_PROCESSES_H

#include "bench/nccl.h"

enum { KN_PROCESS_ROWS_MAX = 64 };

struct kn_process_row {
    enum kn_nccl_call call;
    enum kn_type type;
    size_t bytes; /* of the larger buffer of a rank */
    unsigned calls;
    /* One of `calls` queued calls, and one call and its wait: ours, and NCCL's, a process a rank
     * too. 0: not measured. */
    double us[2], alone_us[2];
    bool is_wrong; /* an all-reduce of fp32 whose result is not the sum */
};

/* Measures rows, in processes that it forks: the caller has not opened a driver yet. turns are for
 * each of the times, and those of ours and NCCL's alternate. false: a process failed; reason says
 * why. Where those with NCCL fail, the rows are measured without it, and reason says why too. One
 * device: nothing is measured, and that is no failure. */
bool kn_processes_measure(const char *library, struct kn_process_row *rows, size_t count,
                          unsigned turns, char *reason, size_t bytes);

#endif

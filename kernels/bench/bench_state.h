/*
 * What the bench keeps while it runs: rows so far, events, peers. Of kernel_bench.c, which times
 * rows, and bench_program.c, the program around it.
 *
 * Internal: not installed.
 */
#ifndef KN_BENCH_STATE_H
#define KN_BENCH_STATE_H

#include "bench_peer.h"
#include "device_state.h"
#include "ggml_times.h"
#include "kernel_bench.h"

enum { KN_BENCH_ROWS_MAX = 2048, KN_BENCH_OPERATIONS_MAX = 32 };

struct kn_bench_state {
    struct kn_bench_row rows[KN_BENCH_ROWS_MAX];
    size_t count;
    struct tol_event *begin, *end;
    float *values;                    /* random ones, from which buffers are filled */
    struct kn_peer *peer;             /* in another process; NULL: none */
    const struct kn_ggml_times *ggml; /* NULL: none */
    size_t impossible;                /* figures that the device cannot reach */
    size_t wrong;                     /* results that deviate */
    struct {
        const char *operation; /* or a group of them, by the name of its file */
        struct kn_device_state before, after;
    } states[KN_BENCH_OPERATIONS_MAX]; /* of the operations that had rows, if NVML is there */
    size_t states_count;
};

/* In the order of their names. */
const struct kn_bench_operation *kn_bench_operations(void);

#endif

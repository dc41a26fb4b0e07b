/*
 * Results as they were timed, beside the oracles: a few elements of each row of the bench, so that
 * no time of a wrong kernel is shown as if it were right. Tests and claims check all of them.
 *
 * Internal: not installed.
 */
#ifndef KN_BENCH_CHECK_H
#define KN_BENCH_CHECK_H

#include "deviation.h"
#include "kernel_bench.h"

/* What elements must be. allowed: the deviation of each; NULL: by the tolerance. */
struct kn_bench_right {
    const double *values, *allowed;
    struct kn_tolerance tolerance;
    size_t count;
};

/* Reads elements of a buffer, from first on, as floats. Fails as tol_buffer_read_at does. */
tol_status kn_bench_read(enum kn_type type, const struct tol_buffer *buffer, size_t first,
                         size_t count, float *values);

/* Compares elements of a buffer, from first on, with what they must be. by is who computed them,
 * the row's variant or the name of a peer. What deviates is printed, and fails the run at its end.
 * Fails as tol_buffer_read_at does. */
tol_status kn_bench_check(struct kn_bench *bench, const struct kn_bench_row *row, const char *by,
                          enum kn_type type, const struct tol_buffer *buffer, size_t first,
                          const struct kn_bench_right *right);

/* Says that a result is wrong, and fails the run at its end. */
void kn_bench_wrong(struct kn_bench *bench, const struct kn_bench_row *row, const char *by,
                    const char *how);

#endif

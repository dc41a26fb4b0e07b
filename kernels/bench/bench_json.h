/*
 * Bench JSON: the rows of a run so far, as a file. Internal: not installed.
 */
#ifndef KN_BENCH_JSON_H
#define KN_BENCH_JSON_H

#include "kernel_bench.h"

/*
 * Writes the device, its states and all rows so far to a file, which replaces the one that is there
 * only when it is whole; until then its name is path with ".part" appended. (What is no file, such
 * as a pipe, is written as it is.) is_complete: the run has
 * made all its rows ("complete"). reason: why it ended before, or "" ("error"); it is copied. One
 * thread. TOL_INVALID_ARGUMENT: it cannot be written, and the file at path is as it was.
 * TOL_OUT_OF_HOST_MEMORY.
 */
tol_status kn_bench_json_write(const struct kn_bench *bench, const char *path, bool is_complete,
                               const char *reason);

#endif

/*
 * Alike: moves as many bytes as an operation and does nothing with them. A copy of a GiB hides what
 * a launch costs; these show the part of the cost that no kernel of this size avoids. Internal: not
 * installed.
 */
#ifndef KN_ALIKE_H
#define KN_ALIKE_H

#include "kernel_bench.h"

/* Both time launches as kn_bench_measure does, and fill in row->us. The caller sets the row's
 * operation, shape, variant and bytes. Launches use `sets` buffers of `bytes` bytes in turn. */

/* A kernel that reads `bytes`, a multiple of 16, and writes a word for each 32 KiB. */
tol_status kn_bench_reading(struct kn_bench *bench, struct kn_bench_row *row,
                            struct tol_buffer *const *buffers, size_t sets, size_t bytes);

/* The driver's copy of `bytes` on the device. */
tol_status kn_bench_copying(struct kn_bench *bench, struct kn_bench_row *row,
                            struct tol_buffer *const *from, struct tol_buffer *const *to,
                            size_t sets, size_t bytes);

#endif

/*
 * Alike: what moves as many bytes as an operation and does nothing with them. A copy of a GiB hides
 * what every launch costs beside its bytes; these show how much of that an operation cannot help.
 */
#ifndef KN_ALIKE_H
#define KN_ALIKE_H

#include "kernel_bench.h"

/* Both as kn_bench_measure, which row is for: the operation, shape and variant to print, and bytes
 * that are moved; us is filled in. They go round `sets` buffers, which hold so many bytes. */

/* A kernel that reads `bytes`, a multiple of 16, and writes a word for each 32 KiB. */
tol_status kn_bench_reading(struct kn_bench *bench, struct kn_bench_row *row,
                            struct tol_buffer *const *buffers, size_t sets, size_t bytes);

/* The driver's copy of `bytes` on the device. */
tol_status kn_bench_copying(struct kn_bench *bench, struct kn_bench_row *row,
                            struct tol_buffer *const *from, struct tol_buffer *const *to,
                            size_t sets, size_t bytes);

#endif

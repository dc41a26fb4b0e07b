/*
 * The library that the claim is about: it sums integers in device memory.
 *
 * Threads: use a reduce_sum from one thread at a time. Nothing here knows about the attacks.
 */
#ifndef REDUCE_SUM_H
#define REDUCE_SUM_H

#include <stdint.h>
#include <tollens.h>

struct reduce_sum;

/* Compiles the kernel for the context's device. Errors are those of tol_module_load. */
tol_status reduce_sum_create(struct tol_context *context, struct reduce_sum **reduce);
void reduce_sum_destroy(struct reduce_sum *reduce);

/* Sums count 32-bit numbers, beginning at element first of the buffer, and waits for the sum.
 * TOL_OUT_OF_RANGE: the buffer has fewer numbers. */
tol_status reduce_sum_run(struct reduce_sum *reduce, struct tol_stream *stream,
                          const struct tol_buffer *values, uint32_t first, uint32_t count,
                          uint64_t *sum);

#endif

/*
 * Your library, of which something is claimed: the sum of whole numbers that lie on the device.
 *
 * Threads: one reduce_sum at a time. Nothing here knows that it will be attacked.
 */
#ifndef REDUCE_SUM_H
#define REDUCE_SUM_H

#include <stdint.h>
#include <tollens.h>

struct reduce_sum;

/* Compiles the kernel for the context's device. Errors are those of tol_module_load. */
tol_status reduce_sum_create(struct tol_context *context, struct reduce_sum **reduce);
void reduce_sum_destroy(struct reduce_sum *reduce);

/* Adds up count 32-bit numbers, from element first of the buffer on, and waits for the sum.
 * TOL_OUT_OF_RANGE: the buffer has fewer. */
tol_status reduce_sum_run(struct reduce_sum *reduce, struct tol_stream *stream,
                          const struct tol_buffer *values, uint32_t first, uint32_t count,
                          uint64_t *sum);

#endif

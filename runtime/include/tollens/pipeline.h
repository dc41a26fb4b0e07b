/*
 * Pipeline: processes a sequence of data blocks with copies in, work and copies out overlapped.
 *
 * While block i is worked on, block i + 1 is copied to the device and block i - 1 is copied back,
 * on three streams ordered by events, with a few slots of device memory. The host fills and reads
 * pinned blocks meanwhile and waits only if a slot is still in use. If the three steps take equally
 * long, a run takes a third of the serial time; if they differ, it takes more than a third.
 *
 * Threads: one thread at a time may use a pipeline. Source: spec 004 M12.
 */
#ifndef TOLLENS_PIPELINE_H
#define TOLLENS_PIPELINE_H

#include "copy.h"
#include "event.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_pipeline;

/* One block in the pipeline, as passed to work. */
struct tol_pipeline_block {
    unsigned long long index;          /* from 0 */
    unsigned slot;                     /* the slot it uses, below slots */
    struct tol_buffer *input, *output; /* on the device */
    size_t input_bytes, output_bytes;
};

/* fill, work and take are required; user is passed to them. A function that returns a failure ends
 * the run. */
struct tol_pipeline_options {
    size_t input_bytes, output_bytes; /* per block; output_bytes 0: the input is copied back */
    unsigned slots;                   /* blocks in the pipeline at once; 0: 4; at least 2 */
    bool serial; /* no overlap: run each block's steps after the previous block's, to compare */

    /* Writes the input of block index, input_bytes long, to data. Returns TOL_NOT_FOUND after the
     * last block, which needs no message; the pipeline then completes the blocks in it. */
    tol_status (*fill)(void *user, unsigned long long index, void *data);
    /* Queues the work for a block on the stream. Must not wait. */
    tol_status (*work)(void *user, struct tol_stream *stream,
                       const struct tol_pipeline_block *block);
    /* Receives the output of block index, in order. data is valid until it returns. */
    tol_status (*take)(void *user, unsigned long long index, const void *data);
    void *user;
};

/* When the steps of a block ran, in nanoseconds on the device's clock since the first began. */
struct tol_pipeline_times {
    double to_device[2], work[2], to_host[2]; /* begin, end */
};

/* Creates the streams, events, pinned blocks and device memory of the slots. options are copied.
 * TOL_INVALID_ARGUMENT: input_bytes is 0, or a function is NULL. TOL_OUT_OF_HOST_MEMORY,
 * TOL_OUT_OF_DEVICE_MEMORY. */
TOL_API tol_status tol_pipeline_create(struct tol_context *context,
                                       const struct tol_pipeline_options *options,
                                       struct tol_pipeline **pipeline);

/* Waits up to TOL_DEADLINE_MS for work in the pipeline and destroys it. NULL is a no-op. */
TOL_API void tol_pipeline_destroy(struct tol_pipeline *pipeline);

/* Runs until fill has no more blocks and take has received all outputs. The first failure of a
 * function or of the driver ends the run and is returned; blocks in the pipeline are then waited
 * for and not passed to take. *blocks (if not NULL) is set to the number passed to take. May be
 * called again. */
TOL_API tol_status tol_pipeline_run(struct tol_pipeline *pipeline, unsigned long long *blocks);

/* Gets the times of a block of the last run. TOL_NOT_FOUND: a later block has used its slot. */
TOL_API tol_status tol_pipeline_times(struct tol_pipeline *pipeline, unsigned long long index,
                                      struct tol_pipeline_times *times);

#ifdef __cplusplus
}
#endif
#endif

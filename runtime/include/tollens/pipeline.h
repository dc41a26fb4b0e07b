/*
 * Pipeline: blocks of data that go to the device, are worked on and come back, all three at once.
 *
 * While block i is worked on, block i + 1 is copied to the device and block i - 1 back: three
 * streams, ordered by events, over a few slots of device memory. The host fills and takes pinned
 * blocks in between and waits only where a slot is still in use. With three legs of one length it
 * takes a third of the time that one after the other does, and more where they differ.
 *
 * Threads: one at a time. Source: spec 004 M12.
 */
#ifndef TOLLENS_PIPELINE_H
#define TOLLENS_PIPELINE_H

#include "copy.h"
#include "event.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_pipeline;

/* One block on its way, as the functions of the program see it. */
struct tol_pipeline_block {
    unsigned long long index;          /* from 0 */
    unsigned slot;                     /* of the pipeline's, below slots */
    struct tol_buffer *input, *output; /* on the device */
    size_t input_bytes, output_bytes;
};

struct tol_pipeline_options {
    size_t input_bytes, output_bytes; /* of a block; output_bytes 0: the input is what comes back */
    unsigned slots;                   /* blocks on their way at once; 0: 4; at least 2 */
    bool serial; /* each block's three steps behind those of the one before it: to compare with */

    /* Writes the input of block index, input_bytes, to data. TOL_NOT_FOUND: there is none, and the
     * pipeline runs dry; no message is needed. */
    tol_status (*fill)(void *user, unsigned long long index, void *data);
    /* Queues the work on a block on the stream; it must not wait. */
    tol_status (*work)(void *user, struct tol_stream *stream,
                       const struct tol_pipeline_block *block);
    /* Gets the output of block index, in order; data is valid until it returns. */
    tol_status (*take)(void *user, unsigned long long index, const void *data);
    void *user;
};

/* When the steps of a block ran, in nanoseconds on the device's clock since the first one began. */
struct tol_pipeline_times {
    double to_device[2], work[2], to_host[2]; /* begin, end */
};

/* Makes streams, events, pinned blocks and device memory for the slots. TOL_INVALID_ARGUMENT: no
 * input bytes, or a function is NULL. TOL_OUT_OF_HOST_MEMORY, TOL_OUT_OF_DEVICE_MEMORY. */
TOL_API tol_status tol_pipeline_create(struct tol_context *context,
                                       const struct tol_pipeline_options *options,
                                       struct tol_pipeline **pipeline);

/* Waits for what is on its way, TOL_DEADLINE_MS at most, and ends it. NULL is a no-op. */
TOL_API void tol_pipeline_destroy(struct tol_pipeline *pipeline);

/* Runs until fill has no more, and all that went in has come out. The first failure of a function
 * or of the driver ends it: what is on its way is then waited for and not taken. *blocks (if not
 * NULL) is how many were taken. It may be run again. */
TOL_API tol_status tol_pipeline_run(struct tol_pipeline *pipeline, unsigned long long *blocks);

/* The times of a block of the last run, of those that its slots held last: of an earlier one
 * TOL_NOT_FOUND. */
TOL_API tol_status tol_pipeline_times(struct tol_pipeline *pipeline, unsigned long long index,
                                      struct tol_pipeline_times *times);

#ifdef __cplusplus
}
#endif
#endif

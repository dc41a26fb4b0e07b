/*
 * Submits tasks: into a queue, or into the graph that a stream is being captured to.
 */
#ifndef SOFT_SUBMIT_H
#define SOFT_SUBMIT_H

#include "queue/queue_state.h"

/* Submits a task to a stream and always takes over what it owns. stages: the source of a copy may
 * change as soon as the call returns. */
CUresult soft_submit(struct soft_stream *stream, struct soft_task *task, bool stages);

/* The same; the caller holds soft_lock, which is released while a source is copied. */
CUresult soft_submit_locked(struct soft_stream *stream, struct soft_task *task, bool stages);

#endif

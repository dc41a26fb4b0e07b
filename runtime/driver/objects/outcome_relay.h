/*
 * Passes an outcome on: from a graph to the stream that it was launched on.
 */
#ifndef TOLLENS_OUTCOME_RELAY_H
#define TOLLENS_OUTCOME_RELAY_H

#include "core/outcome.h"
#include "core/stream_state.h"

/* Queues a call by which from's first failure becomes the stream's. See host_function.c. */
tol_status tol_outcome_relay(struct tol_stream *stream, struct tol_outcome *from);

#endif

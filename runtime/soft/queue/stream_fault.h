/*
 * Stream faults: what fault rules do to streams, rather than to the call itself.
 */
#ifndef SOFT_STREAM_FAULT_H
#define SOFT_STREAM_FAULT_H

#include "queue_state.h"

/* The call under way has looked a stream up, the first of its streams. Gives what rules about
 * streams make it return; a bit that is to flip does so behind what the stream has queued. */
CUresult soft_stream_fault_ask(struct soft_stream *stream);

/* The call under way returns: an error that its work is to fail with goes behind that work. */
void soft_stream_fault_end(CUresult result);

#endif

/*
 * Stream faults: the effects of fault rules on streams, rather than on the call itself.
 */
#ifndef SOFT_STREAM_FAULT_H
#define SOFT_STREAM_FAULT_H

#include "queue_state.h"

/* The current call has looked up the first of its streams. Returns the result that rules about
 * streams select; a bit flip happens after the stream's queued work. */
CUresult soft_stream_fault_ask(struct soft_stream *stream);

/* The current call returns: an error that its work must fail with is queued after that work. */
void soft_stream_fault_end(CUresult result);

#endif

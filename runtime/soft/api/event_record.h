/*
 * Event record: recording the event that an attribute of a launch names.
 */
#ifndef SOFT_EVENT_RECORD_H
#define SOFT_EVENT_RECORD_H

#include "queue/queue_state.h"

/* Records an event after the kernel that the calling thread has just launched into a stream.
 * programmatic: waiters depend on that kernel programmatically. The codes of cuEventRecord.
 * Thread-safe. */
CUresult soft_event_record_behind(CUevent event, CUstream stream, bool programmatic);

#endif

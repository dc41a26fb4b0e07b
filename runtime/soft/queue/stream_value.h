/*
 * Values that streams wait for and write: parses and checks the program's requests.
 */
#ifndef SOFT_STREAM_VALUE_H
#define SOFT_STREAM_VALUE_H

#include "task.h"

/* Reads the operations of a batch, to be freed, and checks operations. */
CUresult soft_values_of(const CUstreamBatchMemOpParams *params, unsigned count, unsigned flags,
                        struct soft_stream_value **items);
CUresult soft_values_check(const struct soft_stream_value *items, unsigned count);

#endif

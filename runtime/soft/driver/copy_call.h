/*
 * Shared by calls that copy and fill.
 */
#ifndef SOFT_COPY_CALL_H
#define SOFT_COPY_CALL_H

#include "queue/queue.h"

/* Checks a copy and submits it. wait: the call returns when it is done, unless both ends are on
 * devices; without it only a pageable destination is waited for. */
CUresult soft_copy_submit(CUstream handle, const struct soft_copy *copy, bool wait);

CUresult soft_fill_submit(CUstream handle, const struct soft_fill_rows *fill);

#endif

/*
 * Shared by the calls that copy and fill.
 */
#ifndef SOFT_COPY_CALL_H
#define SOFT_COPY_CALL_H

#include "queue/queue.h"

/* Where one end of a copy is said to be. */
enum soft_place_kind { SOFT_PLACE_HOST, SOFT_PLACE_DEVICE, SOFT_PLACE_UNIFIED };

/* One end: the address of its first byte. A host address that can only be a device's is taken for
 * what it is, as under unified addressing. */
struct soft_copy_end soft_copy_end(enum soft_place_kind kind, uint64_t address);

/* Checks a copy and submits it. wait: the call returns when it is done, unless both ends are on
 * devices; without it only a pageable destination is waited for. */
CUresult soft_copy_submit(CUstream handle, const struct soft_copy *copy, bool wait);

CUresult soft_fill_submit(CUstream handle, const struct soft_fill_rows *fill);

#endif

/*
 * Imported memory: allocations of another process, mapped here.
 *
 * Source: cuIpcOpenMemHandle of the CUDA Driver API 13.0.
 */
#ifndef SOFT_IMPORTED_H
#define SOFT_IMPORTED_H

#include "driver_state.h"
#include "memory/shared_bytes.h"

/* Maps the memory of a name for a context; the second time, it returns the same address and counts
 * the opening. CUDA_ERROR_INVALID_VALUE: it is no name; CUDA_ERROR_INVALID_CONTEXT: it is this
 * process's own; CUDA_ERROR_MAP_FAILED: the other process, or its memory, is gone;
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult soft_imported_open(const struct soft_context *context, const struct soft_shared_name *name,
                            CUdeviceptr *address);

/* Undoes one opening; the last one unmaps. false: no opened memory begins there. */
bool soft_imported_close(CUdeviceptr address);

#endif

/*
 * Converts CUDA_MEMCPY3D to a copy of rows and layers.
 */
#ifndef SOFT_COPY_ROWS_H
#define SOFT_COPY_ROWS_H

#include "copy_call.h"

/* false: its pitches, heights or kinds of memory make no sense. Whether the memory is live is not
 * looked at. */
bool soft_copy_of_3d(const CUDA_MEMCPY3D *call, struct soft_copy *copy);

#endif

/*
 * Copies of rows and layers, as CUDA_MEMCPY2D and CUDA_MEMCPY3D describe them.
 */
#ifndef SOFT_COPY_ROWS_H
#define SOFT_COPY_ROWS_H

#include "task.h"

/* The description of one end of a copy. */
enum soft_place_kind { SOFT_PLACE_HOST, SOFT_PLACE_DEVICE, SOFT_PLACE_UNIFIED };

/* One end: the address of its first byte. A host address in the range of devices counts as a
 * device's, as under unified addressing. */
struct soft_copy_end soft_copy_end(enum soft_place_kind kind, uint64_t address);

/* The same for a place in a CUDA array: byte, row and layer, and the size in each. false: the
 * handle is invalid, the place is outside, or the bytes are no whole elements. */
bool soft_copy_end_of_array(CUarray handle, const uint64_t at[3], const uint64_t sizes[3],
                            struct soft_copy_end *end);

/* false: the pitches, heights or kinds of memory are invalid. This does not check that the memory
 * is live. */
bool soft_copy_of_3d(const CUDA_MEMCPY3D *call, struct soft_copy *copy);
bool soft_copy_of_2d(const CUDA_MEMCPY2D *call, struct soft_copy *copy);

#endif

/*
 * Swapped: a fault in a result that was read back, to show that its judge notices it.
 */
#ifndef KN_SWAPPED_H
#define KN_SWAPPED_H

#include "tollens.h"

#include <stdbool.h>

/* Exchanges the last of count elements with the nearest before it whose bits differ: an index that
 * is wrong in the last block. false: all are the same, and nothing was changed. */
TOL_API bool kn_swap_last(void *elements, size_t element_bytes, size_t count);

#endif

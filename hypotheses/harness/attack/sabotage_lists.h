/*
 * The lists of faults. A gross fault occurs so often that an attack either notices it or is blind
 * to it; a rare one occurs in one of every N calls of its kind (attack/rare_turn.h).
 */
#ifndef HYP_SABOTAGE_LISTS_H
#define HYP_SABOTAGE_LISTS_H

#include "harness/fault_hooks.h"

#include <stddef.h>

/* NULL after the last one. */
const struct hyp_fault *hyp_gross_fault(size_t index);
const struct hyp_fault *hyp_rare_fault(size_t index);

#endif

/*
 * Rare faults: each occurs in one of every N calls of its kind (attack/rare_turn.h).
 */
#ifndef HYP_SABOTAGE_RARE_H
#define HYP_SABOTAGE_RARE_H

#include "harness/fault_hooks.h"

#include <stddef.h>

/* NULL after the last one. */
const struct hyp_fault *hyp_rare_fault(size_t index);

#endif

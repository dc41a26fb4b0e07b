/*
 * Gross faults: each occurs so often that an attack either notices it or is blind to it.
 */
#ifndef HYP_SABOTAGE_GROSS_H
#define HYP_SABOTAGE_GROSS_H

#include "harness/fault_hooks.h"

#include <stddef.h>

/* NULL after the last one. */
const struct hyp_fault *hyp_gross_fault(size_t index);

#endif

/*
 * An instruction's place in the PTX memory model: weak or strong, and its scope.
 */
#ifndef SOFT_LOWER_ORDER_H
#define SOFT_LOWER_ORDER_H

#include "modes.h"
#include "ptx/opcode.h"

/* The scope of an instruction; without one, its default. */
enum soft_scope soft_scope_of(const struct ptx_opcode *opcode, enum soft_scope otherwise);

/* Its bits in the mode of a load, store or atomic. */
uint32_t soft_order_of(const struct ptx_opcode *opcode);

#endif

/*
 * An instruction's place in the PTX memory model: weak or strong, and its scope.
 */
#ifndef SOFT_LOWER_ORDER_H
#define SOFT_LOWER_ORDER_H

#include "modes.h"
#include "ptx/opcode.h"

/* The scope that an instruction names; otherwise what it has without a name. */
enum soft_scope soft_scope_of(const struct ptx_opcode *opcode, enum soft_scope otherwise);

/* The bits of a load's, store's or atomic's mode that say so. */
uint32_t soft_order_of(const struct ptx_opcode *opcode);

#endif

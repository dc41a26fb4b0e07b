/*
 * Shared by the lowering of instructions with an address.
 */
#ifndef SOFT_LOWER_MEMORY_H
#define SOFT_LOWER_MEMORY_H

#include "lower.h"
#include "modes.h"

/* The first state space of an instruction. */
enum soft_access_space soft_space_of(const struct ptx_opcode *opcode);

/* The same; without one, a shared or local variable in the address determines the space. Addresses
 * in registers are generic. */
enum soft_access_space soft_space_at(const struct ptx_opcode *opcode,
                                     const struct ptx_operand *address);

/* The mode's space for one of those: .shared::cluster is not .shared, although its addresses are
 * similar. */
enum soft_access_space soft_space_meant(const struct ptx_opcode *opcode,
                                        enum soft_access_space space);

/* An address: the value of the base, and its offset. */
struct soft_address {
    uint32_t base;
    int64_t offset;
    bool wide;
};

/* An operand in brackets. Addresses in shared memory are of 32 bits, all others of 64. */
bool soft_read_address(struct soft_lowering *lowering, const struct ptx_operand *operand,
                       enum soft_access_space space, struct soft_address *address);

#endif

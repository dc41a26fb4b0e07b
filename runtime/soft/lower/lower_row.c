/*
 * The rows of ptx.def again, for the columns that the reader does not use: the function that lowers
 * an instruction, and its micro-operations.
 */
#include "lower.h"

static const struct {
    bool (*lower)(struct soft_lowering *lowering, const struct ptx_instruction *in);
    uint16_t base;
} lowerings[] = {
#define PTX(name, pattern, operands, lower, base, version, target)                                 \
    {soft_lower_##lower, SOFT_OP_##base},
#include "ptx/ptx.def"
};

uint16_t soft_first_op(const struct ptx_instruction *in) {
    return lowerings[ptx_row_index(in->opcode->row)].base;
}

bool soft_lower_row(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    return lowerings[ptx_row_index(in->opcode->row)].lower(lowering, in);
}

/*
 * The rows of ptx.def once more, for what the reader does not know of them: which function lowers
 * an instruction, and to which micro-operations.
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

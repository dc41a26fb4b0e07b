/*
 * Branches by table; the stack.
 * Source: PTX ISA 9.0, sections 9.7.12 (Control flow) and 9.7.15 (Stack manipulation).
 */
#include "lower.h"
#include "modes.h"

/* brx.idx index, table */
bool soft_lower_brx(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    uint32_t index = 0;
    if (in->operand_count != 2 || in->operands[1].kind != PTX_OPERAND_SYMBOL ||
        in->operands[1].symbol->kind != PTX_TARGETS) {
        return LOWER_FAIL(lowering, in, "brx.idx needs an index and a list of .branchtargets");
    }
    const struct ptx_list *list = in->operands[1].symbol->is.targets;
    uint32_t *targets = SOFT_ARENA_ARRAY(lowering->scratch, uint32_t, list->count);
    if (targets == NULL) return LOWER_NO_MEMORY(lowering);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct ptx_operand *label = &list->items[i];
        if (label->kind != PTX_OPERAND_SYMBOL || label->symbol->kind != PTX_LABEL ||
            label->integer != 0) {
            return LOWER_FAIL(lowering, label, "expected a label");
        }
        targets[i] = label->symbol->is.label;
    }
    if (!soft_source(lowering, &in->operands[0], 32, PTX_u32, &index)) return false;
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_brx);
    if (draft == NULL) return false;
    draft->a = index;
    draft->targets = targets;
    draft->target_count = list->count;
    return true;
}

/* alloca.type address, bytes{, alignment}; stacksave.type d; stackrestore.type a */
bool soft_lower_stack(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum soft_op op = (enum soft_op)soft_first_op(in);
    enum ptx_modifier type = in->opcode->type[0];
    unsigned bits = soft_bits(type);
    bool allocates = op == SOFT_OP_alloca, restores = op == SOFT_OP_stackrestore;
    uint32_t d = SOFT_NO_VALUE, a = SOFT_NO_VALUE;
    int64_t alignment = 8;
    if (in->operand_count < (allocates ? 2u : 1u) || in->operand_count > (allocates ? 3u : 1u)) {
        return LOWER_FAIL(lowering, in, "wrong number of operands");
    }
    if (in->operand_count == 3) {
        alignment = in->operands[2].integer;
        if (in->operands[2].kind != PTX_OPERAND_INTEGER || alignment <= 0 || alignment > 4096 ||
            (alignment & (alignment - 1)) != 0) {
            return LOWER_FAIL(lowering, &in->operands[2],
                              "the alignment must be a power of two, at most 4096");
        }
    }
    const struct ptx_operand *source = allocates ? &in->operands[1] : &in->operands[0];
    if ((allocates || restores) && !soft_source(lowering, source, bits, type, &a)) return false;
    if (!restores && !soft_destination(lowering, &in->operands[0], bits, type, &d)) return false;
    struct soft_draft *draft = soft_draft(lowering, op);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = a;
    draft->immediate = alignment;
    draft->mode = bits == 64;
    lowering->code->has_alloca = true;
    return true;
}

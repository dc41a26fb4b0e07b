/*
 * Addresses of the blocks of a cluster, their barrier, and griddepcontrol. Source: PTX ISA 9.0,
 * sections 9.7.9.23 (mapa), 9.7.9.24 (getctarank), 9.7.13.4 (barrier.cluster).
 */
#include "lower_memory.h"

/* An address is generic, or one in .shared::cluster. */
static uint32_t address_mode(const struct ptx_opcode *opcode, unsigned bits) {
    bool shared = ptx_has(opcode, PTX_shared_cluster);
    uint32_t space = shared ? SOFT_SPACE_CLUSTER : SOFT_SPACE_GENERIC;
    return space << SOFT_ACCESS_SPACE_SHIFT | (bits == 64 ? SOFT_ACCESS_WIDE_ADDRESS : 0);
}

/* mapa d, a, rank: the same address in the block of that rank. */
bool soft_lower_mapa(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum ptx_modifier type = in->opcode->type[0];
    unsigned bits = soft_bits(type);
    uint32_t d = 0, a = 0, b = 0;
    if (in->operand_count != 3) return LOWER_FAIL(lowering, in, "mapa needs 3 operands");
    const struct ptx_operand *from = &in->operands[1];
    if (from->kind == PTX_OPERAND_SYMBOL && !ptx_has(in->opcode, PTX_shared_cluster)) {
        return LOWER_FAIL(lowering, from, "expected a register with a generic address");
    }
    if (!soft_source(lowering, from, bits, type, &a) ||
        !soft_source(lowering, &in->operands[2], 32, PTX_u32, &b) ||
        !soft_destination(lowering, &in->operands[0], bits, type, &d)) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_mapa);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = a;
    draft->b = b;
    draft->mode = address_mode(in->opcode, bits);
    return true;
}

/* getctarank d, a: the rank of the block of an address. */
bool soft_lower_getctarank(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum ptx_modifier type = in->opcode->type[0];
    uint32_t d = 0, a = 0;
    if (in->operand_count != 2) return LOWER_FAIL(lowering, in, "getctarank needs 2 operands");
    if (!soft_source(lowering, &in->operands[1], soft_bits(type), type, &a) ||
        !soft_destination(lowering, &in->operands[0], 32, PTX_u32, &d)) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_getctarank);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = a;
    draft->mode = address_mode(in->opcode, soft_bits(type));
    return true;
}

/* barrier.cluster.arrive: mode says whether it is relaxed. */
bool soft_lower_cluster_arrive(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    if (in->operand_count != 0) return LOWER_FAIL(lowering, in, "this instruction has no operands");
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_cluster_arrive);
    if (draft == NULL) return false;
    draft->mode = ptx_has(in->opcode, PTX_relaxed);
    return true;
}

/* griddepcontrol.wait, griddepcontrol.launch_dependents. */
bool soft_lower_grid(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    if (in->operand_count != 0) return LOWER_FAIL(lowering, in, "this instruction has no operands");
    lowering->module->programmatic = true;
    bool waits = ptx_has(in->opcode, PTX_wait);
    return soft_draft(lowering, waits ? SOFT_OP_grid_wait : SOFT_OP_grid_trigger) != NULL;
}

/* setmaxnreg.inc n; mode is the number, and SOFT_REGISTERS_MORE. */
bool soft_lower_setmaxnreg(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    const struct ptx_operand *count = &in->operands[0];
    if (in->operand_count != 1 || count->kind != PTX_OPERAND_INTEGER) {
        return LOWER_FAIL(lowering, in, "setmaxnreg needs a number of registers");
    }
    if (count->integer < 24 || count->integer > 256 || count->integer % 8 != 0) {
        return LOWER_FAIL(lowering, count, "%lld registers, not a multiple of 8 from 24 to 256",
                          (long long)count->integer);
    }
    if (lowering->module->target_suffix == 0) {
        return LOWER_FAIL(lowering, in, "setmaxnreg needs a target such as sm_90a");
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_setmaxnreg);
    if (draft == NULL) return false;
    draft->mode = (uint32_t)count->integer;
    if (ptx_has(in->opcode, PTX_inc)) draft->mode |= SOFT_REGISTERS_MORE;
    return true;
}

/* createpolicy d, ...: cache policies have no effect here; the policy is 0. */
bool soft_lower_createpolicy(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    uint32_t d = 0, a = 0;
    bool range = ptx_has(in->opcode, PTX_range), converts = ptx_has(in->opcode, PTX_cvt);
    uint32_t least = range ? 4 : converts ? 2 : 1, most = range ? 4 : 2;
    if (in->operand_count < least || in->operand_count > most) {
        return LOWER_FAIL(lowering, in, "expected %u operands, not %u", most, in->operand_count);
    }
    for (uint32_t i = 1; i < in->operand_count; i++) {
        const struct ptx_operand *operand = &in->operands[i];
        if (range && i == 1) continue;
        enum ptx_modifier type = range ? PTX_u32 : converts ? PTX_b64 : PTX_f32;
        if (!soft_source(lowering, operand, converts ? 64 : 32, type, &a)) return false;
    }
    if (!soft_destination(lowering, &in->operands[0], 64, PTX_b64, &d)) return false;
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_mov_64);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = soft_value_constant(lowering, 64, 0);
    return draft->a != SOFT_NO_VALUE;
}

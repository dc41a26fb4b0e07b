/*
 * Mbarriers. Source: PTX ISA 9.0, sections 9.7.13.15 (mbarrier) and 9.7.9.25.3
 * (cp.async.mbarrier.arrive).
 */
#include "lower_memory.h"
#include "modes.h"

/* The address of an object: in shared memory, or generic. */
static bool mbarrier_read_object(struct soft_lowering *lowering, const struct ptx_instruction *in,
                                 const struct ptx_operand *operand, struct soft_address *address,
                                 uint32_t *mode) {
    enum soft_access_space space = soft_space_at(in->opcode, operand);
    if (!soft_read_address(lowering, operand, space, address)) return false;
    space = soft_space_meant(in->opcode, space);
    *mode = 8 | 1 << SOFT_ACCESS_COUNT_SHIFT | (uint32_t)space << SOFT_ACCESS_SPACE_SHIFT;
    if (address->wide) *mode |= SOFT_ACCESS_WIDE_ADDRESS;
    return true;
}

static struct soft_draft *draft_at(struct soft_lowering *lowering, enum soft_op op,
                                   const struct soft_address *address, uint32_t mode) {
    struct soft_draft *draft = soft_draft(lowering, op);
    if (draft == NULL) return NULL;
    draft->a = address->base;
    draft->immediate = address->offset;
    draft->mode = mode;
    draft->has_site = true;
    return draft;
}

/* mbarrier.init [a], count; .inval [a]; .expect_tx [a], bytes; .complete_tx [a], bytes */
bool soft_lower_mbarrier(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    static const enum ptx_modifier words[] = {PTX_init, PTX_inval, PTX_arrive, PTX_expect_tx,
                                              PTX_complete_tx};
    struct soft_address address = {.base = SOFT_NO_VALUE};
    uint32_t act = 0, b = SOFT_NO_VALUE, mode = 0;
    while (!ptx_has(in->opcode, words[act])) act++;
    uint32_t count = act == SOFT_MBARRIER_INVAL ? 1 : 2;
    if (in->operand_count != count) {
        return LOWER_FAIL(lowering, in, "expected %u operands, not %u", count, in->operand_count);
    }
    if (count > 1 && !soft_source(lowering, &in->operands[1], 32, PTX_u32, &b)) return false;
    if (!mbarrier_read_object(lowering, in, &in->operands[0], &address, &mode)) return false;
    mode |= act << SOFT_MBARRIER_SHIFT;
    struct soft_draft *draft = draft_at(lowering, SOFT_OP_mbarrier, &address, mode);
    if (draft == NULL) return false;
    draft->b = b;
    return true;
}

/* mbarrier.arrive state, [a]{, count}; .expect_tx state, [a], bytes */
bool soft_lower_mbarrier_arrive(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct soft_address address = {.base = SOFT_NO_VALUE};
    bool expects = ptx_has(in->opcode, PTX_expect_tx);
    bool needs = expects || ptx_has(in->opcode, PTX_noComplete);
    uint32_t d = SOFT_NO_VALUE, b = 0, mode = 0;
    if (in->operand_count > 3 || in->operand_count < (needs ? 3u : 2u)) {
        return LOWER_FAIL(lowering, in, "expected a state, an address and %s",
                          expects ? "a number of bytes" : "a count");
    }
    if (in->operand_count == 3 && !needs && lowering->module->target < 90) {
        return LOWER_FAIL(lowering, &in->operands[2], "a count needs .noComplete or sm_90");
    }
    bool silent = in->operands[0].kind == PTX_OPERAND_NONE;
    if (!silent && ptx_has(in->opcode, PTX_shared_cluster)) {
        return LOWER_FAIL(lowering, &in->operands[0],
                          "with .shared::cluster the state must be '_'");
    }
    if ((!silent && !soft_destination(lowering, &in->operands[0], 64, PTX_b64, &d)) ||
        (in->operand_count == 3 && !soft_source(lowering, &in->operands[2], 32, PTX_u32, &b)) ||
        !mbarrier_read_object(lowering, in, &in->operands[1], &address, &mode)) {
        return false;
    }
    if (in->operand_count == 2) b = soft_value_constant(lowering, 32, 1);
    mode |= SOFT_MBARRIER_ARRIVE << SOFT_MBARRIER_SHIFT;
    if (expects) mode |= SOFT_MBARRIER_EXPECTS;
    if (!silent) mode |= SOFT_MBARRIER_STATE;
    if (ptx_has(in->opcode, PTX_arrive_drop)) mode |= SOFT_MBARRIER_DROP;
    if (ptx_has(in->opcode, PTX_noComplete)) mode |= SOFT_MBARRIER_NO_COMPLETE;
    if (ptx_has(in->opcode, PTX_relaxed)) mode |= SOFT_MBARRIER_RELAXED;
    struct soft_draft *draft = draft_at(lowering, SOFT_OP_mbarrier, &address, mode);
    if (draft == NULL) return false;
    draft->d = d;
    draft->b = b;
    return true;
}

/* mbarrier.test_wait p, [a], state; .parity p, [a], parity; try_wait has a further operand, a time,
 * which is a hint. */
bool soft_lower_mbarrier_test(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct soft_address address = {.base = SOFT_NO_VALUE};
    bool parity = ptx_has(in->opcode, PTX_parity), tries = ptx_has(in->opcode, PTX_try_wait);
    uint32_t d = 0, b = 0, hint = 0, mode = 0;
    if (in->operand_count != 3 && !(in->operand_count == 4 && tries)) {
        return LOWER_FAIL(lowering, in, "expected a predicate, an address and a %s",
                          parity ? "parity" : "state");
    }
    if (!soft_source(lowering, &in->operands[2], parity ? 32 : 64, parity ? PTX_u32 : PTX_b64,
                     &b) ||
        (in->operand_count == 4 && !soft_source(lowering, &in->operands[3], 32, PTX_u32, &hint)) ||
        !mbarrier_read_object(lowering, in, &in->operands[1], &address, &mode) ||
        !soft_destination(lowering, &in->operands[0], 1, PTX_pred, &d)) {
        return false;
    }
    if (parity) mode |= SOFT_MBARRIER_PARITY;
    if (ptx_has(in->opcode, PTX_relaxed)) mode |= SOFT_MBARRIER_RELAXED;
    struct soft_draft *draft = draft_at(lowering, SOFT_OP_mbarrier_test, &address, mode);
    if (draft == NULL) return false;
    draft->d = d;
    draft->b = b;
    draft->polls = true;
    return true;
}

/* mbarrier.pending_count count, state */
bool soft_lower_mbarrier_pending(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    uint32_t d = 0, a = 0;
    if (in->operand_count != 2) return LOWER_FAIL(lowering, in, "expected a count and a state");
    if (!soft_source(lowering, &in->operands[1], 64, PTX_b64, &a) ||
        !soft_destination(lowering, &in->operands[0], 32, PTX_u32, &d)) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_mbarrier_pending);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = a;
    return true;
}

/* cp.async.mbarrier.arrive [a] */
bool soft_lower_cp_async_arrive(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct soft_address address = {.base = SOFT_NO_VALUE};
    uint32_t mode = 0;
    if (in->operand_count != 1) return LOWER_FAIL(lowering, in, "expected an address");
    if (!mbarrier_read_object(lowering, in, &in->operands[0], &address, &mode)) return false;
    if (ptx_has(in->opcode, PTX_noinc)) mode |= SOFT_ASYNC_NOINC;
    return draft_at(lowering, SOFT_OP_cp_async_arrive, &address, mode) != NULL;
}

/*
 * Strong operations, scopes and fences. Source: PTX ISA 9.0, sections 8.4 (Operation types), 8.5
 * (Scope), 9.7.13.4 (membar, fence).
 */
#include "lower_order.h"

#include "lower.h"

enum soft_scope soft_scope_of(const struct ptx_opcode *opcode, enum soft_scope otherwise) {
    if (ptx_has(opcode, PTX_cta)) return SOFT_SCOPE_CTA;
    if (ptx_has(opcode, PTX_cluster)) return SOFT_SCOPE_CLUSTER;
    bool far = ptx_has(opcode, PTX_gpu) || ptx_has(opcode, PTX_gl) || ptx_has(opcode, PTX_sys);
    return far ? SOFT_SCOPE_GPU : otherwise;
}

uint32_t soft_order_of(const struct ptx_opcode *opcode) {
    const char *name = opcode->row->name;
    bool atomic = name[0] == 'a' || name[0] == 'r';
    bool releases = ptx_has(opcode, PTX_release) || ptx_has(opcode, PTX_acq_rel);
    bool acquires = ptx_has(opcode, PTX_acquire) || ptx_has(opcode, PTX_acq_rel);
    bool strong = atomic || releases || acquires || ptx_has(opcode, PTX_relaxed) ||
                  ptx_has(opcode, PTX_volatile_) || ptx_has(opcode, PTX_mmio);
    if (!strong) return 0;
    uint32_t scope = soft_scope_of(opcode, SOFT_SCOPE_GPU);
    return scope << SOFT_ACCESS_SCOPE_SHIFT | (releases ? SOFT_ACCESS_RELEASE : 0) |
           (acquires ? SOFT_ACCESS_ACQUIRE : 0);
}

bool soft_lower_fence(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    if (in->operand_count != 0) return LOWER_FAIL(lowering, in, "this instruction has no operands");
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_fence);
    if (draft == NULL) return false;
    draft->mode = soft_scope_of(in->opcode, SOFT_SCOPE_GPU);
    if (ptx_has(in->opcode, PTX_mbarrier_init)) draft->mode |= SOFT_FENCE_INITS;
    return true;
}

/* fence.proxy.async: of all memory, or of one state space; the one-sided ones are for shared. */
bool soft_lower_proxy_fence(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    if (in->operand_count != 0) return LOWER_FAIL(lowering, in, "this instruction has no operands");
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_proxy_fence);
    if (draft == NULL) return false;
    bool global = ptx_has(in->opcode, PTX_global);
    bool shared = ptx_has(in->opcode, PTX_shared_cta) || ptx_has(in->opcode, PTX_shared_cluster) ||
                  ptx_has(in->opcode, PTX_acquire) || ptx_has(in->opcode, PTX_release);
    draft->mode = (shared ? 0 : SOFT_PROXY_GLOBAL) | (global ? 0 : SOFT_PROXY_SHARED);
    return true;
}

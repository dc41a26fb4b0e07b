/*
 * Fusing: adjacent instructions that the handler of the first executes as one. All of them remain
 * in the code, so that a jump into the middle works, and partial warps execute them one by one.
 */
#include "lower.h"

#include "core.h"

static uint32_t fuse_register_of(const struct soft_lowering *lowering, uint32_t value) {
    if (value == SOFT_NO_VALUE) return SOFT_NO_VALUE;
    return lowering->values[value].alias;
}

/* Whether a value is a register that is not read after a draft: positions of reads are even. */
static bool dies_at(const struct soft_lowering *lowering, uint32_t value, uint32_t draft) {
    return value != SOFT_NO_VALUE && lowering->values[value].kind == SOFT_VALUE_REGISTER &&
           lowering->values[value].last == 2 * draft;
}

/* Two loads of one space, and the fma of the loaded values. */
static bool fuse_is_product(const struct soft_lowering *lowering, uint32_t at, enum soft_op load) {
    const struct soft_draft *one = &lowering->drafts[at], *other = one + 1, *fma = one + 2;
    if (at + 2 >= lowering->draft_count || one->op != load || other->op != load ||
        fma->op != SOFT_OP_fma_f32 || one->guarded || other->guarded || fma->guarded) {
        return false;
    }
    uint32_t x = fuse_register_of(lowering, one->d), y = fuse_register_of(lowering, other->d);
    uint32_t a = fuse_register_of(lowering, fma->a), b = fuse_register_of(lowering, fma->b),
             c = fuse_register_of(lowering, fma->c);
    return x != y && ((a == x && b == y) || (a == y && b == x)) && c != x && c != y &&
           fuse_register_of(lowering, other->a) != x && dies_at(lowering, x, at + 2) &&
           dies_at(lowering, y, at + 2);
}

void soft_fuse(struct soft_lowering *lowering) {
    const struct soft_core *core = soft_core();
    for (uint32_t i = 0; i < lowering->draft_count; i++) {
        struct soft_instruction *to = &lowering->code->instructions[i];
        if (fuse_is_product(lowering, i, SOFT_OP_ld_shared_32)) {
            to->run[0] = core->run[SOFT_OP_product_shared][0];
        } else if (fuse_is_product(lowering, i, SOFT_OP_ld_global_32)) {
            to->run[0] = core->run[SOFT_OP_product_global][0];
        }
    }
}

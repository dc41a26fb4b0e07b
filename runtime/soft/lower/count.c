/*
 * The numbers that branches and other jumps add to the executed instructions: see soft_code_number.
 */
#include "lower.h"

void soft_count_from(struct soft_lowering *lowering) {
    struct soft_draft *drafts = lowering->drafts;
    for (uint32_t i = 1; i < lowering->draft_count; i++) {
        uint32_t last = drafts[i - 1].origin;
        drafts[i].number = last < drafts[i].origin ? last + 1 : last;
    }
    for (uint32_t i = 0; i < lowering->draft_count; i++) {
        struct soft_draft *draft = &drafts[i];
        if (draft->target != SOFT_NO_LABEL) {
            drafts[lowering->begins[draft->target]].number = draft->target;
        }
        for (uint32_t t = 0; t < draft->target_count; t++) {
            drafts[lowering->begins[draft->targets[t]]].number = draft->targets[t];
        }
    }
}

void soft_count_to(const struct soft_lowering *lowering, const struct soft_draft *draft,
                   uint32_t *difference) {
    switch (draft->op) {
    case SOFT_OP_bra:
    case SOFT_OP_bra_if:
        *difference = draft->origin + 1 - lowering->drafts[draft->target].number;
        return;
    case SOFT_OP_brx:
    case SOFT_OP_exit:
    case SOFT_OP_ret:
    case SOFT_OP_call:
    case SOFT_OP_call_indirect:
        *difference = draft->origin + 1;
        return;
    default:
        return;
    }
}

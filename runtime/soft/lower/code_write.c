/*
 * Code from drafts, once every value has its slot.
 */
#include "lower.h"

#include "core.h"

static uint32_t code_write_slot_of(const struct soft_lowering *lowering, uint32_t value) {
    if (value == SOFT_NO_VALUE) return 0;
    return lowering->values[lowering->values[value].alias].slot;
}

static bool write_extras(struct soft_lowering *lowering, const struct soft_draft *draft,
                         uint32_t *room) {
    for (uint32_t i = 0; i < draft->extra_count; i++) {
        const struct soft_extra *extra = &draft->extras[i];
        lowering->code->operands[(*room)++] = extra->kind == SOFT_EXTRA_NUMBER
                                                  ? extra->value
                                                  : code_write_slot_of(lowering, extra->value);
    }
    if (draft->target_count > 0) lowering->code->operands[(*room)++] = draft->target_count;
    for (uint32_t t = 0; t < draft->target_count; t++) {
        lowering->code->operands[(*room)++] = draft->targets[t];
    }
    return true;
}

static uint32_t count_extras(const struct soft_lowering *lowering) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < lowering->draft_count; i++) {
        count += lowering->drafts[i].extra_count + lowering->drafts[i].target_count + 1;
    }
    return count;
}

/* A function that the code calls must be complete before the code is executed. */
static struct soft_code *code_write_code_of(struct soft_lowering *lowering,
                                            struct ptx_function *callee) {
    if (!callee->is_listed && !atomic_load(&callee->code->is_complete)) {
        callee->is_listed = true;
        callee->next_callee = lowering->callees;
        lowering->callees = callee;
    }
    return callee->code;
}

static uint8_t code_write_fields(const struct soft_draft *draft) {
    uint8_t fields = 0;
    if (draft->a != SOFT_NO_VALUE) fields |= SOFT_USES_A;
    if (draft->b != SOFT_NO_VALUE) fields |= SOFT_USES_B;
    if (draft->c != SOFT_NO_VALUE) fields |= SOFT_USES_C;
    if (draft->e != SOFT_NO_VALUE) fields |= SOFT_USES_E;
    if (draft->d == SOFT_NO_VALUE) return fields;
    fields |= draft->d_is_read ? SOFT_USES_D : SOFT_USES_DEFINES_D;
    return (uint8_t)(draft->keeps ? fields | SOFT_USES_KEEPS : fields);
}

static struct soft_uses code_write_uses(const struct soft_draft *draft) {
    struct soft_uses uses = {.fields = code_write_fields(draft)};
    for (uint32_t i = 0; i < draft->extra_count && i < SOFT_USES_EXTRAS; i++) {
        const uint16_t bit = (uint16_t)(1u << i);
        if (draft->extras[i].kind == SOFT_EXTRA_USE) uses.used |= bit;
        if (draft->extras[i].kind == SOFT_EXTRA_DEFINE) uses.defined |= bit;
    }
    return uses;
}

static bool write_instructions(struct soft_lowering *lowering) {
    struct soft_code *code = lowering->code;
    const struct soft_core *core = soft_core();
    code->instructions =
        SOFT_ARENA_ARRAY(lowering->arena, struct soft_instruction, lowering->draft_count);
    code->origins = SOFT_ARENA_ARRAY(lowering->arena, struct soft_origin, lowering->draft_count);
    code->uses = SOFT_ARENA_ARRAY(lowering->arena, struct soft_uses, lowering->draft_count);
    code->operands = SOFT_ARENA_ARRAY(lowering->arena, uint32_t, count_extras(lowering));
    uint32_t *polls = SOFT_ARENA_ARRAY(lowering->scratch, uint32_t, lowering->draft_count + 1);
    if (code->instructions == NULL || code->origins == NULL || code->uses == NULL ||
        code->operands == NULL || polls == NULL) {
        return LOWER_NO_MEMORY(lowering);
    }
    code->instruction_count = lowering->draft_count;
    uint32_t operands = 0, site = lowering->function->first_site;
    for (uint32_t i = 0; i < lowering->draft_count; i++) {
        const struct soft_draft *draft = &lowering->drafts[i];
        const struct ptx_instruction *from = lowering->function->instruction_count > 0
                                                 ? &lowering->function->instructions[draft->origin]
                                                 : NULL; /* an empty body */
        struct soft_instruction *to = &code->instructions[i];
        to->run[0] = core->run[draft->op][0];
        to->run[1] = core->run[draft->op][1];
        to->d = code_write_slot_of(lowering, draft->d);
        to->a = code_write_slot_of(lowering, draft->a);
        to->b = code_write_slot_of(lowering, draft->b);
        to->c = code_write_slot_of(lowering, draft->c);
        to->u.immediate = draft->e != SOFT_NO_VALUE
                              ? (int64_t)code_write_slot_of(lowering, draft->e)
                              : draft->immediate;
        const struct soft_instruction *join =
            draft->join != SOFT_NO_LABEL ? &code->instructions[draft->join] : NULL;
        if (draft->target != SOFT_NO_LABEL) to->target = &code->instructions[draft->target];
        if (draft->target != SOFT_NO_LABEL || draft->op == SOFT_OP_brx) to->u.join = join;
        if (draft->op == SOFT_OP_call_indirect) to->target = join;
        if (draft->op == SOFT_OP_call) to->u.callee = code_write_code_of(lowering, draft->callee);
        to->mode = draft->mode;
        polls[i + 1] = polls[i] + draft->polls;
        if (draft->target != SOFT_NO_LABEL && draft->target <= i) {
            to->mode |= SOFT_BRANCH_BACKWARD;
            if (polls[i] > polls[draft->target]) to->mode |= SOFT_BRANCH_POLLS;
        }
        to->more = operands;
        if (!write_extras(lowering, draft, &operands)) return false;
        code->uses[i] = code_write_uses(draft);
        if (draft->has_site) to->site = site++;
        to->op = (uint16_t)draft->op;
        soft_count_to(lowering, draft, &to->d);
        if (from != NULL) {
            code->origins[i] = (struct soft_origin){.offset = from->offset,
                                                    .file = from->file,
                                                    .line = from->line,
                                                    .number = draft->number};
        }
    }
    return true;
}

static enum soft_fill_kind fill_kind(enum soft_value_kind kind) {
    switch (kind) {
    case SOFT_VALUE_PARAMETER:
        return SOFT_FILL_PARAMETER;
    case SOFT_VALUE_SPECIAL:
        return SOFT_FILL_SPECIAL;
    case SOFT_VALUE_CTA:
        return SOFT_FILL_CTA;
    case SOFT_VALUE_DYNAMIC_SHARED:
        return SOFT_FILL_DYNAMIC_SHARED;
    case SOFT_VALUE_LOCAL:
        return SOFT_FILL_LOCAL;
    default:
        return SOFT_FILL_CONSTANT;
    }
}

static void add_fills(struct soft_lowering *lowering, bool of_cta) {
    struct soft_code *code = lowering->code;
    for (uint32_t i = 0; i < lowering->value_count; i++) {
        const struct soft_value *value = &lowering->values[i];
        if (value->kind == SOFT_VALUE_REGISTER || !value->used) continue;
        if ((value->kind == SOFT_VALUE_CTA) != of_cta) continue;
        struct soft_fill *fill = &code->fills[code->fill_count++];
        *fill = (struct soft_fill){.kind = fill_kind(value->kind),
                                   .slot = value->slot,
                                   .wide = value->bits == 64,
                                   .predicate = value->bits == 1,
                                   .bytes = value->parameter_bytes,
                                   .is_signed = value->parameter_signed,
                                   .value = value->constant};
    }
}

static bool write_fills(struct soft_lowering *lowering) {
    struct soft_code *code = lowering->code;
    code->fill_count = 0;
    code->fills = SOFT_ARENA_ARRAY(lowering->arena, struct soft_fill, lowering->value_count);
    if (code->fills == NULL) return LOWER_NO_MEMORY(lowering);
    /* First the slots that each block fills again. */
    add_fills(lowering, true);
    code->cta_fill_count = code->fill_count;
    add_fills(lowering, false);
    return true;
}

static void write_frame(struct soft_lowering *lowering) {
    enum { REGISTERS_MAX = 255 };
    uint32_t slots = lowering->frame_bytes / SOFT_SLOT_BYTES;
    lowering->code->registers = slots < REGISTERS_MAX ? slots : REGISTERS_MAX;
    lowering->code->frame_bytes = lowering->frame_bytes;
}

bool soft_code_write(struct soft_lowering *lowering) {
    if (!write_instructions(lowering) || !write_fills(lowering)) return false;
    write_frame(lowering);
    return true;
}

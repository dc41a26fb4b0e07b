/*
 * Branches, exits, the stack, barriers, and joint operations of lanes. Source: PTX ISA 9.0,
 * sections 9.7.12 (Control flow), 9.7.13 (Parallel synchronization) and 9.7.15 (Stack
 * manipulation).
 */
#include "lower.h"

static bool control_branch(struct soft_lowering *lowering, const struct ptx_instruction *in,
                           uint32_t target) {
    struct soft_draft *draft = soft_draft(lowering, in->guard >= 0 ? SOFT_OP_bra_if : SOFT_OP_bra);
    if (draft == NULL) return false;
    if (in->guard >= 0) draft->a = (uint32_t)in->guard;
    draft->mode = in->guard_negated ? SOFT_BRANCH_NEGATED : 0;
    draft->target = target;
    return true;
}

bool soft_lower_bra(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    if (in->operand_count != 1 || in->operands[0].kind != PTX_OPERAND_SYMBOL ||
        in->operands[0].symbol->kind != PTX_LABEL || in->operands[0].integer != 0) {
        return LOWER_FAIL(lowering, in, "expected a label");
    }
    return control_branch(lowering, in, in->operands[0].symbol->is.label);
}

/* exit, ret, trap and brkpt: for the lanes whose guard holds. A return from a function is a branch
 * to its end, where all its lanes reconverge; a return from a kernel is an exit. */
bool soft_lower_leave(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    if (in->operand_count != 0) return LOWER_FAIL(lowering, in, "this instruction has no operands");
    bool returns = in->opcode->row->name[0] == 'r' && !lowering->function->entry;
    if (returns) return control_branch(lowering, in, lowering->function->instruction_count);
    struct soft_draft *draft = soft_draft(lowering, (enum soft_op)soft_first_op(in));
    if (draft == NULL) return false;
    if (in->guard >= 0) {
        draft->a = (uint32_t)in->guard;
        draft->mode = SOFT_BRANCH_GUARDED | (in->guard_negated ? SOFT_BRANCH_NEGATED : 0);
    }
    if (in->opcode->row->name[0] == 'b') draft->mode |= SOFT_BRANCH_BREAKS;
    return true;
}

/* Literal numbers can be checked here, as in ptxas. */
static bool check_barrier(struct soft_lowering *lowering, const struct ptx_operand *barrier,
                          const struct ptx_operand *threads) {
    if (barrier->kind == PTX_OPERAND_INTEGER && (barrier->integer < 0 || barrier->integer > 15)) {
        return LOWER_FAIL(lowering, barrier, "barriers are numbered 0 to 15");
    }
    if (threads != NULL && threads->kind == PTX_OPERAND_INTEGER && threads->integer % 32 != 0) {
        return LOWER_FAIL(lowering, threads,
                          "the number of threads of a barrier must be a multiple of 32");
    }
    return true;
}

/* bar.sync a{, threads}; bar.arrive a, threads; bar.red.op d, a{, threads}, p */
bool soft_lower_barrier(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum soft_op op = (enum soft_op)soft_first_op(in);
    bool reduces = op == SOFT_OP_barrier_red, popc = ptx_has(in->opcode, PTX_popc);
    uint32_t first = reduces ? 1 : 0, last = reduces ? 1 : 0;
    uint32_t least = op == SOFT_OP_barrier_arrive ? 2 : 1;
    uint32_t count = in->operand_count - first - last;
    if (in->operand_count < first + least + last || count > 2) {
        return LOWER_FAIL(lowering, in, "expected a barrier and a number of threads");
    }
    const struct ptx_operand *barrier = &in->operands[first],
                             *threads = count == 2 ? barrier + 1 : NULL;
    uint32_t a = 0, b = SOFT_NO_VALUE, c = SOFT_NO_VALUE, d = SOFT_NO_VALUE;
    bool negated = false;
    if (!check_barrier(lowering, barrier, threads) ||
        !soft_source(lowering, barrier, 32, PTX_u32, &a) ||
        (threads != NULL && !soft_source(lowering, threads, 32, PTX_u32, &b))) {
        return false;
    }
    if (reduces && (!soft_predicate(lowering, &in->operands[first + count], &c, &negated) ||
                    !soft_destination(lowering, &in->operands[0], popc ? 32 : 1,
                                      popc ? PTX_u32 : PTX_pred, &d))) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, op);
    if (draft == NULL) return false;
    draft->a = a;
    draft->b = b;
    draft->c = c;
    draft->d = d;
    draft->mode = threads != NULL ? SOFT_BARRIER_COUNTED : 0;
    bool bar = in->opcode->row->name[3] == '\0';
    if (bar || ptx_has(in->opcode, PTX_aligned)) draft->mode |= SOFT_BARRIER_ALIGNED;
    if (negated) draft->mode |= SOFT_BARRIER_NEGATED;
    if (reduces) {
        draft->mode |= popc                           ? SOFT_BARRIER_POPC
                       : ptx_has(in->opcode, PTX_and) ? SOFT_BARRIER_AND
                                                      : SOFT_BARRIER_OR;
    }
    return true;
}

bool soft_lower_warp_sync(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    uint32_t members = 0;
    if (in->operand_count != 1) return LOWER_FAIL(lowering, in, "expected a member mask");
    if (!soft_source(lowering, &in->operands[0], 32, PTX_b32, &members)) return false;
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_warp_sync);
    return draft != NULL && soft_extra(lowering, draft, SOFT_EXTRA_USE, members);
}

/* The destination of an operation that may also return a predicate: d or d|p. */
static bool read_pair(struct soft_lowering *lowering, const struct ptx_operand *operand,
                      uint32_t *d, uint32_t *p) {
    bool pair = operand->kind == PTX_OPERAND_PAIR;
    *p = SOFT_NO_VALUE;
    return soft_destination(lowering, pair ? &operand->items[0] : operand, 32, PTX_b32, d) &&
           (!pair || soft_destination(lowering, &operand->items[1], 1, PTX_pred, p));
}

/* Adds the member mask and the predicate, which all of these have as their last operands. */
static bool add_members(struct soft_lowering *lowering, struct soft_draft *draft, uint32_t members,
                        uint32_t p) {
    return soft_extra(lowering, draft, SOFT_EXTRA_USE, members) &&
           (p != SOFT_NO_VALUE ? soft_extra(lowering, draft, SOFT_EXTRA_DEFINE, p)
                               : soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, UINT32_MAX));
}

/* The member mask, the operand at a position. Before .sync there was none: the lanes that execute
 * together were the members. */
static bool read_members(struct soft_lowering *lowering, const struct ptx_instruction *in,
                         uint32_t place, uint32_t *members) {
    const char *name = in->opcode->row->name;
    bool sync = ptx_has(in->opcode, PTX_sync);
    if (in->operand_count != place + sync) {
        return LOWER_FAIL(lowering, in, "%s%s needs %u operands, not %u", name, sync ? ".sync" : "",
                          place + sync, in->operand_count);
    }
    if (sync) return soft_source(lowering, &in->operands[place], 32, PTX_b32, members);
    if (lowering->module->target >= 70 && lowering->module->version >= 64) {
        return LOWER_FAIL(lowering, in, "%s needs .sync since PTX 6.4 and sm_70", name);
    }
    *members = soft_convert(lowering, SOFT_OP_special, 32, SOFT_NO_VALUE);
    if (*members == SOFT_NO_VALUE) return false;
    lowering->drafts[lowering->draft_count - 1].mode = PTX_SPECIALS; /* activemask */
    return true;
}

/* shfl{.sync}.mode.b32 d|p, a, b, c{, members} */
bool soft_lower_shfl(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    static const enum ptx_modifier modes[] = {PTX_up, PTX_down, PTX_bfly, PTX_idx};
    uint32_t d = 0, p = 0, values[3], members = 0;
    if (!read_members(lowering, in, 4, &members)) return false;
    for (int i = 0; i < 3; i++) {
        if (!soft_source(lowering, &in->operands[i + 1], 32, PTX_b32, &values[i])) return false;
    }
    if (!read_pair(lowering, &in->operands[0], &d, &p)) return false;
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_shfl);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = values[0];
    draft->b = values[1];
    draft->c = values[2];
    for (uint32_t i = 0; i < 4; i++) {
        if (ptx_has(in->opcode, modes[i])) draft->mode = i;
    }
    return add_members(lowering, draft, members, p);
}

/* vote{.sync}.mode d, p{, members} */
bool soft_lower_vote(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    static const enum ptx_modifier modes[] = {PTX_all, PTX_any, PTX_uni, PTX_ballot};
    uint32_t d = 0, a = 0, members = 0, mode = 0;
    bool negated = false;
    for (uint32_t i = 0; i < 4; i++) {
        if (ptx_has(in->opcode, modes[i])) mode = i;
    }
    if (!read_members(lowering, in, 2, &members) ||
        !soft_predicate(lowering, &in->operands[1], &a, &negated) ||
        !soft_destination(lowering, &in->operands[0], mode == 3 ? 32 : 1,
                          mode == 3 ? PTX_b32 : PTX_pred, &d)) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_vote);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = a;
    draft->mode = mode | (negated ? 16 : 0);
    return add_members(lowering, draft, members, SOFT_NO_VALUE);
}

/* match.any.sync d, a, members; match.all.sync d|p, a, members */
bool soft_lower_match(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    unsigned bits = soft_bits(in->opcode->type[0]);
    uint32_t d = 0, p = 0, a = 0, members = 0;
    if (in->operand_count != 3) {
        return LOWER_FAIL(lowering, in, "match.sync needs 3 operands, not %u", in->operand_count);
    }
    if (!soft_source(lowering, &in->operands[1], bits, in->opcode->type[0], &a) ||
        !soft_source(lowering, &in->operands[2], 32, PTX_b32, &members) ||
        !read_pair(lowering, &in->operands[0], &d, &p)) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_match);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = a;
    draft->mode = (ptx_has(in->opcode, PTX_all) ? 1u : 0u) | (bits == 64 ? 2u : 0u);
    return add_members(lowering, draft, members, p);
}

/* redux.sync.op d, a, members */
bool soft_lower_redux(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    static const enum ptx_modifier words[] = {PTX_add, PTX_min, PTX_max, PTX_and, PTX_or, PTX_xor};
    uint32_t d = 0, a = 0, members = 0;
    if (in->operand_count != 3) {
        return LOWER_FAIL(lowering, in, "redux.sync needs 3 operands, not %u", in->operand_count);
    }
    if (!soft_source(lowering, &in->operands[1], 32, in->opcode->type[0], &a) ||
        !soft_source(lowering, &in->operands[2], 32, PTX_b32, &members) ||
        !soft_destination(lowering, &in->operands[0], 32, PTX_b32, &d)) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_redux);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = a;
    for (int i = 0; i < 6; i++) {
        if (ptx_has(in->opcode, words[i])) draft->mode = (uint32_t)words[i];
    }
    if (in->opcode->type[0] == PTX_s32) draft->mode |= 1u << 16;
    return add_members(lowering, draft, members, SOFT_NO_VALUE);
}

/* elect.sync d|p, members */
bool soft_lower_elect(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    uint32_t d = 0, p = 0, members = 0;
    if (in->operand_count != 2 || in->operands[0].kind != PTX_OPERAND_PAIR) {
        return LOWER_FAIL(lowering, in, "elect.sync needs d|p and a member mask");
    }
    if (!soft_source(lowering, &in->operands[1], 32, PTX_b32, &members) ||
        !read_pair(lowering, &in->operands[0], &d, &p)) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_elect);
    if (draft == NULL) return false;
    draft->d = d;
    return add_members(lowering, draft, members, p);
}

bool soft_lower_activemask(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    uint32_t d = 0;
    if (in->operand_count != 1) return LOWER_FAIL(lowering, in, "activemask needs 1 operand");
    if (!soft_destination(lowering, &in->operands[0], 32, PTX_b32, &d)) return false;
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_special);
    if (draft == NULL) return false;
    draft->d = d;
    draft->mode = PTX_SPECIALS;
    return true;
}

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

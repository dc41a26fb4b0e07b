/*
 * Asynchronous copies. Source: PTX ISA 9.0, section 9.7.9.25.
 */
#include "lower_memory.h"
#include "modes.h"

/* The third operand: 4, 8 or 16 bytes; bypassing the L1 cache only 16. */
static bool async_read_bytes(struct soft_lowering *lowering, const struct ptx_instruction *in,
                             uint32_t *bytes) {
    const struct ptx_operand *operand = &in->operands[2];
    bool fits = operand->kind == PTX_OPERAND_INTEGER &&
                (operand->integer == 16 ||
                 (ptx_has(in->opcode, PTX_ca) && (operand->integer == 4 || operand->integer == 8)));
    if (!fits) {
        return LOWER_FAIL(lowering, operand, "the copy size must be %s bytes",
                          ptx_has(in->opcode, PTX_ca) ? "4, 8 or 16" : "16");
    }
    *bytes = (uint32_t)operand->integer;
    return true;
}

/* The fourth: the number of bytes to read, or a predicate that makes it 0. */
static bool async_read_limit(struct soft_lowering *lowering, const struct ptx_operand *operand,
                             uint32_t *value, uint32_t *mode) {
    bool negated = false;
    if (operand->kind == PTX_OPERAND_REGISTER && operand->type == PTX_pred) {
        *mode |= SOFT_ASYNC_IGNORE;
        if (!soft_predicate(lowering, operand, value, &negated)) return false;
        if (negated) *mode |= SOFT_ASYNC_NEGATED;
        return true;
    }
    if (operand->kind == PTX_OPERAND_INTEGER &&
        (operand->integer < 0 || operand->integer > (*mode & SOFT_ASYNC_BYTES))) {
        return LOWER_FAIL(lowering, operand,
                          "a copy of %u bytes cannot read more bytes than it writes",
                          *mode & SOFT_ASYNC_BYTES);
    }
    *mode |= SOFT_ASYNC_SIZED;
    return soft_source(lowering, operand, 32, PTX_u32, value);
}

/* An address after the first: its offset is a separate operand. */
static bool add_offset(struct soft_lowering *lowering, struct soft_draft *draft,
                       const struct ptx_operand *where, const struct soft_address *address) {
    if (address->offset != (int32_t)address->offset) {
        return LOWER_FAIL(lowering, where, "the offset does not fit in 32 bits");
    }
    return soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, (uint32_t)address->offset);
}

/* cp.async.ca [shared], [global], bytes{, limit}{, policy} */
bool soft_lower_cp_async(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct soft_address to = {.base = SOFT_NO_VALUE}, from = {.base = SOFT_NO_VALUE};
    uint32_t mode = 0, limit = SOFT_NO_VALUE, policy = 0;
    bool hinted = ptx_has(in->opcode, PTX_l2_cache_hint);
    uint32_t count = in->operand_count - (hinted ? 1 : 0);
    if (in->operand_count < 3 || count < 3 || count > 4) {
        return LOWER_FAIL(lowering, in, "cp.async needs two addresses and a number of bytes");
    }
    if (!async_read_bytes(lowering, in, &mode) ||
        (count == 4 && !async_read_limit(lowering, &in->operands[3], &limit, &mode)) ||
        (hinted && !soft_source(lowering, &in->operands[count], 64, PTX_b64, &policy)) ||
        !soft_read_address(lowering, &in->operands[0], SOFT_SPACE_SHARED, &to) ||
        !soft_read_address(lowering, &in->operands[1], SOFT_SPACE_GLOBAL, &from)) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_cp_async);
    if (draft == NULL) return false;
    draft->a = to.base;
    draft->immediate = to.offset;
    draft->b = from.base;
    draft->c = limit;
    draft->mode = mode;
    draft->has_site = true;
    return add_offset(lowering, draft, &in->operands[1], &from);
}

/* The operation of an asynchronous reduction, as mode bits. */
static uint32_t reduction_of(const struct ptx_opcode *opcode) {
    static const enum ptx_modifier words[] = {PTX_add, PTX_min, PTX_max, PTX_inc,
                                              PTX_dec, PTX_and, PTX_or,  PTX_xor};
    uint32_t operation = SOFT_ATOMIC_ADD;
    for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (ptx_has(opcode, words[i])) operation = i;
    }
    return SOFT_BULK_REDUCE | operation << SOFT_BULK_OPERATION_SHIFT |
           (uint32_t)opcode->type[0] << SOFT_BULK_TYPE_SHIFT;
}

/* cp.async.bulk [to], [from], bytes{, [mbarrier]}{, blocks}{, policy} */
bool soft_lower_cp_bulk(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct soft_address to = {.base = SOFT_NO_VALUE}, from = {.base = SOFT_NO_VALUE},
                        object = {.base = SOFT_NO_VALUE};
    uint32_t mode = 0, bytes = 0, blocks = SOFT_NO_VALUE, policy = 0, next = 3;
    bool grouped = ptx_has(in->opcode, PTX_bulk_group);
    bool multicast = ptx_has(in->opcode, PTX_multicast_cluster);
    bool hinted = ptx_has(in->opcode, PTX_l2_cache_hint);
    uint32_t count = 3u + !grouped + multicast + hinted;
    if (in->operand_count != count) {
        return LOWER_FAIL(lowering, in, "expected %u operands, not %u", count, in->operand_count);
    }
    if (grouped) mode |= SOFT_BULK_GROUP;
    if (ptx_has(in->opcode, PTX_reduce)) mode |= reduction_of(in->opcode);
    if (multicast) mode |= SOFT_BULK_MULTICAST;
    if (ptx_has(in->opcode, PTX_shared_cluster)) mode |= SOFT_BULK_CLUSTER;
    if (!grouped && ptx_has(in->opcode, PTX_global)) mode |= SOFT_BULK_FROM_GLOBAL;
    if (!soft_read_address(lowering, &in->operands[0],
                           grouped ? SOFT_SPACE_GLOBAL : SOFT_SPACE_SHARED, &to) ||
        !soft_read_address(lowering, &in->operands[1],
                           mode & SOFT_BULK_FROM_GLOBAL ? SOFT_SPACE_GLOBAL : SOFT_SPACE_SHARED,
                           &from) ||
        !soft_source(lowering, &in->operands[2], 32, PTX_u32, &bytes) ||
        (!grouped &&
         !soft_read_address(lowering, &in->operands[next++], SOFT_SPACE_SHARED, &object)) ||
        (multicast && !soft_source(lowering, &in->operands[next++], 16, PTX_u16, &blocks)) ||
        (hinted && !soft_source(lowering, &in->operands[next], 64, PTX_b64, &policy))) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_cp_bulk);
    if (draft == NULL) return false;
    draft->a = to.base;
    draft->immediate = to.offset;
    draft->b = from.base;
    draft->c = bytes;
    draft->mode = mode;
    draft->has_site = true;
    return add_offset(lowering, draft, &in->operands[1], &from) &&
           (grouped || (soft_extra(lowering, draft, SOFT_EXTRA_USE, object.base) &&
                        add_offset(lowering, draft, &in->operands[3], &object))) &&
           (!multicast || soft_extra(lowering, draft, SOFT_EXTRA_USE, blocks));
}

/* st.async [a], b, [mbarrier]; red.async [a], b, [mbarrier] */
bool soft_lower_st_async(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct soft_address to = {.base = SOFT_NO_VALUE}, object = {.base = SOFT_NO_VALUE};
    enum ptx_modifier type = in->opcode->type[0];
    uint32_t count = ptx_has(in->opcode, PTX_v4) ? 4 : ptx_has(in->opcode, PTX_v2) ? 2 : 1;
    uint32_t values[4] = {0};
    if (in->operand_count != 3) {
        return LOWER_FAIL(lowering, in, "expected an address, a value and an mbarrier");
    }
    const struct ptx_operand *b = &in->operands[1];
    bool vector = b->kind == PTX_OPERAND_VECTOR;
    if ((vector ? b->count : 1) != count) {
        return LOWER_FAIL(lowering, b, "expected %u registers", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct ptx_operand *item = vector ? &b->items[i] : b;
        if (!soft_source(lowering, item, soft_bits(type), type, &values[i])) return false;
    }
    if (!soft_read_address(lowering, &in->operands[0], SOFT_SPACE_SHARED, &to) ||
        !soft_read_address(lowering, &in->operands[2], SOFT_SPACE_SHARED, &object)) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_st_async);
    if (draft == NULL) return false;
    draft->a = to.base;
    draft->immediate = to.offset;
    draft->mode = in->opcode->row->name[0] == 'r' ? reduction_of(in->opcode)
                                                  : (uint32_t)type << SOFT_BULK_TYPE_SHIFT;
    draft->mode |= count << SOFT_BULK_COUNT_SHIFT;
    draft->has_site = true;
    bool ok = soft_extra(lowering, draft, SOFT_EXTRA_USE, object.base) &&
              add_offset(lowering, draft, &in->operands[2], &object);
    for (uint32_t i = 0; i < count && ok; i++) {
        ok = soft_extra(lowering, draft, SOFT_EXTRA_USE, values[i]);
    }
    return ok;
}

/* cp.async.wait_group n; cp.async.wait_all is a commit_group and a wait_group 0. Reading the source
 * (.read) completes as late as everything else. */
bool soft_lower_cp_async_wait(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    bool all = ptx_has(in->opcode, PTX_wait_all);
    if (in->operand_count != (all ? 0u : 1u) ||
        (!all && in->operands[0].kind != PTX_OPERAND_INTEGER)) {
        return LOWER_FAIL(lowering, in,
                          all ? "this instruction has no operands" : "expected a number of groups");
    }
    if (all && soft_draft(lowering, SOFT_OP_cp_async_commit) == NULL) return false;
    struct soft_draft *draft = soft_draft(lowering, (enum soft_op)soft_first_op(in));
    if (draft == NULL) return false;
    draft->mode = all ? 0 : (uint32_t)in->operands[0].integer;
    return true;
}

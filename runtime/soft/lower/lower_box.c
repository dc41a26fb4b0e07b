/*
 * Copies of boxes of tensors. Source: PTX ISA 9.0, sections 9.7.9.27.1.2 (cp.async.bulk.tensor) and
 * 9.7.9.27.1.3 (cp.reduce.async.bulk.tensor).
 */
#include "lower_memory.h"
#include "modes.h"

/* [map, {coordinates}] */
static bool read_box(struct soft_lowering *lowering, const struct ptx_instruction *in,
                     const struct ptx_operand *operand, struct soft_address *map,
                     uint32_t coordinates[5], uint32_t *rank) {
    static const enum ptx_modifier ranks[] = {PTX_d1, PTX_d2, PTX_d3, PTX_d4, PTX_d5};
    for (uint32_t i = 0; i < 5; i++) {
        if (ptx_has(in->opcode, ranks[i])) *rank = i + 1;
    }
    if (operand->kind != PTX_OPERAND_ADDRESS || operand->count != 2 ||
        operand->items[1].kind != PTX_OPERAND_VECTOR || operand->items[1].count != *rank) {
        return LOWER_FAIL(lowering, operand, "expected a tensor map and %u coordinates", *rank);
    }
    struct ptx_operand base = *operand;
    base.count = 1;
    if (!soft_read_address(lowering, &base, SOFT_SPACE_GENERIC, map)) return false;
    for (uint32_t i = 0; i < *rank; i++) {
        if (!soft_source(lowering, &operand->items[1].items[i], 32, PTX_s32, &coordinates[i])) {
            return false;
        }
    }
    return true;
}

static uint32_t sum_of(const struct ptx_opcode *opcode) {
    static const enum ptx_modifier words[] = {PTX_add, PTX_min, PTX_max, PTX_inc,
                                              PTX_dec, PTX_and, PTX_or,  PTX_xor};
    uint32_t operation = SOFT_ATOMIC_ADD;
    for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (ptx_has(opcode, words[i])) operation = i;
    }
    return SOFT_BULK_REDUCE | operation << SOFT_BULK_OPERATION_SHIFT;
}

static bool add_number(struct soft_lowering *lowering, struct soft_draft *draft,
                       const struct ptx_operand *where, int64_t number) {
    if (number != (int32_t)number) {
        return LOWER_FAIL(lowering, where, "the offset does not fit in 32 bits");
    }
    return soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, (uint32_t)number);
}

/* Into shared memory: [to], [map, {c}], [mbarrier]{, blocks}{, policy}; out of it: [map, {c}],
 * [from]{, policy}. The further operands: the map's offset, the rank, the mbarrier's address and
 * offset, the blocks, and the coordinates; 0 where there is none. */
bool soft_lower_cp_tensor(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct soft_address map = {.base = SOFT_NO_VALUE}, shared = {.base = SOFT_NO_VALUE},
                        object = {.base = SOFT_NO_VALUE};
    uint32_t coordinates[5] = {0}, rank = 0, blocks = SOFT_NO_VALUE, policy = 0, next = 3;
    bool out = ptx_has(in->opcode, PTX_bulk_group);
    bool multicast = ptx_has(in->opcode, PTX_multicast_cluster);
    bool hinted = ptx_has(in->opcode, PTX_l2_cache_hint);
    uint32_t count = 2u + !out + multicast + hinted;
    if (in->operand_count != count) {
        return LOWER_FAIL(lowering, in, "expected %u operands, not %u", count, in->operand_count);
    }
    if (out) next = 2;
    if (!read_box(lowering, in, &in->operands[!out], &map, coordinates, &rank) ||
        !soft_read_address(lowering, &in->operands[out], SOFT_SPACE_SHARED, &shared) ||
        (!out && !soft_read_address(lowering, &in->operands[2], SOFT_SPACE_SHARED, &object)) ||
        (multicast && !soft_source(lowering, &in->operands[next++], 16, PTX_u16, &blocks)) ||
        (hinted && !soft_source(lowering, &in->operands[next], 64, PTX_b64, &policy))) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_cp_tensor);
    if (draft == NULL) return false;
    draft->a = shared.base;
    draft->immediate = shared.offset;
    draft->b = map.base;
    draft->has_site = true;
    draft->mode = out ? SOFT_BULK_GROUP : SOFT_BULK_FROM_GLOBAL;
    if (multicast) draft->mode |= SOFT_BULK_MULTICAST;
    if (ptx_has(in->opcode, PTX_reduce)) draft->mode |= sum_of(in->opcode);
    bool ok = add_number(lowering, draft, &in->operands[!out], map.offset) &&
              soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, rank) &&
              soft_extra(lowering, draft, out ? SOFT_EXTRA_NUMBER : SOFT_EXTRA_USE,
                         out ? 0 : object.base) &&
              add_number(lowering, draft, in->operands, object.offset) &&
              soft_extra(lowering, draft, multicast ? SOFT_EXTRA_USE : SOFT_EXTRA_NUMBER,
                         multicast ? blocks : 0);
    for (uint32_t i = 0; i < rank && ok; i++) {
        ok = soft_extra(lowering, draft, SOFT_EXTRA_USE, coordinates[i]);
    }
    return ok;
}

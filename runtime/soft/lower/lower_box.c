/*
 * Copies of boxes of tensors. Source: PTX ISA 9.0, sections 9.7.9.27.1.2 (cp.async.bulk.tensor) and
 * 9.7.9.27.1.3 (cp.reduce.async.bulk.tensor).
 */
#include "lower_memory.h"
#include "modes.h"

/* [map, {coordinates}] */
static bool box_read_box(struct soft_lowering *lowering, const struct ptx_instruction *in,
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

static uint32_t box_sum_of(const struct ptx_opcode *opcode) {
    static const enum ptx_modifier words[] = {PTX_add, PTX_min, PTX_max, PTX_inc,
                                              PTX_dec, PTX_and, PTX_or,  PTX_xor};
    uint32_t operation = SOFT_ATOMIC_ADD;
    for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (ptx_has(opcode, words[i])) operation = i;
    }
    return SOFT_BULK_REDUCE | operation << SOFT_BULK_OPERATION_SHIFT;
}

static bool box_add_number(struct soft_lowering *lowering, struct soft_draft *draft,
                           const struct ptx_operand *where, int64_t number) {
    if (number != (int32_t)number) {
        return LOWER_FAIL(lowering, where, "the offset does not fit in 32 bits");
    }
    return soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, (uint32_t)number);
}

/* {offsets} of an im2col copy, one for each dimension between the first and the last. */
static bool read_offsets(struct soft_lowering *lowering, const struct ptx_operand *operand,
                         uint32_t count, uint32_t offsets[3]) {
    bool vector = operand->kind == PTX_OPERAND_VECTOR;
    if (!vector || operand->count != count) {
        return LOWER_FAIL(lowering, operand, "expected %u im2col offsets", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!soft_source(lowering, &operand->items[i], 16, PTX_u16, &offsets[i])) return false;
    }
    return true;
}

/* The operands of an instruction and their positions: SOFT_NO_VALUE for absent ones. */
struct box_operands {
    struct soft_address map, shared, object;
    uint32_t coordinates[5], offsets[3], rank, blocks;
};

/* Into shared memory: [to], [map, {c}], [mbarrier]{, {offsets}}{, blocks}{, policy}; out of it:
 * [map, {c}], [from]{, policy}; a prefetch: [map, {c}]{, {offsets}}{, policy}. */
static bool box_read_operands(struct soft_lowering *lowering, const struct ptx_instruction *in,
                              uint32_t mode, struct box_operands *box) {
    bool out = (mode & SOFT_BULK_GROUP) != 0, multicast = (mode & SOFT_BULK_MULTICAST) != 0;
    bool prefetch = (mode & SOFT_BULK_PREFETCH) != 0, into = !out && !prefetch;
    bool offsets = (mode & SOFT_BULK_IM2COL) != 0 && !out;
    bool hinted = ptx_has(in->opcode, PTX_l2_cache_hint);
    uint32_t count = (into ? 3u : out ? 2u : 1u) + offsets + multicast + hinted, policy = 0;
    uint32_t next = into ? 3 : out ? 2 : 1;
    if (in->operand_count != count) {
        return LOWER_FAIL(lowering, in, "expected %u operands, not %u", count, in->operand_count);
    }
    if (!box_read_box(lowering, in, &in->operands[into], &box->map, box->coordinates, &box->rank)) {
        return false;
    }
    if ((mode & SOFT_BULK_IM2COL) != 0 && box->rank < 3) {
        return LOWER_FAIL(lowering, in, "im2col copies have 3 to 5 dimensions, not %u", box->rank);
    }
    return (prefetch ||
            soft_read_address(lowering, &in->operands[out], SOFT_SPACE_SHARED, &box->shared)) &&
           (!into ||
            soft_read_address(lowering, &in->operands[2], SOFT_SPACE_SHARED, &box->object)) &&
           (!offsets ||
            read_offsets(lowering, &in->operands[next++], box->rank - 2, box->offsets)) &&
           (!multicast ||
            soft_source(lowering, &in->operands[next++], 16, PTX_u16, &box->blocks)) &&
           (!hinted || soft_source(lowering, &in->operands[next], 64, PTX_b64, &policy));
}

/* An operand that is used; or 0 if absent. */
static bool box_add_value(struct soft_lowering *lowering, struct soft_draft *draft, bool has,
                          uint32_t value) {
    return soft_extra(lowering, draft, has ? SOFT_EXTRA_USE : SOFT_EXTRA_NUMBER, has ? value : 0);
}

/* The further operands: the map's offset, the rank, the mbarrier's address and offset, the blocks,
 * the coordinates, and the im2col offsets; 0 if absent. */
bool soft_lower_cp_tensor(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct box_operands box = {.map.base = SOFT_NO_VALUE,
                               .shared.base = SOFT_NO_VALUE,
                               .object.base = SOFT_NO_VALUE,
                               .blocks = SOFT_NO_VALUE};
    bool out = ptx_has(in->opcode, PTX_bulk_group);
    bool prefetch = ptx_has(in->opcode, PTX_prefetch);
    bool multicast = ptx_has(in->opcode, PTX_multicast_cluster);
    bool im2col = ptx_has(in->opcode, PTX_im2col);
    uint32_t mode = out ? SOFT_BULK_GROUP : SOFT_BULK_FROM_GLOBAL;
    if (multicast) mode |= SOFT_BULK_MULTICAST;
    if (prefetch) mode |= SOFT_BULK_PREFETCH;
    if (im2col || ptx_has(in->opcode, PTX_im2col_no_offs)) mode |= SOFT_BULK_IM2COL;
    if (ptx_has(in->opcode, PTX_shared_cluster)) mode |= SOFT_BULK_CLUSTER;
    if (ptx_has(in->opcode, PTX_reduce)) mode |= box_sum_of(in->opcode);
    if (!box_read_operands(lowering, in, mode, &box)) return false;
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_cp_tensor);
    if (draft == NULL) return false;
    if (!prefetch) draft->a = box.shared.base;
    draft->immediate = box.shared.offset;
    draft->b = box.map.base;
    draft->has_site = true;
    draft->mode = mode;
    bool ok = box_add_number(lowering, draft, &in->operands[!out && !prefetch], box.map.offset) &&
              soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, box.rank) &&
              box_add_value(lowering, draft, !out && !prefetch, box.object.base) &&
              box_add_number(lowering, draft, in->operands, box.object.offset) &&
              box_add_value(lowering, draft, multicast, box.blocks);
    for (uint32_t i = 0; i < box.rank && ok; i++) {
        ok = soft_extra(lowering, draft, SOFT_EXTRA_USE, box.coordinates[i]);
    }
    for (uint32_t i = 0; im2col && i + 2 < box.rank && ok; i++) {
        ok = soft_extra(lowering, draft, SOFT_EXTRA_USE, box.offsets[i]);
    }
    return ok;
}

/*
 * Changes of tensor maps by kernels. Source: PTX ISA 9.0, sections 9.7.9.28 (tensormap.replace),
 * 9.7.13.16 (tensormap.cp_fenceproxy) and 9.7.13.4 (fence.proxy.tensormap).
 */
#include "lower_memory.h"
#include "modes.h"

enum { MAP_BYTES = 128 };

/* tensormap.replace [map], {dimension,} value */
bool soft_lower_map_replace(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    static const enum ptx_modifier words[] = {
        PTX_global_address, PTX_rank,           PTX_box_dim,  PTX_global_dim,
        PTX_global_stride,  PTX_element_stride, PTX_elemtype, PTX_interleave_layout,
        PTX_swizzle_mode,   PTX_fill_mode};
    uint32_t field = 0, value = SOFT_NO_VALUE, dimension = 0;
    while (!ptx_has(in->opcode, words[field])) field++;
    bool ordered = field >= SOFT_MAP_BOX && field <= SOFT_MAP_STEP;
    uint32_t count = ordered ? 3 : 2;
    enum ptx_modifier type = in->opcode->type[0];
    struct soft_address address = {.base = SOFT_NO_VALUE};
    if (in->operand_count != count) {
        return LOWER_FAIL(lowering, in, "expected %u operands, not %u", count, in->operand_count);
    }
    const struct ptx_operand *number = &in->operands[1], *last = &in->operands[count - 1];
    if (ordered) {
        uint64_t most = field == SOFT_MAP_STRIDE ? 3 : 4;
        if (number->kind != PTX_OPERAND_INTEGER || (uint64_t)number->integer > most) {
            return LOWER_FAIL(lowering, number, "expected a dimension, 0 to %u", (uint32_t)most);
        }
        dimension = (uint32_t)number->integer;
    }
    bool is_wide = field == SOFT_MAP_ADDRESS || field == SOFT_MAP_STRIDE;
    if (soft_bits(type) != (is_wide ? 64u : 32u)) {
        return LOWER_FAIL(lowering, in, "this field has %u bits", is_wide ? 64u : 32u);
    }
    enum soft_access_space space = soft_space_at(in->opcode, &in->operands[0]);
    if (!soft_read_address(lowering, &in->operands[0], space, &address) ||
        !soft_source(lowering, last, soft_bits(type), type, &value)) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_map_replace);
    if (draft == NULL) return false;
    draft->a = address.base;
    draft->immediate = address.offset;
    draft->b = value;
    draft->has_site = true;
    draft->mode = SOFT_ACCESS_STORE | (uint32_t)space << SOFT_ACCESS_SPACE_SHIFT;
    if (address.wide) draft->mode |= SOFT_ACCESS_WIDE_ADDRESS;
    return soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, field) &&
           soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, dimension);
}

static bool is_size(const struct ptx_operand *operand) {
    return operand->kind == PTX_OPERAND_INTEGER && operand->integer == MAP_BYTES;
}

/* tensormap.cp_fenceproxy [to], [from], 128 */
bool soft_lower_map_copy(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct soft_address to = {.base = SOFT_NO_VALUE}, from = {.base = SOFT_NO_VALUE};
    if (in->operand_count != 3 || !is_size(&in->operands[2])) {
        return LOWER_FAIL(lowering, in, "expected two addresses and 128");
    }
    if (!soft_read_address(lowering, &in->operands[0], SOFT_SPACE_GLOBAL, &to) ||
        !soft_read_address(lowering, &in->operands[1], SOFT_SPACE_SHARED, &from)) {
        return false;
    }
    if (from.offset != (int32_t)from.offset) {
        return LOWER_FAIL(lowering, &in->operands[1], "the offset does not fit in 32 bits");
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_map_copy);
    if (draft == NULL) return false;
    draft->a = to.base;
    draft->immediate = to.offset;
    draft->b = from.base;
    draft->has_site = true;
    draft->mode = SOFT_ACCESS_STORE | SOFT_ACCESS_WIDE_ADDRESS |
                  (uint32_t)SOFT_SPACE_GLOBAL << SOFT_ACCESS_SPACE_SHIFT;
    return soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, (uint32_t)from.offset);
}

/* fence.proxy.tensormap::generic.acquire [map], 128 */
bool soft_lower_map_fence(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct soft_address address = {.base = SOFT_NO_VALUE};
    if (in->operand_count != 2 || !is_size(&in->operands[1])) {
        return LOWER_FAIL(lowering, in, "expected an address and 128");
    }
    if (!soft_read_address(lowering, &in->operands[0], SOFT_SPACE_GENERIC, &address)) return false;
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_proxy_fence);
    if (draft == NULL) return false;
    draft->mode = SOFT_PROXY_MAP;
    return true;
}

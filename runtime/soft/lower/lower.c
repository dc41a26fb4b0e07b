/*
 * Lowers a function in two steps: drafts, which finds all of its errors, when it is loaded; blocks,
 * slots and code when it is first needed. The drafts are kept in between.
 */
#include "lower.h"

#include "base/options.h"

#include <string.h>

unsigned soft_bits(enum ptx_modifier type) {
    return ptx_register_bits(type);
}

static bool lower_grow(struct soft_lowering *lowering, void **array, uint32_t count, uint32_t *room,
                       size_t element_bytes) {
    if (count < *room) return true;
    uint32_t more = *room * 2 + 256;
    void *bigger = soft_arena_raw(lowering->scratch, more * element_bytes);
    if (bigger == NULL) return LOWER_NO_MEMORY(lowering);
    if (count > 0) memcpy(bigger, *array, count * element_bytes);
    *array = bigger;
    *room = more;
    return true;
}

struct soft_draft *soft_draft(struct soft_lowering *lowering, enum soft_op op) {
    void *drafts = lowering->drafts;
    if (!lower_grow(lowering, &drafts, lowering->draft_count, &lowering->draft_room,
                    sizeof *lowering->drafts)) {
        return NULL;
    }
    lowering->drafts = drafts;
    struct soft_draft *draft = &lowering->drafts[lowering->draft_count++];
    *draft = (struct soft_draft){
        .op = op,
        .d = SOFT_NO_VALUE,
        .a = SOFT_NO_VALUE,
        .b = SOFT_NO_VALUE,
        .c = SOFT_NO_VALUE,
        .e = SOFT_NO_VALUE,
        .target = SOFT_NO_LABEL,
        .join = SOFT_NO_LABEL,
        .origin = lowering->current,
    };
    return draft;
}

bool soft_extra(struct soft_lowering *lowering, struct soft_draft *draft, enum soft_extra_kind kind,
                uint32_t value) {
    struct soft_extra *more =
        SOFT_ARENA_ARRAY(lowering->scratch, struct soft_extra, draft->extra_count + 1);
    if (more == NULL) return LOWER_NO_MEMORY(lowering);
    if (draft->extra_count > 0) memcpy(more, draft->extras, draft->extra_count * sizeof more[0]);
    more[draft->extra_count].kind = kind;
    more[draft->extra_count].value = value;
    draft->extras = more;
    draft->extra_count++;
    return true;
}

static uint32_t new_value(struct soft_lowering *lowering, struct soft_value value) {
    void *values = lowering->values;
    if (!lower_grow(lowering, &values, lowering->value_count, &lowering->value_room,
                    sizeof *lowering->values)) {
        return SOFT_NO_VALUE;
    }
    lowering->values = values;
    value.alias = lowering->value_count;
    lowering->values[lowering->value_count] = value;
    return lowering->value_count++;
}

uint32_t soft_value_temporary(struct soft_lowering *lowering, unsigned bits) {
    return new_value(lowering, (struct soft_value){.kind = SOFT_VALUE_REGISTER,
                                                   .bits = (uint8_t)bits,
                                                   .bytes = bits == 128 ? 16 : 0});
}

uint32_t soft_value_find(struct soft_lowering *lowering, enum soft_value_kind kind, unsigned bits,
                         uint64_t constant, unsigned parameter_bytes, bool parameter_signed) {
    /* Registers come first, then values that never change. */
    for (uint32_t i = lowering->function->register_count; i < lowering->value_count; i++) {
        const struct soft_value *value = &lowering->values[i];
        if (value->kind == kind && value->bits == bits && value->constant == constant &&
            value->parameter_bytes == parameter_bytes &&
            value->parameter_signed == parameter_signed) {
            return i;
        }
    }
    return new_value(lowering, (struct soft_value){.kind = kind,
                                                   .bits = (uint8_t)bits,
                                                   .constant = constant,
                                                   .parameter_bytes = (uint8_t)parameter_bytes,
                                                   .parameter_signed = parameter_signed});
}

uint32_t soft_value_constant(struct soft_lowering *lowering, unsigned bits, uint64_t constant) {
    if (bits < 64) constant &= (1ull << bits) - 1;
    return soft_value_find(lowering, SOFT_VALUE_CONSTANT, bits, constant, 0, false);
}

/* A value that is the same in all threads of a block: what[component]. */
static uint32_t of_cta(struct soft_lowering *lowering, uint64_t what, uint64_t component) {
    return soft_value_find(lowering, SOFT_VALUE_CTA, 32, what + component, 0, false);
}

uint32_t soft_value_special(struct soft_lowering *lowering, enum ptx_special special) {
    switch (special) {
    case PTX_SPECIAL_ctaid_x:
    case PTX_SPECIAL_ctaid_y:
    case PTX_SPECIAL_ctaid_z:
        return of_cta(lowering, SOFT_CTA_CTAID, special - PTX_SPECIAL_ctaid_x);
    case PTX_SPECIAL_clusterid_x:
    case PTX_SPECIAL_clusterid_y:
    case PTX_SPECIAL_clusterid_z:
        return of_cta(lowering, SOFT_CTA_CLUSTERID, special - PTX_SPECIAL_clusterid_x);
    case PTX_SPECIAL_cluster_ctaid_x:
    case PTX_SPECIAL_cluster_ctaid_y:
    case PTX_SPECIAL_cluster_ctaid_z:
        return of_cta(lowering, SOFT_CTA_CLUSTER_CTAID, special - PTX_SPECIAL_cluster_ctaid_x);
    case PTX_SPECIAL_cluster_ctarank:
        return of_cta(lowering, SOFT_CTA_CLUSTER_CTARANK, 0);
    case PTX_SPECIAL_smid:
        /* Blocks have no multiprocessor here; the manual allows any number. */
        return soft_value_constant(lowering, 32, 0);
    case PTX_SPECIAL_nsmid:
        return soft_value_constant(lowering, 32, 1);
    case PTX_SPECIAL_is_explicit_cluster:
        return soft_value_find(lowering, SOFT_VALUE_SPECIAL, 1, special, 0, false);
    default:
        return soft_value_find(lowering, SOFT_VALUE_SPECIAL, 32, special, 0, false);
    }
}

bool soft_value_alias(struct soft_lowering *lowering, const struct ptx_instruction *instruction,
                      uint32_t destination, uint32_t source) {
    struct soft_value *to = &lowering->values[destination];
    source = lowering->values[source].alias;
    const struct soft_value *from = &lowering->values[source];
    if (instruction->guard >= 0 || to->definitions != 1 || to->kind != SOFT_VALUE_REGISTER ||
        from->kind == SOFT_VALUE_REGISTER || from->bits != to->bits) {
        return false;
    }
    to->alias = source;
    return true;
}

/* Counts the writes of each register: the destination is the first operand, except in stores and
 * branches, which have none. Counting too many only costs a move. */
static void count_definitions(struct soft_lowering *lowering) {
    const struct ptx_function *function = lowering->function;
    for (uint32_t i = 0; i < function->instruction_count; i++) {
        const struct ptx_instruction *in = &function->instructions[i];
        for (uint32_t o = 0; o < in->operand_count && o < 1; o++) {
            const struct ptx_operand *operand = &in->operands[o];
            const struct ptx_operand *items = operand;
            uint32_t count = 1;
            if (operand->kind == PTX_OPERAND_VECTOR || operand->kind == PTX_OPERAND_PAIR ||
                operand->kind == PTX_OPERAND_LIST) {
                items = operand->items;
                count = operand->count;
            }
            for (uint32_t k = 0; k < count; k++) {
                if (items[k].kind == PTX_OPERAND_REGISTER) {
                    lowering->values[items[k].reg].definitions++;
                }
            }
        }
    }
}

static bool lower_add_registers(struct soft_lowering *lowering) {
    const struct ptx_function *function = lowering->function;
    lowering->value_room = function->register_count + function->register_count / 4 + 256;
    lowering->values = SOFT_ARENA_ARRAY(lowering->scratch, struct soft_value, lowering->value_room);
    if (lowering->values == NULL) return LOWER_NO_MEMORY(lowering);
    for (uint32_t r = 0; r < function->register_count; r++) {
        struct soft_value *value = &lowering->values[r]; /* zero so far */
        value->kind = SOFT_VALUE_REGISTER;
        value->bits = (uint8_t)soft_bits(function->register_types[r]);
        if (value->bits == 128) value->bytes = 16;
        value->alias = r;
    }
    lowering->value_count = function->register_count;
    count_definitions(lowering);
    return true;
}

static bool add_guard(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct soft_draft *guard = soft_draft(lowering, SOFT_OP_guard);
    if (guard == NULL) return false;
    guard->a = (uint32_t)in->guard;
    guard->mode = in->guard_negated ? UINT32_MAX : 0;
    return true;
}

/* A guarded instruction that may make its lanes wait, or that becomes several drafts, gets a branch
 * around it; the branch's lanes diverge and reconverge like any other's. */
static bool branch_around(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct soft_draft *branch = soft_draft(lowering, SOFT_OP_bra_if);
    if (branch == NULL) return false;
    branch->a = (uint32_t)in->guard;
    branch->mode = in->guard_negated ? 0 : SOFT_BRANCH_NEGATED;
    branch->target = lowering->current + 1;
    return true;
}

/* Operations that handle their own guard, and those that may wait or jump. */
static bool handles_guard(enum soft_op op) {
    return op == SOFT_OP_bra || op == SOFT_OP_exit || op == SOFT_OP_trap;
}

static bool stands_alone(enum soft_op op) {
    switch (op) {
    case SOFT_OP_barrier:
    case SOFT_OP_barrier_arrive:
    case SOFT_OP_barrier_red:
    case SOFT_OP_brx:
    case SOFT_OP_call:
    case SOFT_OP_shfl:
    case SOFT_OP_vote:
    case SOFT_OP_match:
    case SOFT_OP_redux:
    case SOFT_OP_warp_sync:
    case SOFT_OP_elect:
    case SOFT_OP_sleep:
    case SOFT_OP_mbarrier_test:
    case SOFT_OP_cluster_wait:
        return true;
    default:
        return soft_is_whole(op);
    }
}

static bool lower_instruction(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum soft_op op = (enum soft_op)soft_first_op(in);
    if (lowering->has_wgmma && !soft_wgmma_check_use(lowering, in)) return false;
    uint32_t begin = lowering->draft_count;
    bool guarded = in->guard >= 0 && !handles_guard(op);
    if (guarded && stands_alone(op)) {
        return branch_around(lowering, in) && soft_lower_row(lowering, in);
    }
    if (guarded && !add_guard(lowering, in)) return false;
    if (!soft_lower_row(lowering, in)) return false;
    if (!guarded) return true;
    if (lowering->draft_count == begin + 1) {
        lowering->draft_count = begin; /* it became nothing */
    } else if (lowering->draft_count == begin + 2) {
        lowering->drafts[begin + 1].guarded = true;
    } else {
        /* It became several: branch around them instead. */
        lowering->drafts[begin].op = SOFT_OP_bra_if;
        lowering->drafts[begin].mode = in->guard_negated ? 0 : SOFT_BRANCH_NEGATED;
        lowering->drafts[begin].target = lowering->current + 1;
    }
    return true;
}

/* With a seed, other threads may run after a load of memory that they write, so that an update made
 * of a load and a store is seen to be non-atomic. */
static bool give_turn(struct soft_lowering *lowering, uint32_t begin) {
    if (soft_options()->seed == 0) return true;
    bool polls = false;
    for (uint32_t i = begin; i < lowering->draft_count; i++) polls |= lowering->drafts[i].polls;
    return !polls || soft_draft(lowering, SOFT_OP_turn) != NULL;
}

static bool draft_all(struct soft_lowering *lowering) {
    const struct ptx_function *function = lowering->function;
    lowering->begins =
        SOFT_ARENA_ARRAY(lowering->scratch, uint32_t, function->instruction_count + 1);
    lowering->draft_room = function->instruction_count + function->instruction_count / 4 + 64;
    lowering->drafts =
        soft_arena_raw(lowering->scratch, lowering->draft_room * sizeof *lowering->drafts);
    if (lowering->begins == NULL || lowering->drafts == NULL) return LOWER_NO_MEMORY(lowering);
    if (!soft_begin_function(lowering)) return false;
    soft_wgmma_pin(lowering);
    for (uint32_t i = 0; i < function->instruction_count; i++) {
        lowering->current = i;
        lowering->begins[i] = lowering->draft_count;
        if (!lower_instruction(lowering, &function->instructions[i]) ||
            !give_turn(lowering, lowering->begins[i])) {
            return false;
        }
    }
    /* The end of the body is a return, written or not. */
    lowering->begins[function->instruction_count] = lowering->draft_count;
    lowering->current = function->instruction_count > 0 ? function->instruction_count - 1 : 0;
    if (!soft_end_function(lowering)) return false;
    soft_count_from(lowering);
    for (uint32_t i = 0; i < lowering->draft_count; i++) {
        struct soft_draft *draft = &lowering->drafts[i];
        if (draft->target != SOFT_NO_LABEL) draft->target = lowering->begins[draft->target];
        for (uint32_t t = 0; t < draft->target_count; t++) {
            draft->targets[t] = lowering->begins[draft->targets[t]];
        }
    }
    return true;
}

static uint32_t lower_align_up(uint32_t value, uint32_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

/* Lays out a kernel's parameters: each at the next multiple of its alignment (PTX
 * ISA 9.0, section 7.1). */
static bool write_parameters(struct soft_lowering *lowering) {
    struct soft_code *code = lowering->code;
    const struct ptx_function *function = lowering->function;
    if (!function->entry) return true;
    uint32_t *offsets = SOFT_ARENA_ARRAY(lowering->arena, uint32_t, function->parameter_count);
    uint32_t *sizes = SOFT_ARENA_ARRAY(lowering->arena, uint32_t, function->parameter_count);
    if (offsets == NULL || sizes == NULL) return LOWER_NO_MEMORY(lowering);
    enum { PARAMETER_BYTES_MAX = 32764 };
    uint64_t at = 0;
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        struct ptx_variable *parameter = function->parameters[i];
        at = (at + parameter->alignment - 1) / parameter->alignment * parameter->alignment;
        offsets[i] = (uint32_t)at;
        sizes[i] = (uint32_t)parameter->bytes;
        parameter->address = at;
        parameter->placed = true;
        at += parameter->bytes;
        if (at > PARAMETER_BYTES_MAX) {
            return soft_error(lowering->diagnostic, parameter->symbol->offset,
                              CUDA_ERROR_INVALID_PTX, "more than %d bytes of parameters",
                              PARAMETER_BYTES_MAX);
        }
    }
    code->parameter_count = function->parameter_count;
    code->parameter_offsets = offsets;
    code->parameter_sizes = sizes;
    code->parameter_bytes = (uint32_t)at;
    return true;
}

static void write_limits(struct soft_lowering *lowering) {
    enum { BLOCK_THREADS_MAX = 1024 };
    struct soft_code *code = lowering->code;
    const struct ptx_function *function = lowering->function;
    uint64_t threads = (uint64_t)function->block_threads[0] * function->block_threads[1];
    threads = threads > BLOCK_THREADS_MAX ? threads : threads * function->block_threads[2];
    bool limited = threads > 0 && threads < BLOCK_THREADS_MAX;
    code->block_threads_max = limited ? (uint32_t)threads : BLOCK_THREADS_MAX;
    for (int i = 0; i < 3 && function->block_threads_required; i++) {
        code->block_required[i] = function->block_threads[i];
    }
    memcpy(code->cluster_required, function->cluster, sizeof code->cluster_required);
    code->cluster_max = function->cluster_max;
    code->cluster_needed = function->cluster_needed;
    code->blocks_are_clusters = function->blocks_are_clusters;
    code->local_bytes = lower_align_up(lowering->local_bytes, 16);
}

/* Replaces the drafts and values by copies in an arena, without room for more of them. */
static bool lower_copy(struct soft_lowering *lowering, struct soft_arena *arena) {
    uint32_t extras = 0, targets = 0;
    for (uint32_t i = 0; i < lowering->draft_count; i++) {
        extras += lowering->drafts[i].extra_count;
        targets += lowering->drafts[i].target_count;
    }
    const size_t draft_bytes = lowering->draft_count * sizeof *lowering->drafts;
    const size_t value_bytes = lowering->value_count * sizeof *lowering->values;
    struct soft_draft *drafts = soft_arena_raw(arena, draft_bytes);
    struct soft_value *values = soft_arena_raw(arena, value_bytes);
    struct soft_extra *extra = soft_arena_raw(arena, extras * sizeof *extra);
    uint32_t *target = soft_arena_raw(arena, targets * sizeof *target);
    if (drafts == NULL || values == NULL || extra == NULL || target == NULL) {
        return LOWER_NO_MEMORY(lowering);
    }
    memcpy(drafts, lowering->drafts, draft_bytes);
    memcpy(values, lowering->values, value_bytes);
    for (uint32_t i = 0; i < lowering->draft_count; i++) {
        struct soft_draft *draft = &drafts[i];
        for (uint32_t k = 0; k < draft->extra_count; k++) extra[k] = draft->extras[k];
        for (uint32_t k = 0; k < draft->target_count; k++) target[k] = draft->targets[k];
        draft->extras = extra;
        draft->targets = target;
        extra += draft->extra_count;
        target += draft->target_count;
    }
    lowering->drafts = drafts;
    lowering->draft_room = lowering->draft_count;
    lowering->values = values;
    lowering->value_room = lowering->value_count;
    return true;
}

/* Keeps the drafts for soft_lower_complete. */
static bool lower_keep(const struct soft_lowering *lowering) {
    struct soft_lowering *kept = soft_arena_raw(lowering->arena, sizeof *kept);
    if (kept == NULL) return LOWER_NO_MEMORY(lowering);
    *kept = *lowering;
    kept->begins = NULL;
    if (!lower_copy(kept, lowering->arena)) return false;
    lowering->function->drafted = kept;
    return true;
}

bool soft_lower_draft(struct soft_lowering *lowering) {
    struct ptx_function *function = lowering->function;
    struct soft_code *code = lowering->code = function->code;
    const struct ptx_symbol *symbol = function->symbol;
    code->name = soft_arena_text(lowering->arena, symbol->name, symbol->length);
    if (code->name == NULL) return LOWER_NO_MEMORY(lowering);
    if (!write_parameters(lowering) || !lower_add_registers(lowering) || !draft_all(lowering) ||
        !lower_keep(lowering)) {
        return false;
    }
    if (soft_slots_may_lack(lowering) &&
        (!soft_graph_joins(lowering) || !soft_slots_assign(lowering))) {
        return false;
    }
    function->sites = 0;
    for (uint32_t i = 0; i < lowering->draft_count; i++) {
        function->sites += lowering->drafts[i].has_site;
    }
    code->is_function = !function->entry;
    write_limits(lowering);
    return true;
}

bool soft_lower_complete(struct soft_lowering *lowering) {
    const struct soft_lowering *kept = lowering->function->drafted;
    lowering->code = lowering->function->code;
    lowering->drafts = kept->drafts;
    lowering->draft_count = kept->draft_count;
    lowering->values = kept->values;
    lowering->value_count = kept->value_count;
    /* A copy: without memory the rest fails halfway, and a later launch tries again. */
    if (!lower_copy(lowering, lowering->scratch) || !soft_graph_joins(lowering) ||
        !soft_slots_assign(lowering) || !soft_code_write(lowering) ||
        !soft_write_passed(lowering)) {
        return false;
    }
    soft_fuse(lowering);
    return true;
}

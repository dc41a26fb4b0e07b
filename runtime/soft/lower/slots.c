/*
 * Slots: which values may share a place in the frame.
 *
 * Compilers write PTX with one register per computed value; most are live for a few instructions.
 * Liveness over the blocks gives each an interval of drafts, and intervals that do not overlap
 * share a slot of the same width (a linear scan: Poletto and Sarkar, 1999). So frames are several
 * times smaller and stay in the cache. Divergence does not matter: lanes are disjoint parts of a
 * slot, and each lane follows one path of the graph.
 */
#include "lower.h"

#include <stdlib.h>
#include <string.h>

enum { SCRATCH_BYTES = SOFT_WIDE_SLOT_BYTES, PREDICATE_BYTES = 4, FRAME_BYTES_MAX = 64 << 20 };
#define NOT_DENSE UINT32_MAX

struct live_range {
    uint32_t begin, end, *successor, successors;
    uint64_t *in, *out, *use, *define;
};

struct liveness {
    struct soft_lowering *lowering;
    struct live_range *blocks;
    uint32_t count, words, dense;
    uint32_t *dense_of; /* each value's bit; NOT_DENSE for what is filled in */
    uint32_t *value_of;
};

/* Calls visit for each value a draft reads (is_define false) and writes. */
typedef void visitor(struct liveness *liveness, uint32_t value, bool is_define, bool partial,
                     void *context);

static void visit_value(struct liveness *liveness, uint32_t value, bool is_define, bool partial,
                        visitor *visit, void *context) {
    if (value == SOFT_NO_VALUE) return;
    value = liveness->lowering->values[value].alias;
    liveness->lowering->values[value].used = true;
    visit(liveness, value, is_define, partial, context);
}

static void visit_draft(struct liveness *liveness, const struct soft_draft *draft, visitor *visit,
                        void *context) {
    const uint32_t sources[4] = {draft->a, draft->b, draft->c, draft->e};
    for (int i = 0; i < 4; i++) visit_value(liveness, sources[i], false, false, visit, context);
    if (draft->d_is_read) visit_value(liveness, draft->d, false, false, visit, context);
    for (uint32_t i = 0; i < draft->extra_count; i++) {
        if (draft->extras[i].kind == SOFT_EXTRA_USE) {
            visit_value(liveness, draft->extras[i].value, false, false, visit, context);
        }
    }
    for (uint32_t i = 0; i < draft->extra_count; i++) {
        if (draft->extras[i].kind == SOFT_EXTRA_DEFINE) {
            visit_value(liveness, draft->extras[i].value, true, draft->guarded, visit, context);
        }
    }
    bool partial = draft->guarded || draft->keeps;
    if (!draft->d_is_read) visit_value(liveness, draft->d, true, partial, visit, context);
}

static void slots_set(uint64_t *bits, uint32_t at) {
    bits[at / 64] |= 1ull << (at % 64);
}

static bool slots_get(const uint64_t *bits, uint32_t at) {
    return bits[at / 64] >> (at % 64) & 1;
}

static void number_value(struct liveness *liveness, uint32_t value, bool is_define, bool partial,
                         void *context) {
    (void)is_define, (void)partial, (void)context;
    if (liveness->lowering->values[value].kind != SOFT_VALUE_REGISTER) return;
    if (liveness->dense_of[value] != NOT_DENSE) return;
    liveness->value_of[liveness->dense] = value;
    liveness->dense_of[value] = liveness->dense++;
}

/* A guarded definition does not change the other lanes, so it also reads. */
static void slots_gather(struct liveness *liveness, uint32_t value, bool is_define, bool partial,
                         void *context) {
    struct live_range *block = context;
    uint32_t bit = liveness->dense_of[value];
    if (bit == NOT_DENSE) return;
    if ((!is_define || partial) && !slots_get(block->define, bit)) slots_set(block->use, bit);
    if (is_define && !partial) slots_set(block->define, bit);
}

static bool find_blocks(struct liveness *liveness) {
    struct soft_lowering *lowering = liveness->lowering;
    uint32_t drafts = lowering->draft_count;
    bool *leads = SOFT_ARENA_ARRAY(lowering->scratch, bool, drafts + 1);
    uint32_t *block_of = SOFT_ARENA_ARRAY(lowering->scratch, uint32_t, drafts + 1);
    if (leads == NULL || block_of == NULL) return LOWER_NO_MEMORY(lowering);
    leads[0] = true;
    for (uint32_t i = 0; i < drafts; i++) {
        const struct soft_draft *draft = &lowering->drafts[i];
        if (draft->target != SOFT_NO_LABEL) leads[draft->target] = true;
        for (uint32_t t = 0; t < draft->target_count; t++) leads[draft->targets[t]] = true;
        if (soft_ends_block(&lowering->drafts[i])) leads[i + 1] = true;
    }
    for (uint32_t i = 0; i < drafts; i++) liveness->count += leads[i];
    liveness->blocks = SOFT_ARENA_ARRAY(lowering->scratch, struct live_range, liveness->count + 1);
    if (liveness->blocks == NULL) return LOWER_NO_MEMORY(lowering);
    uint32_t block = UINT32_MAX;
    for (uint32_t i = 0; i < drafts; i++) {
        if (leads[i]) liveness->blocks[++block].begin = i;
        liveness->blocks[block].end = i + 1;
        block_of[i] = block;
    }
    for (uint32_t b = 0; b < liveness->count; b++) {
        struct live_range *range = &liveness->blocks[b];
        const struct soft_draft *last = &lowering->drafts[range->end - 1];
        range->successor = SOFT_ARENA_ARRAY(lowering->scratch, uint32_t, last->target_count + 2);
        if (range->successor == NULL) return LOWER_NO_MEMORY(lowering);
        for (uint32_t t = 0; t < last->target_count; t++) {
            range->successor[range->successors++] = block_of[last->targets[t]];
        }
        if (last->target != SOFT_NO_LABEL) {
            range->successor[range->successors++] = block_of[last->target];
        }
        if (last->op != SOFT_OP_bra && last->op != SOFT_OP_brx && b + 1 < liveness->count) {
            range->successor[range->successors++] = b + 1;
        }
    }
    return true;
}

static bool make_sets(struct liveness *liveness) {
    struct soft_arena *arena = liveness->lowering->scratch;
    liveness->words = (liveness->dense + 63) / 64;
    for (uint32_t b = 0; b < liveness->count; b++) {
        struct live_range *block = &liveness->blocks[b];
        uint64_t *words = SOFT_ARENA_ARRAY(arena, uint64_t, (size_t)liveness->words * 4 + 1);
        if (words == NULL) return LOWER_NO_MEMORY(liveness->lowering);
        block->in = words;
        block->out = words + liveness->words;
        block->use = words + 2 * (size_t)liveness->words;
        block->define = words + 3 * (size_t)liveness->words;
        for (uint32_t i = block->begin; i < block->end; i++) {
            visit_draft(liveness, &liveness->lowering->drafts[i], slots_gather, block);
        }
    }
    return true;
}

static void slots_iterate(struct liveness *liveness) {
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = liveness->count; b-- > 0;) {
            struct live_range *block = &liveness->blocks[b];
            for (uint32_t w = 0; w < liveness->words; w++) {
                uint64_t out = 0;
                for (uint32_t s = 0; s < block->successors; s++) {
                    out |= liveness->blocks[block->successor[s]].in[w];
                }
                uint64_t in = block->use[w] | (out & ~block->define[w]);
                changed |= in != block->in[w];
                block->out[w] = out;
                block->in[w] = in;
            }
        }
    }
}

/* Each draft has two positions: it reads at the even one and writes at the odd one after it. */
static void slots_extend(struct soft_value *value, uint32_t position) {
    if (position < value->first) value->first = position;
    if (position > value->last) value->last = position;
}

static void extend_value(struct liveness *liveness, uint32_t value, bool is_define, bool partial,
                         void *context) {
    struct soft_value *entry = &liveness->lowering->values[value];
    uint32_t draft = *(uint32_t *)context;
    if (!is_define || partial) slots_extend(entry, 2 * draft);
    if (is_define) slots_extend(entry, 2 * draft + 1);
}

static void find_intervals(struct liveness *liveness) {
    struct soft_lowering *lowering = liveness->lowering;
    for (uint32_t i = 0; i < lowering->value_count; i++) {
        lowering->values[i].first = UINT32_MAX;
        lowering->values[i].last = 0;
    }
    for (uint32_t i = 0; i < lowering->draft_count; i++) {
        visit_draft(liveness, &lowering->drafts[i], extend_value, &i);
    }
    for (uint32_t b = 0; b < liveness->count; b++) {
        const struct live_range *block = &liveness->blocks[b];
        for (uint32_t w = 0; w < liveness->words; w++) {
            for (uint64_t left = block->in[w] | block->out[w]; left != 0; left &= left - 1) {
                const uint32_t bit = w * 64 + (uint32_t)__builtin_ctzll(left);
                struct soft_value *value = &lowering->values[liveness->value_of[bit]];
                if (slots_get(block->in, bit)) slots_extend(value, 2 * block->begin);
                if (slots_get(block->out, bit)) slots_extend(value, 2 * block->end - 1);
            }
        }
    }
}

/* A call writes all of a function's parameters before its first instruction, so that none of them
 * can share a slot, not even one that is written before it is read. */
static void begin_parameters(struct soft_lowering *lowering) {
    const struct ptx_function *function = lowering->function;
    for (uint32_t i = 0; i < function->parameter_count && !function->entry; i++) {
        slots_extend(&lowering->values[function->parameters[i]->value], 0);
    }
}

/* Values wait in order of their first position. */
static int by_first(const void *one, const void *other) {
    const struct soft_value *a = *(struct soft_value *const *)one,
                            *b = *(struct soft_value *const *)other;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* The slots of one width: which are taken, and until which position. Parameters that are no
 * registers have individual sizes. */
enum { PREDICATES, NARROW, WIDE, OTHERS, POOLS };
struct pool {
    uint32_t *busy_until;
    uint32_t *bytes; /* OTHERS: of each slot */
    uint32_t count;
};

static uint32_t slot_bytes(const struct soft_value *value) {
    uint32_t bytes = value->bytes * SOFT_LANES;
    return (bytes + SOFT_SLOT_BYTES - 1) / SOFT_SLOT_BYTES * SOFT_SLOT_BYTES;
}

bool soft_slots_may_lack(const struct soft_lowering *lowering) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < lowering->value_count; i++) bytes += slot_bytes(&lowering->values[i]);
    return bytes + lowering->value_count * (uint64_t)SOFT_WIDE_SLOT_BYTES > FRAME_BYTES_MAX;
}

static uint32_t slots_take(struct pool *pool, const struct soft_value *value) {
    for (uint32_t i = 0; i < pool->count; i++) {
        bool fits = pool->bytes == NULL || pool->bytes[i] == slot_bytes(value);
        if (fits && pool->busy_until[i] < value->first) {
            pool->busy_until[i] = value->last;
            return i;
        }
    }
    pool->busy_until[pool->count] = value->last;
    if (pool->bytes != NULL) pool->bytes[pool->count] = slot_bytes(value);
    return pool->count++;
}

static unsigned class_of(const struct soft_value *value) {
    switch (value->bits) {
    case 0:
    case 128:
        return OTHERS;
    case 1:
        return PREDICATES;
    case 64:
        return WIDE;
    default:
        return NARROW;
    }
}

bool soft_slots_assign(struct soft_lowering *lowering) {
    struct soft_arena *arena = lowering->scratch;
    uint32_t values = lowering->value_count;
    struct liveness liveness = {.lowering = lowering};
    liveness.dense_of = SOFT_ARENA_ARRAY(arena, uint32_t, values + 1);
    liveness.value_of = SOFT_ARENA_ARRAY(arena, uint32_t, values + 1);
    struct soft_value **order = SOFT_ARENA_ARRAY(arena, struct soft_value *, values + 1);
    struct pool pools[POOLS] = {{0}};
    for (int i = 0; i < POOLS; i++) {
        pools[i].busy_until = SOFT_ARENA_ARRAY(arena, uint32_t, values + 1);
        if (pools[i].busy_until == NULL) return LOWER_NO_MEMORY(lowering);
    }
    pools[OTHERS].bytes = SOFT_ARENA_ARRAY(arena, uint32_t, values + 1);
    if (liveness.dense_of == NULL || liveness.value_of == NULL || order == NULL ||
        pools[OTHERS].bytes == NULL) {
        return LOWER_NO_MEMORY(lowering);
    }
    for (uint32_t i = 0; i < values; i++) liveness.dense_of[i] = NOT_DENSE;
    for (uint32_t i = 0; i < lowering->draft_count; i++) {
        visit_draft(&liveness, &lowering->drafts[i], number_value, NULL);
    }
    if (!find_blocks(&liveness) || !make_sets(&liveness)) return false;
    slots_iterate(&liveness);
    find_intervals(&liveness);
    begin_parameters(lowering);

    uint32_t waiting = 0;
    for (uint32_t i = 0; i < values; i++) {
        struct soft_value *value = &lowering->values[i];
        if (!value->used) continue;
        if (value->kind != SOFT_VALUE_REGISTER || value->pinned) {
            /* Values filled in before the function begins must be kept to its end. */
            value->first = 0;
            value->last = UINT32_MAX;
        }
        order[waiting++] = value;
    }
    qsort((void *)order, waiting, sizeof order[0], by_first);
    for (uint32_t i = 0; i < waiting; i++) {
        order[i]->slot = slots_take(&pools[class_of(order[i])], order[i]);
    }
    uint32_t narrow =
        SCRATCH_BYTES + (pools[PREDICATES].count * PREDICATE_BYTES + SOFT_SLOT_BYTES - 1) /
                            SOFT_SLOT_BYTES * SOFT_SLOT_BYTES;
    uint32_t wide = narrow + pools[NARROW].count * SOFT_SLOT_BYTES;
    uint64_t end = wide + pools[WIDE].count * (uint64_t)SOFT_WIDE_SLOT_BYTES;
    uint32_t *others = SOFT_ARENA_ARRAY(arena, uint32_t, pools[OTHERS].count + 1);
    if (others == NULL) return LOWER_NO_MEMORY(lowering);
    for (uint32_t i = 0; i < pools[OTHERS].count; i++) {
        others[i] = (uint32_t)end;
        end += pools[OTHERS].bytes[i];
        if (end > FRAME_BYTES_MAX) {
            return soft_error(lowering->diagnostic, lowering->function->symbol->offset,
                              CUDA_ERROR_INVALID_PTX, "the parameters of all calls are too large");
        }
    }
    for (uint32_t i = 0; i < waiting; i++) {
        struct soft_value *value = order[i];
        const uint32_t begins[3] = {SCRATCH_BYTES, narrow, wide};
        const uint32_t bytes[3] = {PREDICATE_BYTES, SOFT_SLOT_BYTES, SOFT_WIDE_SLOT_BYTES};
        unsigned class = class_of(value);
        value->slot =
            class == OTHERS ? others[value->slot] : begins[class] + value->slot * bytes[class];
    }
    lowering->frame_bytes = (uint32_t)end;
    return true;
}

/*
 * The call graph, as far as it is known: a call by address may go to any function whose address is
 * taken somewhere in the module.
 */
#include "link.h"

#include "tollens/cuda_abi.h"
#include "code.h"
#include "ptx/opcode.h"
#include "memory/space.h"

#include <stdatomic.h>
#include <string.h>

enum { FUNCTION_STEP = 16, SHARED_BYTES_MAX = 48 * 1024 };

struct name {
    struct ptx_symbol *symbol;
    struct name *next;
};

/* What a function's body names. */
struct node {
    const struct soft_unit *unit;
    struct name *functions, *shared;
    uint32_t dynamic_alignment; /* of the dynamic shared memory that it names; 0: it names none */
    bool calls_by_address;
};

struct linking {
    struct soft_diagnostic *diagnostic;
    struct soft_arena *arena;
    const struct soft_unit *units;
    unsigned unit_count;
    struct soft_linked *linked;
    struct node *nodes;
    bool *taken; /* functions whose address is taken */
    bool *seen;
    uint32_t *work;
};

static bool no_memory(struct linking *linking) {
    return soft_error(linking->diagnostic, 0, CUDA_ERROR_OUT_OF_MEMORY, "out of host memory");
}

static bool link_add_name(struct linking *linking, struct name **list, struct ptx_symbol *symbol) {
    for (const struct name *name = *list; name != NULL; name = name->next) {
        if (name->symbol == symbol) return true;
    }
    struct name *name = soft_arena_alloc(linking->arena, sizeof *name);
    if (name == NULL) return no_memory(linking);
    *name = (struct name){.symbol = symbol, .next = *list};
    *list = name;
    return true;
}

static void take_address(struct linking *linking, const struct ptx_function *function) {
    if (function->has_body) linking->taken[function->number] = true;
}

/* called: the operand is the target of a call. */
static bool visit_operand(struct linking *linking, struct node *node, const struct ptx_function *f,
                          const struct ptx_operand *operand, bool called) {
    if (operand->kind == PTX_OPERAND_REGISTER) return true;
    for (uint32_t i = 0; i < operand->count; i++) {
        if (!visit_operand(linking, node, f, &operand->items[i], false)) return false;
    }
    if (operand->kind != PTX_OPERAND_SYMBOL) return true;
    struct ptx_symbol *symbol = operand->symbol;
    if (symbol->kind == PTX_FUNCTION) {
        if (called) return link_add_name(linking, &node->functions, symbol);
        take_address(linking, symbol->is.function);
        return true;
    }
    if (symbol->kind != PTX_VARIABLE || symbol->is.variable->space != PTX_shared) return true;
    struct ptx_variable *variable = symbol->is.variable;
    if (variable->external && variable->is_unsized) {
        if (variable->alignment > node->dynamic_alignment)
            node->dynamic_alignment = variable->alignment;
        return true;
    }
    if (!f->entry || (variable->user != NULL && variable->user != f)) variable->common = true;
    variable->user = f;
    return link_add_name(linking, &node->shared, symbol);
}

static bool visit_function(struct linking *linking, const struct ptx_function *f) {
    struct node *node = &linking->nodes[f->number];
    for (uint32_t i = 0; i < f->instruction_count; i++) {
        const struct ptx_instruction *in = &f->instructions[i];
        const char *name = in->opcode->row->name;
        bool is_call = name[0] == 'c' && strcmp(name, "call") == 0;
        if (!in->has_symbols && !is_call) continue;
        for (uint32_t o = 0; o < in->operand_count; o++) {
            const struct ptx_operand *operand = &in->operands[o];
            bool called = is_call && operand->kind == PTX_OPERAND_SYMBOL;
            if (is_call && operand->kind == PTX_OPERAND_REGISTER) node->calls_by_address = true;
            if (!visit_operand(linking, node, f, operand, called)) return false;
        }
    }
    return true;
}

/* Gives the variables of a list that are common, or not, the next offsets from *end on. */
static bool link_place(struct linking *linking, const struct name *names, bool common,
                       uint64_t *end) {
    for (const struct name *name = names; name != NULL; name = name->next) {
        struct ptx_variable *variable = name->symbol->is.variable;
        if (variable->common != common || variable->placed) continue;
        uint64_t at = (*end + variable->alignment - 1) / variable->alignment * variable->alignment;
        if (variable->bytes > SHARED_BYTES_MAX || at + variable->bytes > SHARED_BYTES_MAX) {
            return soft_error(linking->diagnostic, name->symbol->offset, CUDA_ERROR_INVALID_PTX,
                              "more than %d bytes of shared memory", SHARED_BYTES_MAX);
        }
        variable->address = at;
        variable->placed = true;
        *end = at + variable->bytes;
    }
    return true;
}

static void link_see(struct linking *linking, uint32_t number, uint32_t *seen_count) {
    if (linking->seen[number]) return;
    linking->seen[number] = true;
    linking->work[(*seen_count)++] = number;
}

/* The end of the common variables that a function and its possible callees name, and the largest
 * alignment of dynamic shared memory that these name. */
static uint64_t link_reach(struct linking *linking, uint32_t number, uint32_t *dynamic_alignment) {
    uint32_t seen_count = 0;
    uint64_t end = 0;
    *dynamic_alignment = 0;
    memset(linking->seen, 0, linking->linked->count * sizeof linking->seen[0]);
    link_see(linking, number, &seen_count);
    for (uint32_t at = 0; at < seen_count; at++) {
        const struct node *node = &linking->nodes[linking->work[at]];
        if (node->dynamic_alignment > *dynamic_alignment)
            *dynamic_alignment = node->dynamic_alignment;
        for (const struct name *name = node->shared; name != NULL; name = name->next) {
            const struct ptx_variable *variable = name->symbol->is.variable;
            uint64_t behind = variable->address + variable->bytes;
            if (variable->common && behind > end) end = behind;
        }
        for (const struct name *name = node->functions; name != NULL; name = name->next) {
            const struct ptx_function *callee = name->symbol->is.function;
            if (callee->has_body) link_see(linking, callee->number, &seen_count);
        }
        for (uint32_t i = 0; i < linking->linked->count && node->calls_by_address; i++) {
            if (linking->taken[i]) link_see(linking, i, &seen_count);
        }
    }
    return end;
}

/* Dynamic shared memory begins at a multiple of 16 after the static one. What a larger alignment
 * needs counts as static, so that all limits count it. */
static bool pad_for_dynamic(struct linking *linking, uint32_t alignment, uint64_t *end) {
    if (alignment <= 16) return true;
    *end = (*end + alignment - 1) / alignment * alignment;
    return *end <= SHARED_BYTES_MAX ||
           soft_error(linking->diagnostic, 0, CUDA_ERROR_INVALID_PTX,
                      "more than %d bytes of shared memory, with the padding of dynamic shared "
                      "memory that is aligned to %u bytes",
                      SHARED_BYTES_MAX, alignment);
}

static bool place_shared(struct linking *linking) {
    struct soft_linked *linked = linking->linked;
    uint64_t common_end = 0;
    for (uint32_t i = 0; i < linked->count; i++) {
        soft_unit_look_at(linking->diagnostic, linking->nodes[i].unit);
        if (!link_place(linking, linking->nodes[i].shared, true, &common_end)) return false;
    }
    for (uint32_t i = 0; i < linked->count; i++) {
        uint32_t dynamic_alignment = 0;
        uint64_t end = link_reach(linking, i, &dynamic_alignment);
        soft_unit_look_at(linking->diagnostic, linking->nodes[i].unit);
        if (!link_place(linking, linking->nodes[i].shared, false, &end)) return false;
        if (!pad_for_dynamic(linking, dynamic_alignment, &end)) return false;
        linked->functions[i]->code->shared_bytes = (uint32_t)end;
    }
    return true;
}

static bool link_make_room(struct linking *linking) {
    struct soft_linked *linked = linking->linked;
    linked->functions = SOFT_ARENA_ARRAY(linking->arena, struct ptx_function *, linked->count);
    linking->nodes = SOFT_ARENA_ARRAY(linking->arena, struct node, linked->count);
    linking->taken = SOFT_ARENA_ARRAY(linking->arena, bool, linked->count);
    linking->seen = SOFT_ARENA_ARRAY(linking->arena, bool, linked->count);
    linking->work = SOFT_ARENA_ARRAY(linking->arena, uint32_t, linked->count);
    return (linked->functions != NULL && linking->nodes != NULL && linking->taken != NULL &&
            linking->seen != NULL && linking->work != NULL) ||
           no_memory(linking);
}

static uint32_t count_functions(const struct linking *linking) {
    uint32_t count = 0;
    for (unsigned u = 0; u < linking->unit_count; u++) {
        const struct ptx_function *f = linking->units[u].ptx.functions;
        for (; f != NULL; f = f->next) count += f->has_body;
    }
    return count;
}

static bool number_functions(struct linking *linking) {
    struct soft_linked *linked = linking->linked;
    static _Atomic uint64_t given; /* addresses are reused only after all have been used */
    linked->count = count_functions(linking);
    if (!link_make_room(linking)) return false;
    uint64_t bytes = ((uint64_t)linked->count + 1) * FUNCTION_STEP;
    uint64_t at = atomic_fetch_add(&given, bytes) & ((1ull << SOFT_WINDOW_SHIFT) - 1);
    linked->base = soft_space_windows()->code + at + FUNCTION_STEP;
    uint32_t number = 0;
    for (unsigned u = 0; u < linking->unit_count; u++) {
        for (struct ptx_function *f = linking->units[u].ptx.functions; f != NULL; f = f->next) {
            if (!f->has_body) continue;
            f->number = number;
            f->address = linked->base + (uint64_t)number * FUNCTION_STEP;
            f->code = soft_arena_alloc(linking->arena, sizeof *f->code);
            if (f->code == NULL) return no_memory(linking);
            linking->nodes[number].unit = &linking->units[u];
            linked->functions[number++] = f;
        }
    }
    return true;
}

/* Functions whose addresses are initial data. */
static void visit_data(struct linking *linking, const struct ptx_module *module) {
    for (const struct ptx_variable *v = module->variables; v != NULL; v = v->next) {
        for (const struct ptx_relocation *r = v->relocations; r != NULL; r = r->next) {
            if (r->symbol->kind == PTX_FUNCTION) take_address(linking, r->symbol->is.function);
        }
    }
}

bool soft_link(struct soft_diagnostic *diagnostic, struct soft_arena *arena,
               const struct soft_unit *units, unsigned count, struct soft_linked *linked) {
    struct linking linking = {.diagnostic = diagnostic,
                              .arena = arena,
                              .units = units,
                              .unit_count = count,
                              .linked = linked};
    if (!number_functions(&linking)) return false;
    for (unsigned u = 0; u < count; u++) visit_data(&linking, &units[u].ptx);
    for (uint32_t i = 0; i < linked->count; i++) {
        if (!visit_function(&linking, linked->functions[i])) return false;
    }
    return place_shared(&linking);
}

struct ptx_function *soft_linked_function(const struct soft_linked *linked, uint64_t address) {
    uint64_t offset = address - linked->base;
    if (offset % FUNCTION_STEP != 0 || offset / FUNCTION_STEP >= linked->count) return NULL;
    return linked->functions[offset / FUNCTION_STEP];
}

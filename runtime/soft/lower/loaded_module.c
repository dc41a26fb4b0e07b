/*
 * Loads a module: reads it, unites linked inputs, places functions and variables, resolves
 * addresses, drafts every function, which finds its errors. A function's code is completed from its
 * drafts when it is first needed, because most programs load many functions and launch few.
 */
#include "loaded_module.h"

#include "tollens/cuda_abi.h"
#include "base/options.h"
#include "check_unit.h"
#include "lower.h"
#include "ptx/reader.h"
#include "ptx/symbol.h"
#include "ptx/unite.h"
#include "source_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A managed variable is host memory that devices use, like that of cuMemAllocManaged. */
static enum soft_kind loaded_module_kind_of(const struct ptx_variable *variable) {
    return variable->is_managed ? SOFT_KIND_MANAGED : SOFT_KIND_MODULE;
}

/* Gives a .global or .const variable its address and its bytes; unwritten ones are zero, and count
 * as written (PTX ISA 9.0, section 5.4.4). */
static bool place_variable(struct soft_diagnostic *diagnostic, struct soft_module *module,
                           struct ptx_variable *variable) {
    char name[64];
    uint64_t bytes = variable->bytes > 0 ? variable->bytes : 1;
    uint64_t alignment = variable->alignment > 256 ? variable->alignment : 256;
    snprintf(name, sizeof name, "%.*s", (int)variable->symbol->length, variable->symbol->name);
    struct soft_allocation wanted = {.bytes = bytes,
                                     .kind = loaded_module_kind_of(variable),
                                     .device = module->device,
                                     .slot = module->slot,
                                     .constant = variable->space == PTX_constant};
    memcpy(wanted.name, name, sizeof name);
    /* They are not charged, but must fit into the device's memory. */
    const uint64_t left = soft_options()->memory_bytes - module->variable_bytes;
    struct soft_allocation *allocation =
        bytes <= left ? soft_space_alloc(&wanted, alignment) : NULL;
    if (allocation == NULL) {
        return soft_error(diagnostic, variable->symbol->offset, CUDA_ERROR_OUT_OF_MEMORY,
                          "out of memory for the variable '%s' of %llu bytes", name,
                          (unsigned long long)bytes);
    }
    module->variable_bytes += bytes;
    variable->address = allocation->address;
    variable->placed = true;
    if (variable->data != NULL) memcpy(allocation->host, variable->data, (size_t)variable->bytes);
    soft_shadow_mark(allocation->shadow, 0, bytes);
    return true;
}

static bool is_placed_here(const struct ptx_variable *variable) {
    if (variable->space != PTX_global && variable->space != PTX_constant) return false;
    /* ptxas treats a variable that is only declared as defined if its size is known. */
    return !variable->elsewhere && (!variable->external || variable->bytes > 0);
}

static bool place_variables(struct soft_diagnostic *diagnostic, struct soft_module *module,
                            const struct soft_unit *unit) {
    for (struct ptx_variable *v = unit->ptx.variables; v != NULL; v = v->next) {
        if (is_placed_here(v) && !place_variable(diagnostic, module, v)) return false;
    }
    return true;
}

/* Writes the addresses that initial data contains. */
static bool loaded_module_relocate(struct soft_diagnostic *diagnostic,
                                   const struct ptx_variable *variable) {
    for (const struct ptx_relocation *r = variable->relocations; r != NULL; r = r->next) {
        bool is_function = r->symbol->kind == PTX_FUNCTION;
        bool known =
            is_function ? r->symbol->is.function->has_body : r->symbol->is.variable->placed;
        if (!known) {
            return soft_error(diagnostic, variable->symbol->offset, CUDA_ERROR_INVALID_PTX,
                              "'%.*s' is declared but not defined, so it has no address",
                              (int)r->symbol->length, r->symbol->name);
        }
        uint64_t address =
            is_function ? r->symbol->is.function->address : r->symbol->is.variable->address;
        uint64_t value = address + (uint64_t)r->addend;
        if (r->masked) value = value >> r->mask_shift & 0xff;
        soft_space_write(variable->address + r->at, &value, r->bytes);
    }
    return true;
}

static bool relocate_all(struct soft_diagnostic *diagnostic, struct soft_module *module,
                         const struct soft_unit *unit) {
    (void)module;
    for (const struct ptx_variable *v = unit->ptx.variables; v != NULL; v = v->next) {
        if (is_placed_here(v) && !loaded_module_relocate(diagnostic, v)) return false;
    }
    return true;
}

static bool check_functions(struct soft_diagnostic *diagnostic, struct soft_module *module,
                            const struct soft_unit *unit) {
    return soft_check_unit(diagnostic, unit, module->shares, &module->sites);
}

/* Makes the targets of CUfunction handles, one per kernel. */
static bool add_kernels(struct soft_diagnostic *diagnostic, struct soft_module *module,
                        const struct soft_unit *unit) {
    enum { SHARED_USUAL_BYTES = 48 * 1024 };
    for (struct ptx_function *f = unit->ptx.functions; f != NULL; f = f->next) {
        if (f->code == NULL) continue;
        f->code->sites = module->sites; /* views are indexed by access over the whole module */
        if (!f->entry) continue;
        struct soft_function *handle = soft_arena_alloc(&module->arena, sizeof *handle);
        if (handle == NULL) {
            return soft_error(diagnostic, 0, CUDA_ERROR_OUT_OF_MEMORY, "out of host memory");
        }
        *handle = (struct soft_function){
            .module = module, .unit = unit, .ptx = f, .code = f->code, .carveout = -1};
        handle->dynamic_shared_max = f->code->shared_bytes < SHARED_USUAL_BYTES
                                         ? SHARED_USUAL_BYTES - f->code->shared_bytes
                                         : 0;
        handle->next = module->functions;
        module->functions = handle;
    }
    return true;
}

static void loaded_module_free_module(struct soft_module *module) {
    for (unsigned u = 0; u < module->unit_count; u++) {
        for (struct ptx_variable *v = module->units[u].ptx.variables; v != NULL; v = v->next) {
            if (is_placed_here(v) && v->placed) {
                soft_space_free(v->address, 1u << loaded_module_kind_of(v), NULL);
            }
        }
    }
    soft_arena_clear(&module->codes);
    for (unsigned i = 0; i < SOFT_CREW_MAX; i++) soft_arena_clear(&module->shares[i].arena);
    soft_arena_clear(&module->arena);
    pthread_mutex_destroy(&module->completing);
    free(module);
}

/* Copies the texts, which the module keeps. */
static bool copy_sources(struct soft_module *module, const struct soft_source *sources,
                         unsigned count) {
    module->units = SOFT_ARENA_ARRAY(&module->arena, struct soft_unit, count);
    if (module->units == NULL) return false;
    for (unsigned u = 0; u < count; u++) {
        struct soft_unit *unit = &module->units[u];
        unit->name = sources[u].name;
        unit->length = sources[u].length;
        unit->linked = sources[u].linked;
        unit->is_compiled = sources[u].is_compiled;
        unit->stands_in = sources[u].stands_in;
        unit->text = soft_arena_text(&module->arena, sources[u].text, sources[u].length);
        if (unit->text == NULL) return false;
        module->unit_count++;
    }
    return true;
}

/* Each step is done for all units before the next step. */
static bool loaded_module_build(struct soft_module *module, struct soft_diagnostic *diagnostic) {
    static bool (*const steps[])(struct soft_diagnostic *, struct soft_module *,
                                 const struct soft_unit *) = {place_variables, relocate_all,
                                                              check_functions, add_kernels};
    const struct ptx_shares shares = {module->shares, soft_crew_threads()};
    for (unsigned u = 0; u < module->unit_count; u++) {
        soft_unit_look_at(diagnostic, &module->units[u]);
        if (!ptx_read(diagnostic, &module->arena, &shares, &module->units[u].ptx)) return false;
    }
    bool ok =
        soft_unite(diagnostic, module->units, module->unit_count) &&
        soft_link(diagnostic, &module->arena, module->units, module->unit_count, &module->linked);
    for (size_t step = 0; step < sizeof steps / sizeof steps[0]; step++) {
        for (unsigned u = 0; ok && u < module->unit_count; u++) {
            soft_unit_look_at(diagnostic, &module->units[u]);
            ok = steps[step](diagnostic, module, &module->units[u]);
        }
    }
    return ok;
}

int soft_module_load(const struct soft_source *sources, unsigned count,
                     const struct soft_reach *home, struct soft_module **result,
                     const struct soft_load_log *log) {
    struct soft_module *module = calloc(1, sizeof *module);
    if (module == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    struct soft_diagnostic diagnostic = {.result = CUDA_ERROR_OUT_OF_MEMORY};
    module->device = home->device;
    module->slot = home->slot;
    atomic_init(&module->references, 1);
    pthread_mutex_init(&module->completing, NULL);
    bool ok = copy_sources(module, sources, count) && loaded_module_build(module, &diagnostic);
    if (log->bytes > 0) snprintf(log->text, log->bytes, "%s", ok ? "" : diagnostic.message);
    for (unsigned u = 0; u < module->unit_count; u++) module->units[u].name = NULL;
    if (!ok) {
        loaded_module_free_module(module);
        return diagnostic.result;
    }
    *result = module;
    return CUDA_SUCCESS;
}

void soft_module_release(struct soft_module *module) {
    if (module != NULL && atomic_fetch_sub(&module->references, 1) == 1)
        loaded_module_free_module(module);
}

struct soft_function *soft_module_kernel(const struct soft_module *module, const char *name) {
    struct soft_function *f = module->functions;
    while (f != NULL && strcmp(f->code->name, name) != 0) f = f->next;
    return f;
}

const struct ptx_variable *soft_module_variable(const struct soft_module *module,
                                                const char *name) {
    for (unsigned u = 0; u < module->unit_count; u++) {
        const struct ptx_symbol *symbol =
            ptx_symbol_here(module->units[u].ptx.scope, name, strlen(name));
        if (symbol == NULL || symbol->kind != PTX_VARIABLE) continue;
        const struct ptx_variable *variable = symbol->is.variable;
        if (is_placed_here(variable) && variable->placed) return variable;
    }
    return NULL;
}

/* The unit of a function's code. */
static const struct soft_unit *unit_of(const struct soft_module *module,
                                       const struct soft_code *code) {
    for (unsigned u = 0; u < module->unit_count; u++) {
        const struct ptx_function *f = module->units[u].ptx.functions;
        while (f != NULL && f->code != code) f = f->next;
        if (f != NULL) return &module->units[u];
    }
    return NULL;
}

/* Called functions are inserted before the completed ones; in the end the list has all completed
 * functions. */
static bool loaded_module_complete(struct soft_module *module, struct ptx_function *function,
                                   struct ptx_function **done) {
    struct soft_arena scratch = {0};
    struct ptx_function *left = function;
    bool ok = true;
    function->is_listed = true;
    function->next_callee = NULL;
    while (left != NULL) {
        struct ptx_function *f = left;
        left = f->next_callee;
        f->next_callee = *done;
        *done = f;
        if (!ok) continue; /* the rest only leaves the list */
        struct soft_diagnostic diagnostic = {.text = ""};
        struct soft_lowering lowering = {.diagnostic = &diagnostic,
                                         .arena = &module->codes,
                                         .scratch = &scratch,
                                         .function = f,
                                         .callees = left};
        ok = soft_lower_complete(&lowering);
        left = lowering.callees;
        soft_arena_reuse(&scratch);
    }
    soft_arena_clear(&scratch);
    return ok;
}

/* A thread that finds a code complete also finds its callees complete: they are published
 * together. */
static bool complete_code(struct soft_module *module, struct ptx_function *function) {
    if (atomic_load_explicit(&function->code->is_complete, memory_order_acquire)) return true;
    pthread_mutex_lock(&module->completing);
    bool ok = true;
    if (!atomic_load(&function->code->is_complete)) {
        struct ptx_function *done = NULL;
        ok = loaded_module_complete(module, function, &done);
        for (struct ptx_function *f = done; f != NULL; f = f->next_callee) {
            f->is_listed = false;
            if (ok && module->hook != NULL) module->hook(f->code);
        }
        for (struct ptx_function *f = done; f != NULL && ok; f = f->next_callee) {
            atomic_store_explicit(&f->code->is_complete, true, memory_order_release);
        }
    }
    pthread_mutex_unlock(&module->completing);
    return ok;
}

bool soft_module_complete(const struct soft_function *function) {
    return complete_code(function->module, function->ptx);
}

const struct soft_code *soft_module_function(struct soft_module *module, uint64_t address) {
    struct ptx_function *function = soft_linked_function(&module->linked, address);
    if (function == NULL || function->entry || !complete_code(module, function)) return NULL;
    return function->code;
}

void soft_module_describe(const struct soft_module *module, const struct soft_code *code,
                          const struct soft_instruction *instruction, struct soft_report *report) {
    size_t index = (size_t)(instruction - code->instructions);
    const struct soft_unit *unit = unit_of(module, code);
    if (unit == NULL || index >= code->instruction_count) return;
    soft_source_line_of(unit, &code->origins[index], report);
}

/*
 * Loading a module: read, place the variables, fix addresses, lower every function.
 */
#include "image.h"

#include "../cuda_abi.h"
#include "lower.h"
#include "reader.h"
#include "space.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gives a .global or .const variable its address and its bytes; unwritten ones are zero, and count
 * as written (PTX ISA 9.0, section 5.4.4). */
static bool place_variable(struct soft_diagnostic *diagnostic, struct soft_module *module,
                           struct ptx_variable *variable) {
    char name[64];
    uint64_t bytes = variable->bytes > 0 ? variable->bytes : 1;
    uint64_t alignment = variable->alignment > 256 ? variable->alignment : 256;
    snprintf(name, sizeof name, "%.*s", (int)variable->symbol->length, variable->symbol->name);
    struct soft_allocation *allocation =
        soft_space_alloc(bytes, alignment, SOFT_KIND_MODULE, module->device, name);
    if (allocation == NULL) {
        return soft_error(diagnostic, variable->symbol->offset, CUDA_ERROR_OUT_OF_MEMORY,
                          "no memory for the variable '%s' of %llu bytes", name,
                          (unsigned long long)bytes);
    }
    variable->address = allocation->address;
    variable->placed = true;
    if (variable->data != NULL) memcpy(allocation->host, variable->data, (size_t)variable->bytes);
    soft_shadow_mark(allocation->shadow, 0, bytes);
    return true;
}

static bool place_variables(struct soft_diagnostic *diagnostic, struct soft_module *module) {
    for (struct ptx_variable *v = module->ptx.variables; v != NULL; v = v->next) {
        bool global = v->space == PTX_global || v->space == PTX_constant;
        if (global && !v->external && !place_variable(diagnostic, module, v)) return false;
    }
    return true;
}

/* Writes the addresses that initial data asks for. */
static bool relocate(struct soft_diagnostic *diagnostic, const struct ptx_variable *variable) {
    for (const struct ptx_relocation *r = variable->relocations; r != NULL; r = r->next) {
        const struct ptx_variable *target =
            r->symbol->kind == PTX_VARIABLE ? r->symbol->is.variable : NULL;
        if (target == NULL || !target->placed) {
            return soft_error(diagnostic, variable->symbol->offset, CUDA_ERROR_INVALID_PTX,
                              "the address of '%.*s' cannot be initial data on this device",
                              (int)r->symbol->length, r->symbol->name);
        }
        uint64_t value = target->address + (uint64_t)r->addend;
        if (r->masked) value = value >> r->mask_shift & 0xff;
        soft_space_write(variable->address + r->at, &value, r->bytes);
    }
    return true;
}

static bool lower_functions(struct soft_diagnostic *diagnostic, struct soft_module *module) {
    for (struct ptx_function *f = module->ptx.functions; f != NULL; f = f->next) {
        if (!f->has_body) continue;
        if (!f->entry) {
            return soft_error(diagnostic, f->symbol->offset, CUDA_ERROR_INVALID_PTX,
                              "functions other than kernels are not offered by this device yet");
        }
        struct soft_lowering lowering = {.diagnostic = diagnostic,
                                         .arena = &module->arena,
                                         .module = &module->ptx,
                                         .function = f,
                                         .sites = &module->sites};
        if (!soft_lower(&lowering)) return false;
    }
    /* Views are indexed by access over the whole module. */
    for (struct ptx_function *f = module->ptx.functions; f != NULL; f = f->next) {
        if (f->code == NULL) continue;
        f->code->sites = module->sites;
        struct soft_function *handle = soft_arena_alloc(&module->arena, sizeof *handle);
        if (handle == NULL) {
            return soft_error(diagnostic, 0, CUDA_ERROR_OUT_OF_MEMORY, "no host memory is left");
        }
        *handle = (struct soft_function){.module = module, .ptx = f, .code = f->code};
        uint32_t usual = 48 * 1024;
        handle->dynamic_shared_max =
            f->code->shared_bytes < usual ? usual - f->code->shared_bytes : 0;
        handle->next = module->functions;
        module->functions = handle;
    }
    return true;
}

static void free_module(struct soft_module *module) {
    for (struct ptx_variable *v = module->ptx.variables; v != NULL; v = v->next) {
        bool global = v->space == PTX_global || v->space == PTX_constant;
        if (global && v->placed) soft_space_free(v->address, SOFT_KIND_MODULE, NULL, NULL);
    }
    soft_arena_clear(&module->arena);
    free(module);
}

int soft_module_load(const char *text, size_t length, int device, struct soft_module **result,
                     char *log, size_t log_bytes) {
    struct soft_module *module = calloc(1, sizeof *module);
    if (module == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    struct soft_diagnostic diagnostic = {.length = length};
    module->device = device;
    module->length = length;
    atomic_init(&module->references, 1);
    module->text = soft_arena_text(&module->arena, text, length);
    if (module->text == NULL) {
        free_module(module);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    diagnostic.text = module->text;
    bool ok =
        ptx_read(&diagnostic, &module->arena, &module->ptx) && place_variables(&diagnostic, module);
    for (struct ptx_variable *v = module->ptx.variables; ok && v != NULL; v = v->next) {
        ok = relocate(&diagnostic, v);
    }
    ok = ok && lower_functions(&diagnostic, module);
    if (log_bytes > 0) snprintf(log, log_bytes, "%s", ok ? "" : diagnostic.message);
    if (!ok) {
        free_module(module);
        return diagnostic.result;
    }
    *result = module;
    return CUDA_SUCCESS;
}

void soft_module_release(struct soft_module *module) {
    if (module != NULL && atomic_fetch_sub(&module->references, 1) == 1) free_module(module);
}

/* Runs of blanks and tabs become one blank, so that a report is one readable line. */
static void fold_blanks(char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        bool blank = *from == ' ' || *from == '\t' || *from == '\r';
        if (blank && to > text && to[-1] == ' ') continue;
        *to++ = blank ? ' ' : *from;
    }
    *to = '\0';
}

void soft_module_describe(const struct soft_module *module, const struct soft_code *code,
                          const struct soft_instruction *instruction, struct soft_report *report) {
    size_t index = (size_t)(instruction - code->instructions);
    if (index >= code->instruction_count) return;
    const struct soft_origin *origin = &code->origins[index];
    size_t end = origin->offset;
    while (end < module->length && module->text[end] != ';' && module->text[end] != '\n') end++;
    snprintf(report->instruction, sizeof report->instruction, "%.*s", (int)(end - origin->offset),
             module->text + origin->offset);
    fold_blanks(report->instruction);
    report->ptx_line = soft_line_of(module->text, module->length, origin->offset);
    for (const struct ptx_file *file = module->ptx.files; file != NULL; file = file->next) {
        if (origin->file != 0 && file->number == origin->file) {
            snprintf(report->source, sizeof report->source, "%s:%u", file->name, origin->line);
        }
    }
}

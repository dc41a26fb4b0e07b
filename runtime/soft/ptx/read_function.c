/*
 * Functions: headers, attributes and registers. Source: PTX ISA 9.0, sections 5.1, 7.1 and 11.2 to
 * 11.5.
 */
#include "reader.h"

#include "tollens/cuda_abi.h"

#include <string.h>

enum { REGISTERS_MAX = 1 << 20, GROUP_MAX = 4096 };

/* Gives a function's registers their numbers and types, one per component. */
static bool read_function_add_registers(struct ptx_reader *reader, const struct soft_token *name,
                                        struct ptx_register_type type, uint32_t count, bool range) {
    struct ptx_function *function = reader->function;
    const char *text = reader->diagnostic->text + name->offset;
    struct ptx_symbol *symbol =
        range ? ptx_symbol_add_range(reader->arena, reader->scope, text, name->length)
              : ptx_symbol_add(reader->arena, reader->scope, PTX_REGISTER, text, name->length);
    if (symbol == NULL) return PTX_NO_MEMORY(reader);
    symbol->offset = name->offset;
    symbol->is.reg.first = function->register_count;
    symbol->is.reg.count = range ? count : 0;
    symbol->is.reg.type = type.component;
    symbol->is.reg.width = type.width;
    count *= type.width;
    while (function->register_count + count > reader->registers_room) {
        uint32_t room = reader->registers_room * 2 + 64;
        enum ptx_modifier *types = SOFT_ARENA_ARRAY(reader->arena, enum ptx_modifier, room);
        if (types == NULL) return PTX_NO_MEMORY(reader);
        if (function->register_count > 0) {
            memcpy(types, function->register_types, function->register_count * sizeof types[0]);
        }
        function->register_types = types;
        reader->registers_room = room;
    }
    for (uint32_t i = 0; i < count; i++) {
        function->register_types[function->register_count++] = type.component;
    }
    return true;
}

bool ptx_read_registers(struct ptx_reader *reader) {
    struct ptx_register_type type;
    struct ptx_function *function = reader->function;
    if (!ptx_read_register_type(reader, &type)) return false;
    do {
        const struct soft_token *name = reader->token;
        int64_t count = 0;
        if (!ptx_expect_name(reader, "the name of a register", &name)) return false;
        const char *text = reader->diagnostic->text + name->offset;
        bool range = ptx_take(reader, "<");
        if (range) {
            if (reader->token->kind != SOFT_TOKEN_INTEGER || !ptx_read_unary(reader, &count)) {
                return PTX_FAIL(reader, "expected the number of registers");
            }
            if (!ptx_expect(reader, ">")) return false;
        }
        uint32_t needed = range ? (uint32_t)count : 1;
        if (count < 0 || count > REGISTERS_MAX ||
            needed > (REGISTERS_MAX - function->register_count) / type.width) {
            return PTX_FAIL(reader, "a function can have at most %d registers", REGISTERS_MAX);
        }
        if (ptx_symbol_register_taken(reader->scope, text, name->length, range ? needed : 0)) {
            return soft_error(reader->diagnostic, name->offset, CUDA_ERROR_INVALID_PTX,
                              "'%.*s' is declared twice", (int)name->length, text);
        }
        if (needed == 0) continue; /* %r<0> declares nothing */
        if (!read_function_add_registers(reader, name, type, needed, range)) return false;
    } while (ptx_take(reader, ","));
    return ptx_expect(reader, ";");
}

/* Reads the module's registers as if the function had them, around its own. */
static bool read_function_read_outer_registers(struct ptx_reader *reader, struct ptx_scope *inner) {
    const struct soft_token *here = reader->token;
    reader->outer_count = 0;
    if (reader->outer == NULL) return true;
    struct ptx_scope *outer = soft_arena_alloc(reader->arena, sizeof *outer);
    if (outer == NULL) return PTX_NO_MEMORY(reader);
    outer->parent = inner->parent;
    inner->parent = reader->scope = outer;
    for (const struct ptx_outer_registers *o = reader->outer; o != NULL; o = o->next) {
        reader->token = o->token;
        if (!ptx_read_registers(reader)) return false;
    }
    reader->token = here;
    reader->scope = inner;
    reader->outer_count = reader->function->register_count;
    return true;
}

struct ptx_symbol *ptx_find_register(struct ptx_reader *reader, uint32_t *number) {
    struct ptx_symbol *symbol =
        ptx_symbol_register(reader->scope, ptx_text(reader), reader->token->length, number);
    if (symbol != NULL && *number < reader->outer_count && !reader->function->entry) {
        PTX_FAIL(reader, "only kernels can use a register declared outside functions");
        return NULL;
    }
    return symbol;
}

/* Resolves each name that was read before its declaration. */
static bool resolve_fixups(struct ptx_reader *reader) {
    for (struct ptx_fixup *fixup = reader->fixups; fixup != NULL; fixup = fixup->next) {
        const char *text = reader->diagnostic->text + fixup->operand->offset;
        size_t length = 0;
        if (*text == '!') text++;
        if (*text == '%') length++;
        while (text + length < reader->diagnostic->text + reader->diagnostic->length &&
               (strchr("$_", text[length]) != NULL ||
                (text[length] >= '0' && text[length] <= '9') ||
                (text[length] >= 'a' && text[length] <= 'z') ||
                (text[length] >= 'A' && text[length] <= 'Z'))) {
            length++;
        }
        fixup->operand->symbol = ptx_symbol_find(fixup->scope, text, length);
        if (fixup->operand->symbol == NULL) {
            return soft_error(reader->diagnostic, fixup->operand->offset, CUDA_ERROR_INVALID_PTX,
                              "'%.*s' is not declared", (int)length, text);
        }
    }
    reader->fixups = NULL;
    return true;
}

bool ptx_read_statements(struct ptx_reader *reader) {
    reader->body_variables_end = &reader->function->variables;
    reader->nesting = 0;
    reader->file = reader->line = 0;
    return ptx_make_instructions(reader) && ptx_read_body(reader) && resolve_fixups(reader);
}

/* A parameter of a function may be a register: ".reg" vector? type name. ".reg" is read already.
 * Each component is a parameter to itself. */
static bool read_register_parameter(struct ptx_reader *reader, struct ptx_variable **list,
                                    uint32_t *count) {
    struct ptx_register_type type;
    const struct soft_token *name = NULL;
    if (!ptx_read_register_type(reader, &type)) return false;
    if (*count + type.width > GROUP_MAX) {
        return PTX_FAIL(reader, "more than %d parameters", GROUP_MAX);
    }
    if (!ptx_expect_name(reader, "the name of a register", &name)) return false;
    const char *text = reader->diagnostic->text + name->offset;
    if (ptx_symbol_register_taken(reader->scope, text, name->length, 0)) {
        return soft_error(reader->diagnostic, name->offset, CUDA_ERROR_INVALID_PTX,
                          "'%.*s' is declared twice", (int)name->length, text);
    }
    uint32_t first = reader->function->register_count;
    if (!read_function_add_registers(reader, name, type, 1, false)) return false;
    for (uint32_t i = 0; i < type.width; i++) {
        struct ptx_variable *parameter = soft_arena_alloc(reader->arena, sizeof *parameter);
        if (parameter == NULL) return PTX_NO_MEMORY(reader);
        parameter->type = type.component;
        parameter->is_register = parameter->has_value = true;
        parameter->value = first + i;
        parameter->symbol = ptx_symbol_here(reader->scope, text, name->length);
        list[(*count)++] = parameter;
    }
    return true;
}

/* group = "(" parameter ("," parameter)* ")" */
static bool read_function_read_parameters(struct ptx_reader *reader, struct ptx_variable ***list,
                                          uint32_t *count) {
    struct ptx_variable *read[GROUP_MAX];
    *count = 0;
    if (!ptx_expect(reader, "(")) return false;
    while (!ptx_is(reader, ")")) {
        if (*count == GROUP_MAX) return PTX_FAIL(reader, "more than %d parameters", GROUP_MAX);
        bool in_register = !reader->function->entry && ptx_take(reader, ".reg");
        if (in_register ? !read_register_parameter(reader, read, count)
                        : !ptx_read_parameter(reader, &read[*count])) {
            return false;
        }
        *count += !in_register;
        if (!ptx_take(reader, ",")) break;
    }
    if (!ptx_expect(reader, ")")) return false;
    *list = SOFT_ARENA_ARRAY(reader->arena, struct ptx_variable *, *count);
    if (*list == NULL) return PTX_NO_MEMORY(reader);
    memcpy((void *)*list, (const void *)read, *count * sizeof read[0]);
    return true;
}

/* Up to three numbers after a directive such as .maxntid; missing ones are 1. */
static bool read_extents(struct ptx_reader *reader, uint32_t extents[3]) {
    for (int i = 0; i < 3; i++) extents[i] = 1;
    for (int i = 0; i < 3; i++) {
        int64_t value = 0;
        if (!ptx_read_unary(reader, &value)) return false;
        if (value < 1 || value > INT32_MAX) return PTX_FAIL(reader, "a count must be positive");
        extents[i] = (uint32_t)value;
        if (!ptx_take(reader, ",")) break;
    }
    return true;
}

/* Whether the next word begins another item of the module. */
static bool begins_item(const struct ptx_reader *reader) {
    static const char *const words[] = {".visible", ".extern", ".weak",   ".common",
                                        ".func",    ".entry",  ".file",   ".section",
                                        ".global",  ".const",  ".shared", ".alias"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (ptx_is(reader, words[i])) return true;
    }
    return false;
}

/* An error names the place of the directive. */
static bool read_cluster(struct ptx_reader *reader, uint32_t extents[3]) {
    enum { BLOCKS_MAX = 16 };
    const struct soft_token *directive = reader->token++;
    if (!read_extents(reader, extents)) return false;
    uint64_t layer = (uint64_t)extents[0] * extents[1];
    if (layer <= BLOCKS_MAX && layer * extents[2] <= BLOCKS_MAX) return true;
    reader->token = directive;
    return PTX_FAIL(reader, "a cluster of %ux%ux%u blocks: a cluster has at most %d", extents[0],
                    extents[1], extents[2], BLOCKS_MAX);
}

static bool read_attributes(struct ptx_reader *reader, struct ptx_function *function) {
    uint32_t extents[3];
    while (reader->token->kind == SOFT_TOKEN_DOTTED && !begins_item(reader)) {
        if (ptx_is(reader, ".maxntid") || ptx_is(reader, ".reqntid")) {
            function->block_threads_required = ptx_is(reader, ".reqntid");
            reader->token++;
            if (!read_extents(reader, function->block_threads)) return false;
        } else if (ptx_take(reader, ".maxnreg")) {
            if (!read_extents(reader, extents)) return false;
            function->registers_max = extents[0];
        } else if (ptx_take(reader, ".minnctapersm") || ptx_take(reader, ".maxnctapersm") ||
                   ptx_take(reader, ".abi_preserve") || ptx_take(reader, ".abi_preserve_control")) {
            if (!read_extents(reader, extents)) return false;
        } else if (ptx_take(reader, ".maxclusterrank")) {
            if (!read_extents(reader, extents)) return false;
            function->cluster_max = extents[0];
        } else if (ptx_is(reader, ".reqnctapercluster")) {
            if (!read_cluster(reader, function->cluster)) return false;
        } else if (ptx_take(reader, ".explicitcluster")) {
            function->cluster_needed = true;
        } else if (ptx_take(reader, ".blocksareclusters")) {
            function->blocks_are_clusters = true;
        } else if (ptx_take(reader, ".noreturn")) {
            function->no_return = true;
        } else if (ptx_is(reader, ".pragma")) {
            if (!ptx_read_pragmas(reader)) return false;
        } else if (ptx_take(reader, ".attribute")) {
            while (!ptx_is(reader, ")") && reader->token->kind != SOFT_TOKEN_END) reader->token++;
            if (!ptx_expect(reader, ")")) return false;
        } else {
            return PTX_FAIL(reader, "'%.*s' is not allowed here", (int)reader->token->length,
                            ptx_text(reader));
        }
    }
    return true;
}

/* A function may be declared any number of times and defined once; the symbol stays the same. */
static bool read_function_declare(struct ptx_reader *reader, const struct soft_token *name,
                                  struct ptx_function *function) {
    const char *text = reader->diagnostic->text + name->offset;
    struct ptx_symbol *known = ptx_symbol_here(reader->module->scope, text, name->length);
    if (known != NULL) {
        struct ptx_function *earlier = known->kind == PTX_FUNCTION ? known->is.function : NULL;
        if (earlier == NULL || (earlier->has_body && function->has_body) ||
            earlier->entry != function->entry) {
            return soft_error(reader->diagnostic, name->offset, CUDA_ERROR_INVALID_PTX,
                              "'%.*s' is declared twice", (int)name->length, text);
        }
        function->symbol = known;
        if (function->has_body) known->is.function = function;
    } else {
        function->symbol =
            ptx_symbol_add(reader->arena, reader->module->scope, PTX_FUNCTION, text, name->length);
        if (function->symbol == NULL) return PTX_NO_MEMORY(reader);
        function->symbol->offset = name->offset;
        function->symbol->is.function = function;
    }
    *reader->functions_end = function;
    reader->functions_end = &function->next;
    return true;
}

bool ptx_read_function(struct ptx_reader *reader, bool external) {
    struct ptx_function *function = soft_arena_alloc(reader->arena, sizeof *function);
    struct ptx_scope *scope = soft_arena_alloc(reader->arena, sizeof *scope);
    const struct soft_token *name = NULL;
    if (function == NULL || scope == NULL) return PTX_NO_MEMORY(reader);
    function->entry = ptx_is(reader, ".entry");
    function->external = external;
    function->linkage = reader->linkage;
    function->scope = scope;
    scope->parent = reader->module->scope;
    reader->token++;
    reader->scope = scope;
    reader->function = function;
    reader->registers_room = 0;
    if (!read_function_read_outer_registers(reader, scope)) return false;

    if (!function->entry && !read_attributes(reader, function)) return false;
    if (!function->entry && ptx_is(reader, "(") &&
        !read_function_read_parameters(reader, &function->returns, &function->return_count)) {
        return false;
    }
    if (!ptx_expect_name(reader, "the name of a function", &name)) return false;
    if (ptx_is(reader, "(") &&
        !read_function_read_parameters(reader, &function->parameters, &function->parameter_count)) {
        return false;
    }
    if (!read_attributes(reader, function)) return false;
    /* A declaration may end without a mark, where the next item begins. */
    function->has_body = !ptx_is(reader, ";") && (function->entry || !begins_item(reader));
    if (!read_function_declare(reader, name, function)) return false;

    if (function->has_body) {
        if (!ptx_postpone_body(reader, function) &&
            (!ptx_expect(reader, "{") || !ptx_read_statements(reader))) {
            return false;
        }
        reader->function = NULL;
    } else if ((function->entry || !begins_item(reader)) && !ptx_expect(reader, ";")) {
        return false;
    }
    reader->scope = reader->module->scope;
    return true;
}

/*
 * Functions: headers, attributes and bodies. Source: PTX ISA 9.0, sections 5.1, 7.1, 9.7 and 11.2
 * to 11.5.
 *
 *     body      = "{" statement* "}"
 *     statement = label ":" | "{" statement* "}" | declaration | debug | guard? instruction
 *     guard     = "@" "!"? register
 */
#include "reader.h"

#include "tollens/cuda_abi.h"

#include <string.h>

enum { NESTING_MAX = 256, REGISTERS_MAX = 1 << 20, OPCODE_MAX = 200, GROUP_MAX = 4096 };

/* Gives a function's registers their numbers and types: of each so many as it has components. */
static bool add_registers(struct ptx_reader *reader, const struct soft_token *name,
                          struct ptx_register_type type, uint32_t count, bool range) {
    struct ptx_function *function = reader->function;
    const char *text = reader->diagnostic->text + name->offset;
    struct ptx_symbol *symbol =
        ptx_symbol_add(reader->arena, reader->scope, PTX_REGISTER, text, name->length);
    if (symbol == NULL) return PTX_NO_MEMORY(reader);
    symbol->offset = name->offset;
    symbol->is.reg.first = function->register_count;
    symbol->is.reg.count = range ? count : 0;
    if (!range) reader->scope->has_percent |= text[0] == '%';
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

/* registers = ".reg" vector? type name ("<" count ">")? ("," ...)* ";" -- ".reg" is read already */
static bool read_registers(struct ptx_reader *reader) {
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
        if (!add_registers(reader, name, type, needed, range)) return false;
    } while (ptx_take(reader, ","));
    return ptx_expect(reader, ";");
}

/* Reads the module's registers as if the function had them, around its own. */
static bool read_outer_registers(struct ptx_reader *reader, struct ptx_scope *inner) {
    const struct soft_token *here = reader->token;
    reader->outer_count = 0;
    if (reader->outer == NULL) return true;
    struct ptx_scope *outer = soft_arena_alloc(reader->arena, sizeof *outer);
    if (outer == NULL) return PTX_NO_MEMORY(reader);
    outer->parent = inner->parent;
    inner->parent = reader->scope = outer;
    for (const struct ptx_outer_registers *o = reader->outer; o != NULL; o = o->next) {
        reader->token = o->token;
        if (!read_registers(reader)) return false;
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

/* The spelling of the instruction at the next token, without blanks between its words. */
static bool read_opcode(struct ptx_reader *reader, const struct ptx_opcode **opcode) {
    char joined[OPCODE_MAX];
    const struct soft_token *begin = reader->token;
    const char *spelling = ptx_text(reader);
    size_t length = 0;
    do {
        if (length + reader->token->length > sizeof joined) {
            return PTX_FAIL(reader, "the instruction is longer than %d characters", OPCODE_MAX);
        }
        if (reader->token->offset != begin->offset + length && spelling != joined) {
            memcpy(joined, spelling, length); /* blanks stand between the words */
            spelling = joined;
        }
        if (spelling == joined) memcpy(joined + length, ptx_text(reader), reader->token->length);
        length += reader->token->length;
        reader->token++;
    } while (reader->token->kind == SOFT_TOKEN_DOTTED);

    char why[160];
    size_t at = 0;
    const char *today = ptx_old_spelling(reader, spelling, length);
    *opcode = ptx_opcode_find(&reader->opcodes, reader->arena, today != NULL ? today : spelling,
                              today != NULL ? strlen(today) : length, why, sizeof why, &at);
    if (*opcode == NULL) {
        return soft_error(reader->diagnostic, begin->offset + at, CUDA_ERROR_INVALID_PTX,
                          "'%.*s': %s", (int)length, spelling, why);
    }
    const struct ptx_row *row = (*opcode)->row;
    if (row->target_min > reader->module->target) {
        return soft_error(reader->diagnostic, begin->offset, CUDA_ERROR_INVALID_PTX,
                          "'%.*s' needs .target sm_%u or newer", (int)length, spelling,
                          row->target_min);
    }
    if (row->version_min > reader->module->version) {
        return soft_error(reader->diagnostic, begin->offset, CUDA_ERROR_INVALID_PTX,
                          "'%.*s' needs .version %u.%u or newer", (int)length, spelling,
                          row->version_min / 10u, row->version_min % 10u);
    }
    return true;
}

static struct ptx_instruction *new_instruction(struct ptx_reader *reader) {
    struct ptx_function *function = reader->function;
    if (function->instruction_count == reader->instructions_room) {
        uint32_t room = reader->instructions_room * 2 + 64;
        struct ptx_instruction *more =
            SOFT_ARENA_ARRAY(reader->arena, struct ptx_instruction, room);
        if (more == NULL) return NULL;
        if (function->instruction_count > 0) {
            memcpy(more, function->instructions, function->instruction_count * sizeof more[0]);
        }
        function->instructions = more;
        reader->instructions_room = room;
    }
    return &function->instructions[function->instruction_count++];
}

static bool read_guard(struct ptx_reader *reader, struct ptx_instruction *instruction) {
    instruction->guard = -1;
    if (!ptx_take(reader, "@")) return true;
    instruction->guard_negated = ptx_take(reader, "!");
    uint32_t number = 0;
    struct ptx_symbol *symbol =
        reader->token->kind == SOFT_TOKEN_NAME ? ptx_find_register(reader, &number) : NULL;
    if (symbol == NULL || symbol->is.reg.type != PTX_pred) {
        return PTX_FAIL(reader, "a guard must be a register of type .pred");
    }
    instruction->guard = (int32_t)number;
    reader->token++;
    return true;
}

static bool read_instruction(struct ptx_reader *reader) {
    struct ptx_instruction *instruction = new_instruction(reader);
    if (instruction == NULL) return PTX_NO_MEMORY(reader);
    if (!read_guard(reader, instruction)) return false;
    if (reader->token->kind != SOFT_TOKEN_NAME) return PTX_FAIL(reader, "expected an instruction");
    instruction->offset = reader->token->offset;
    instruction->file = reader->file;
    instruction->line = reader->line;
    if (!read_opcode(reader, &instruction->opcode)) return false;
    reader->instruction = instruction->opcode->row->name;
    return ptx_read_operands(reader, &instruction->operands, &instruction->operand_count);
}

/* targets = (".branchtargets" | ".calltargets") name ("," name)* ";" */
static bool read_targets(struct ptx_reader *reader, struct ptx_symbol *label) {
    struct ptx_list *list = soft_arena_alloc(reader->arena, sizeof *list);
    if (list == NULL) return PTX_NO_MEMORY(reader);
    label->kind = PTX_TARGETS;
    reader->instruction = "bra";
    label->is.targets = list;
    reader->token++;
    return ptx_read_operands(reader, &list->items, &list->count);
}

static bool read_label(struct ptx_reader *reader) {
    const struct soft_token *name = reader->token;
    const char *text = ptx_text(reader);
    if (ptx_symbol_here(reader->scope, text, name->length) != NULL) {
        return PTX_FAIL(reader, "'%.*s' is declared twice", (int)name->length, text);
    }
    struct ptx_symbol *label =
        ptx_symbol_add(reader->arena, reader->scope, PTX_LABEL, text, name->length);
    if (label == NULL) return PTX_NO_MEMORY(reader);
    label->offset = name->offset;
    label->is.label = reader->function->instruction_count;
    reader->token += 2;
    if (ptx_is(reader, ".branchtargets") || ptx_is(reader, ".calltargets")) {
        return read_targets(reader, label);
    }
    if (ptx_is(reader, ".callprototype")) {
        /* What a call passes is checked against the function it reaches, so the prototype says
         * nothing new. */
        label->kind = PTX_PROTOTYPE;
        while (!ptx_is(reader, ";") && reader->token->kind != SOFT_TOKEN_END) reader->token++;
        return ptx_expect(reader, ";");
    }
    return true;
}

/* A label or an instruction, as most statements are. */
static bool begins_code(const struct ptx_reader *reader) {
    return reader->token->kind == SOFT_TOKEN_NAME || reader->token->first == '@';
}

static bool read_code(struct ptx_reader *reader) {
    bool label = reader->token->kind == SOFT_TOKEN_NAME &&
                 reader->token[1].kind == SOFT_TOKEN_MARK && reader->token[1].first == ':';
    return label ? read_label(reader) : read_instruction(reader);
}

static bool read_statement(struct ptx_reader *reader) {
    if (begins_code(reader)) return read_code(reader);
    static const struct {
        const char *word;
        enum ptx_modifier space;
    } spaces[] = {{".param", PTX_param},
                  {".local", PTX_local},
                  {".shared", PTX_shared},
                  {".global", PTX_global},
                  {".const", PTX_constant}};
    bool debug = false;
    if (!ptx_read_debug(reader, &debug)) return false;
    if (debug || ptx_take(reader, ";")) return true;
    if (ptx_take(reader, ".reg")) return read_registers(reader);
    if (ptx_is(reader, ".pragma")) return ptx_read_pragmas(reader);
    if (ptx_is(reader, ".param") && ptx_has_inner_parameters(reader)) {
        return ptx_read_inner_parameter(reader);
    }
    bool external = ptx_take(reader, ".extern");
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
        if (!ptx_take(reader, spaces[i].word)) continue;
        bool own = spaces[i].space == PTX_param || spaces[i].space == PTX_local ||
                   spaces[i].space == PTX_shared;
        return ptx_read_variables(reader, spaces[i].space, external,
                                  own ? &reader->body_variables_end : &reader->variables_end);
    }
    if (reader->token->kind == SOFT_TOKEN_DOTTED) {
        return PTX_FAIL(reader, "'%.*s' is not allowed here", (int)reader->token->length,
                        ptx_text(reader));
    }
    return read_code(reader);
}

bool ptx_read_body(struct ptx_reader *reader) {
    while (!ptx_take(reader, "}")) {
        if (reader->token->kind == SOFT_TOKEN_END) return PTX_FAIL(reader, "expected '}'");
        if (!ptx_take(reader, "{")) {
            if (!read_statement(reader)) return false;
            continue;
        }
        struct ptx_scope *inner = soft_arena_alloc(reader->arena, sizeof *inner);
        if (inner == NULL) return PTX_NO_MEMORY(reader);
        if (++reader->nesting > NESTING_MAX)
            return PTX_FAIL(reader, "braces are nested too deeply");
        inner->parent = reader->scope;
        reader->scope = inner;
        if (!ptx_read_body(reader)) return false;
        reader->scope = inner->parent;
        reader->nesting--;
    }
    return true;
}

/* Gives each name that was read before its declaration its meaning. */
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
    if (!add_registers(reader, name, type, 1, false)) return false;
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
static bool read_parameters(struct ptx_reader *reader, struct ptx_variable ***list,
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

/* Up to three numbers behind a directive such as .maxntid; those not written are 1. */
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

/* The directive's own place is what an error names. */
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
static bool declare(struct ptx_reader *reader, const struct soft_token *name,
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
    reader->instructions_room = reader->registers_room = 0;
    if (!read_outer_registers(reader, scope)) return false;

    if (!function->entry && !read_attributes(reader, function)) return false;
    if (!function->entry && ptx_is(reader, "(") &&
        !read_parameters(reader, &function->returns, &function->return_count)) {
        return false;
    }
    if (!ptx_expect_name(reader, "the name of a function", &name)) return false;
    if (ptx_is(reader, "(") &&
        !read_parameters(reader, &function->parameters, &function->parameter_count)) {
        return false;
    }
    if (!read_attributes(reader, function)) return false;
    /* A declaration may end without a mark, where the next item begins. */
    function->has_body = !ptx_is(reader, ";") && (function->entry || !begins_item(reader));
    if (!declare(reader, name, function)) return false;

    if (function->has_body) {
        reader->body_variables_end = &function->variables;
        reader->nesting = 0;
        reader->file = reader->line = 0;
        if (!ptx_expect(reader, "{") || !ptx_read_body(reader) || !resolve_fixups(reader)) {
            return false;
        }
        reader->function = NULL;
    } else if ((function->entry || !begins_item(reader)) && !ptx_expect(reader, ";")) {
        return false;
    }
    reader->scope = reader->module->scope;
    return true;
}

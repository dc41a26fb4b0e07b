/*
 * Bodies of functions. Source: PTX ISA 9.0, sections 9.7 and 11.2 to 11.5.
 *
 *     body      = "{" statement* "}"
 *     statement = label ":" | "{" statement* "}" | declaration | debug | guard? instruction
 *     guard     = "@" "!"? register
 */
#include "reader.h"

#include "tollens/cuda_abi.h"

#include <string.h>

enum { NESTING_MAX = 256, OPCODE_MAX = 200 };

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
            memcpy(joined, spelling, length); /* blanks separate the words */
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
    if (reader->module->target > 90 && strcmp(row->name, "wgmma") == 0) {
        return soft_error(reader->diagnostic, begin->offset, CUDA_ERROR_INVALID_PTX,
                          "'%.*s' is of .target sm_90a alone, and this is for sm_%u", (int)length,
                          spelling, reader->module->target);
    }
    if (row->version_min > reader->module->version) {
        return soft_error(reader->diagnostic, begin->offset, CUDA_ERROR_INVALID_PTX,
                          "'%.*s' needs .version %u.%u or newer", (int)length, spelling,
                          row->version_min / 10u, row->version_min % 10u);
    }
    return true;
}

bool ptx_make_instructions(struct ptx_reader *reader) {
    unsigned depth = 1;
    size_t room = 1; /* for one without its semicolon, which is an error */
    const struct soft_token *token = reader->token;
    for (; token->kind != SOFT_TOKEN_END && depth > 0; token++) {
        depth += token->first == '{';
        depth -= token->first == '}';
        room += token->first == ';';
    }
    reader->function->instructions =
        soft_arena_raw(reader->arena, room * sizeof *reader->function->instructions);
    return reader->function->instructions != NULL || PTX_NO_MEMORY(reader);
}

static struct ptx_instruction *new_instruction(struct ptx_reader *reader) {
    struct ptx_function *function = reader->function;
    struct ptx_instruction *instruction = &function->instructions[function->instruction_count++];
    memset(instruction, 0, sizeof *instruction);
    return instruction;
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

static bool read_body_read_instruction(struct ptx_reader *reader) {
    struct ptx_instruction *instruction = new_instruction(reader);
    if (!read_guard(reader, instruction)) return false;
    if (reader->token->kind != SOFT_TOKEN_NAME) return PTX_FAIL(reader, "expected an instruction");
    instruction->offset = reader->token->offset;
    instruction->file = reader->file;
    instruction->line = reader->line;
    if (!read_opcode(reader, &instruction->opcode)) return false;
    reader->instruction = instruction->opcode->row->name;
    reader->saw_symbol = false;
    bool ok = ptx_read_operands(reader, &instruction->operands, &instruction->operand_count);
    instruction->has_symbols = reader->saw_symbol;
    return ok;
}

/* targets = (".branchtargets" | ".calltargets") name ("," name)* ";" */
static bool read_body_read_targets(struct ptx_reader *reader, struct ptx_symbol *label) {
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
        return read_body_read_targets(reader, label);
    }
    if (ptx_is(reader, ".callprototype")) {
        /* The arguments of a call are checked against the called function, so the prototype is
         * redundant. */
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

static bool read_body_read_code(struct ptx_reader *reader) {
    bool label = reader->token->kind == SOFT_TOKEN_NAME &&
                 reader->token[1].kind == SOFT_TOKEN_MARK && reader->token[1].first == ':';
    return label ? read_label(reader) : read_body_read_instruction(reader);
}

static bool read_statement(struct ptx_reader *reader) {
    if (begins_code(reader)) return read_body_read_code(reader);
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
    if (ptx_take(reader, ".reg")) return ptx_read_registers(reader);
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
    return read_body_read_code(reader);
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

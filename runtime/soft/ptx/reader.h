/*
 * The PTX reader: text to struct ptx_module. Other files need only ptx_read.
 */
#ifndef SOFT_READER_H
#define SOFT_READER_H

#include "base/crew.h"
#include "diagnostic.h"
#include "opcode.h"
#include "symbol.h"
#include "token.h"

#include <string.h>

/* Arenas for threads that read together; one thread needs none. */
struct ptx_shares {
    struct soft_share *shares;
    unsigned threads;
};

/* Reads a whole text into the arena and the shares. false: the diagnostic has the error; the module
 * must not be used. */
bool ptx_read(struct soft_diagnostic *diagnostic, struct soft_arena *arena,
              const struct ptx_shares *shares, struct ptx_module *module);

/* A body that is read after everything outside of bodies. */
struct ptx_body {
    const struct soft_token *begin, *end; /* after the first brace, and after the last */
    struct ptx_function *function;
};

struct ptx_bodies {
    struct ptx_body *list;
    size_t count, room;
};

/* A name in an operand that was unknown when it was read: a later label or function. */
struct ptx_fixup {
    struct ptx_operand *operand;
    const struct ptx_scope *scope;
    struct ptx_fixup *next;
};

/* A .reg outside functions, which PTX before 3.0 may have: the text after the word. */
struct ptx_outer_registers {
    const struct soft_token *token;
    struct ptx_outer_registers *next;
};

struct ptx_reader {
    struct soft_diagnostic *diagnostic;
    struct soft_arena *arena;
    struct ptx_opcode_cache opcodes;
    const struct soft_token *token; /* the next one */
    struct ptx_module *module;
    enum ptx_linkage linkage;            /* of what is being read outside functions */
    struct ptx_variable **variables_end; /* where the module's next one goes */
    struct ptx_function **functions_end;
    struct ptx_outer_registers *outer, **outer_end;
    struct ptx_bodies *bodies; /* the list of postponed bodies; NULL if all are read at once */

    /* while inside a body */
    struct ptx_function *function;
    struct ptx_scope *scope;
    struct ptx_fixup *fixups;
    struct ptx_variable **body_variables_end;
    uint32_t registers_room;
    uint32_t outer_count; /* the number of the function's registers that are declared outside of
                           * it */
    unsigned nesting;
    const char *instruction; /* whose operands are read; "" between instructions */
    bool saw_symbol;         /* among them */
    uint32_t file, line;     /* from the latest .loc */
};

/* An error at the next token. */
#define PTX_FAIL(reader, ...)                                                                      \
    soft_error((reader)->diagnostic, (reader)->token->offset, CUDA_ERROR_INVALID_PTX, __VA_ARGS__)
#define PTX_NO_MEMORY(reader)                                                                      \
    soft_error((reader)->diagnostic, (reader)->token->offset, CUDA_ERROR_OUT_OF_MEMORY,            \
               "out of host memory")

/* For token.c's words: whether the next token is this one; skip it if so; require it. */
static inline const char *ptx_text(const struct ptx_reader *reader) {
    return reader->diagnostic->text + reader->token->offset;
}

/* Inline, because every token is compared with many words, whose lengths compilers know. */
static inline bool ptx_is(const struct ptx_reader *reader, const char *text) {
    if (reader->token->first != text[0]) return false;
    size_t length = strlen(text);
    return reader->token->length == length &&
           (length == 1 || memcmp(ptx_text(reader), text, length) == 0);
}

/* Whether this is the instruction whose operands are being read. */
static inline bool ptx_is_of(const struct ptx_reader *reader, const char *instruction) {
    return reader->instruction[0] == instruction[0] &&
           strcmp(reader->instruction, instruction) == 0;
}

static inline bool ptx_take(struct ptx_reader *reader, const char *text) {
    bool found = ptx_is(reader, text);
    if (found) reader->token++;
    return found;
}
bool ptx_expect(struct ptx_reader *reader, const char *text);
bool ptx_expect_name(struct ptx_reader *reader, const char *what, const struct soft_token **name);

/* A type such as .f32; *type is written only on success. */
bool ptx_read_type(struct ptx_reader *reader, enum ptx_modifier *type);

/* read_vector.c: the type of a register: one value, or a vector of two or four. */
struct ptx_register_type {
    enum ptx_modifier component;
    uint32_t width;
};
bool ptx_read_register_type(struct ptx_reader *reader, struct ptx_register_type *type);

/* The register of a vector before the next token: all of it, or the component that the next token,
 * ".x", selects. operand->reg is its first. */
bool ptx_read_vector(struct ptx_reader *reader, struct ptx_operand *operand, uint32_t width);

/* "%tid" and similar registers as a whole, or a component by its other name, "%tid.r". false: the
 * next token is none of these, or out of memory, which is noted. */
bool ptx_read_special_vector(struct ptx_reader *reader, struct ptx_operand *operand);

/* The modifier of a dotted word; PTX_MODIFIERS if none. */
enum ptx_modifier ptx_modifier_of(const char *text, size_t length);

/* constant = integer expression with C's operators and precedence */
bool ptx_read_constant(struct ptx_reader *reader, int64_t *value);
bool ptx_read_unary(struct ptx_reader *reader, int64_t *value);

/* A single numeric literal, with an optional minus: INTEGER, FLOAT32 or FLOAT64. */
bool ptx_read_number(struct ptx_reader *reader, struct ptx_operand *operand);

/* pragmas = ".pragma" string ("," string)* ";" */
bool ptx_read_pragmas(struct ptx_reader *reader);

/* variables = ".attribute(...)"? ".align N"? ".vN"? type name dimensions? ("=" data)? ("," ...)*
 * ";" The space is read already. *first is the first of those declared. */
bool ptx_read_variables(struct ptx_reader *reader, enum ptx_modifier space, bool external,
                        struct ptx_variable ***end);

/* The texture references of PTX before 1.5, ".tex .u32 name;": the text after ".tex". */
bool ptx_read_texture(struct ptx_reader *reader, struct ptx_variable ***end);

/* One parameter of a function, as a variable; its space word is read here. */
bool ptx_read_parameter(struct ptx_reader *reader, struct ptx_variable **parameter);

/* function = (".entry" | ".func") ... ; the keyword is the next token. */
bool ptx_read_function(struct ptx_reader *reader, bool external);

/* registers = ".reg" vector? type name ("<" count ">")? ("," ...)* ";" -- ".reg" is read already */
bool ptx_read_registers(struct ptx_reader *reader);

/* read_apart.c: skips the next body, to be read later. false: it must be read now. */
bool ptx_postpone_body(struct ptx_reader *reader, struct ptx_function *function);

/* Reads the postponed bodies. false: there is an error; reading all at once reports it. */
bool ptx_read_bodies(struct ptx_module *module, const struct soft_diagnostic *diagnostic,
                     const struct ptx_bodies *bodies, const struct ptx_shares *shares);

/* A body after its "{": the reader has the function and its scope. */
bool ptx_read_statements(struct ptx_reader *reader);

/* Makes room for the instructions of a body whose "{" is read, each of which ends with a
 * semicolon. */
bool ptx_make_instructions(struct ptx_reader *reader);

/* The statements between "{" and "}"; the "{" is read already. */
bool ptx_read_body(struct ptx_reader *reader);

/* operands = (operand ("," operand)*)? ";" -- see read_operand.c */
bool ptx_read_operands(struct ptx_reader *reader, struct ptx_operand **operands, uint32_t *count);

/* A register's symbol and number; NULL if the name is no register, or one that a function may not
 * use; then the error is already noted. */
struct ptx_symbol *ptx_find_register(struct ptx_reader *reader, uint32_t *number);

/* read_old.c: the current spelling of an instruction of PTX before 1.4; NULL if it is the same. */
const char *ptx_old_spelling(const struct ptx_reader *reader, const char *spelling, size_t length);

/* Whether a .param in the body is a kernel's own; reads one of them. */
bool ptx_has_inner_parameters(const struct ptx_reader *reader);
bool ptx_read_inner_parameter(struct ptx_reader *reader);

/* Skips .section { ... } and other debug directives; .file is noted. false: an error. */
bool ptx_read_debug(struct ptx_reader *reader, bool *was_debug);

#endif

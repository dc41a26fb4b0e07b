/*
 * Variables: declarations in every state space, and their initial data.
 * Source: PTX ISA 9.0, sections 5.4 (Variables) and 11.6 (Linking directives).
 */
#include "reader.h"

#include "tollens/cuda_abi.h"

#include <string.h>

/* One variable may be as large as any device's memory, and no larger. */
#define VARIABLE_BYTES_MAX (1ull << 40)
/* Initial data is stored in the text, so it cannot be large; arrays of zeros need none. */
#define DATA_BYTES_MAX (1ull << 30)

bool ptx_read_type(struct ptx_reader *reader, enum ptx_modifier *type) {
    if (reader->token->kind != SOFT_TOKEN_DOTTED) return PTX_FAIL(reader, "expected a type");
    enum ptx_modifier found = ptx_modifier_of(ptx_text(reader), reader->token->length);
    if ((int)found >= PTX_TYPES) {
        return PTX_FAIL(reader, "unknown type '%.*s'", (int)reader->token->length,
                        ptx_text(reader));
    }
    *type = found;
    reader->token++;
    return true;
}

/* Writes a value at a place, least significant byte first, sign-extended if it is shorter. */
static void read_variable_store(unsigned char *data, uint64_t at, uint64_t value, unsigned bytes) {
    unsigned char sign = value >> 63 != 0 ? 0xff : 0;
    for (unsigned i = 0; i < bytes; i++) {
        data[at + i] = sign;
        if (i < 8) data[at + i] = (unsigned char)(value >> (8 * i));
    }
}

/* address = name (("+" | "-") constant)? | "generic" "(" address ")" | mask "(" address ")" */
static bool read_relocation(struct ptx_reader *reader, struct ptx_variable *variable, uint64_t at,
                            unsigned bytes) {
    struct ptx_relocation *relocation = soft_arena_alloc(reader->arena, sizeof *relocation);
    if (relocation == NULL) return PTX_NO_MEMORY(reader);
    unsigned parentheses = 0;
    if (reader->token->kind == SOFT_TOKEN_INTEGER) {
        int64_t mask = 0;
        if (!ptx_read_unary(reader, &mask)) return false;
        while (relocation->mask_shift < 56 && (uint64_t)mask >> relocation->mask_shift > 0xff) {
            relocation->mask_shift = (uint8_t)(relocation->mask_shift + 8);
        }
        relocation->masked = true;
        if (!ptx_expect(reader, "(")) return false;
        parentheses++;
    }
    if (ptx_take(reader, "generic")) {
        relocation->generic = true;
        if (!ptx_expect(reader, "(")) return false;
        parentheses++;
    }
    const struct soft_token *name = reader->token;
    if (!ptx_expect_name(reader, "the name of a variable or a function", &name)) return false;
    const char *text = reader->diagnostic->text + name->offset;
    relocation->symbol = ptx_symbol_find(reader->scope, text, name->length);
    if (relocation->symbol == NULL ||
        (relocation->symbol->kind != PTX_VARIABLE && relocation->symbol->kind != PTX_FUNCTION)) {
        return soft_error(reader->diagnostic, name->offset, CUDA_ERROR_INVALID_PTX,
                          "'%.*s' is not declared", (int)name->length, text);
    }
    for (int turn = 0; turn < 2; turn++) {
        int64_t addend = 0;
        if (ptx_is(reader, "-") || ptx_is(reader, "+")) {
            if (!ptx_read_unary(reader, &addend)) return false;
            relocation->addend = (int64_t)((uint64_t)relocation->addend + (uint64_t)addend);
        }
        while (parentheses > 0 && ptx_take(reader, ")")) parentheses--;
    }
    if (parentheses > 0) return PTX_FAIL(reader, "expected ')'");
    relocation->at = at;
    relocation->bytes = bytes;
    relocation->next = variable->relocations;
    variable->relocations = relocation;
    return true;
}

static bool read_variable_read_value(struct ptx_reader *reader, struct ptx_variable *variable,
                                     uint64_t at, unsigned bytes) {
    bool masked = reader->token->kind == SOFT_TOKEN_INTEGER &&
                  reader->token[1].kind == SOFT_TOKEN_MARK &&
                  reader->diagnostic->text[reader->token[1].offset] == '(';
    if (masked || (reader->token->kind == SOFT_TOKEN_NAME && !ptx_is(reader, "WARP_SZ"))) {
        return read_relocation(reader, variable, at, bytes);
    }
    struct ptx_operand number = {.kind = PTX_OPERAND_NONE};
    if (!ptx_read_number(reader, &number)) return false;
    if (number.kind == PTX_OPERAND_INTEGER) {
        read_variable_store(variable->data, at, (uint64_t)number.integer, bytes);
        return true;
    }
    if (number.kind == PTX_OPERAND_FLOAT64 && bytes == 4) {
        double wide = 0;
        memcpy(&wide, &number.bits, sizeof wide);
        float narrow = (float)wide;
        uint32_t bits = 0;
        memcpy(&bits, &narrow, sizeof bits);
        number.bits = bits;
    }
    read_variable_store(variable->data, at, number.bits, bytes);
    return true;
}

/* data = value | "{" (data ("," data)*)? "}": nested braces follow the dimensions, and the vectors
 * of the last. Missing values of a row are zero. */
static bool read_variable_read_data(struct ptx_reader *reader, struct ptx_variable *variable,
                                    uint64_t begin, uint64_t end, unsigned bytes,
                                    const uint64_t *row_bytes, unsigned rows) {
    if (!ptx_take(reader, "{")) {
        if (begin + bytes > end)
            return PTX_FAIL(reader, "more initial values than the variable can hold");
        return read_variable_read_value(reader, variable, begin, bytes);
    }
    uint64_t at = begin;
    while (!ptx_is(reader, "}")) {
        bool nested = ptx_is(reader, "{");
        if (nested && rows == 0) return PTX_FAIL(reader, "expected a value, not a brace");
        uint64_t step = nested ? row_bytes[0] : bytes;
        if (at + step > end)
            return PTX_FAIL(reader, "more initial values than the variable can hold");
        if (!read_variable_read_data(reader, variable, at, at + step, bytes,
                                     nested ? row_bytes + 1 : row_bytes, nested ? rows - 1 : 0)) {
            return false;
        }
        at += step;
        if (!ptx_take(reader, ",")) break;
    }
    return ptx_expect(reader, "}");
}

enum { DIMENSIONS_MAX = 8 };

/* Counts the entries of an array whose size its data decides, .b8 s[] = {1, 2, 3}: each is a brace,
 * or that many values. */
static uint64_t count_entries(const struct ptx_reader *reader, uint64_t entry_values) {
    const struct soft_token *token = reader->token;
    const char *text = reader->diagnostic->text;
    uint64_t values = 0, braces = 0;
    int depth = 0;
    bool value_open = false;
    for (; token->kind != SOFT_TOKEN_END; token++) {
        char mark = token->kind == SOFT_TOKEN_MARK ? text[token->offset] : '\0';
        if (mark == ';') break;
        if (mark == '{') {
            braces += ++depth == 2;
        } else if (mark == '}' || mark == ',') {
            values += value_open;
            value_open = false;
            if (mark == '}' && --depth == 0) break;
        } else {
            value_open = true;
        }
    }
    return braces > 0 || entry_values == 0 ? braces : (values + entry_values - 1) / entry_values;
}

static bool read_dimensions(struct ptx_reader *reader, struct ptx_variable *variable,
                            uint64_t element_bytes, uint64_t *row_bytes, unsigned *rows) {
    uint64_t sizes[DIMENSIONS_MAX] = {0};
    unsigned count = 0;
    bool open = false;
    while (ptx_take(reader, "[")) {
        int64_t size = 0;
        if (count == DIMENSIONS_MAX) return PTX_FAIL(reader, "too many dimensions");
        if (ptx_is(reader, "]") && count == 0) {
            open = true;
        } else if (!ptx_read_constant(reader, &size)) {
            return false;
        } else if (size < 0 || (uint64_t)size > VARIABLE_BYTES_MAX) {
            return PTX_FAIL(reader, "the size of the array is out of range");
        }
        sizes[count++] = (uint64_t)size;
        if (!ptx_expect(reader, "]")) return false;
    }
    uint64_t bytes = element_bytes;
    for (unsigned i = count; i-- > (open ? 1u : 0u);) {
        row_bytes[i] = bytes;
        if (sizes[i] != 0 && bytes > VARIABLE_BYTES_MAX / sizes[i]) {
            return PTX_FAIL(reader, "the size of the array is out of range");
        }
        bytes *= sizes[i];
    }
    if (open) {
        row_bytes[0] = bytes;
        variable->is_unsized = true;
        if (ptx_is(reader, "=")) {
            unsigned value_bytes = ptx_types[variable->type].bits / 8;
            variable->is_unsized = false;
            bytes *= count_entries(reader, bytes / value_bytes);
        } else {
            bytes = 0;
        }
    }
    variable->bytes = bytes;
    variable->is_array = count > 0;
    variable->dimensions = (uint8_t)count;
    *rows = count;
    return true;
}

/* name<10> declares name0 to name9; only registers and simple variables may. */
static bool read_declarator(struct ptx_reader *reader, const struct ptx_variable *like,
                            uint64_t element_bytes, struct ptx_variable ***end) {
    const struct soft_token *name = reader->token;
    if (!ptx_expect_name(reader, "the name of a variable", &name)) return false;
    const char *text = reader->diagnostic->text + name->offset;
    struct ptx_variable *variable = soft_arena_alloc(reader->arena, sizeof *variable);
    if (variable == NULL) return PTX_NO_MEMORY(reader);
    *variable = *like;

    uint64_t row_bytes[DIMENSIONS_MAX + 1] = {0};
    unsigned rows = 0;
    if (!read_dimensions(reader, variable, element_bytes, row_bytes, &rows)) return false;
    if (variable->is_opaque && (rows > 0 || ptx_is(reader, "="))) {
        return PTX_FAIL(reader, "an array of references, and initial values of one, are not "
                                "supported by this device");
    }
    if (ptx_take(reader, "=")) {
        if (variable->bytes > DATA_BYTES_MAX)
            return PTX_FAIL(reader, "the initial data is too large");
        variable->data = soft_arena_alloc(reader->arena, (size_t)variable->bytes);
        if (variable->data == NULL) return PTX_NO_MEMORY(reader);
        unsigned bytes = ptx_types[variable->type].bits / 8;
        unsigned vectors = rows > 0 && element_bytes > bytes;
        if (!read_variable_read_data(reader, variable, 0, variable->bytes, bytes, row_bytes,
                                     rows > 0 ? rows - 1 + vectors : 0)) {
            return false;
        }
    }

    struct ptx_symbol *known = ptx_symbol_here(reader->scope, text, name->length);
    if (known != NULL) {
        /* A declaration may precede or follow the definition; a body between them sees only the
         * first. */
        if (reader->bodies != NULL) return PTX_FAIL(reader, "the bodies cannot be read apart");
        bool both = known->kind == PTX_VARIABLE && known->is.variable->space == variable->space;
        if (!both || (!known->is.variable->external && !variable->external)) {
            return soft_error(reader->diagnostic, name->offset, CUDA_ERROR_INVALID_PTX,
                              "'%.*s' is declared twice", (int)name->length, text);
        }
        if (!variable->external) {
            struct ptx_variable *next = known->is.variable->next;
            *known->is.variable = *variable;
            known->is.variable->symbol = known;
            known->is.variable->next = next;
        }
        return true;
    }
    variable->symbol =
        ptx_symbol_add(reader->arena, reader->scope, PTX_VARIABLE, text, name->length);
    if (variable->symbol == NULL) return PTX_NO_MEMORY(reader);
    variable->symbol->offset = name->offset;
    variable->symbol->is.variable = variable;
    **end = variable;
    *end = &variable->next;
    return true;
}

/* alignment = ".align" power of two */
static bool read_variable_read_alignment(struct ptx_reader *reader, uint32_t *alignment) {
    int64_t value = 0;
    if (!ptx_read_constant(reader, &value)) return false;
    if (value <= 0 || value > 1 << 20 || (value & (value - 1)) != 0) {
        return PTX_FAIL(reader, "the alignment must be a power of two");
    }
    *alignment = (uint32_t)value;
    return true;
}

/* The words between a space and a type, in any order. */
static bool read_qualifiers(struct ptx_reader *reader, struct ptx_variable *like, unsigned *vector,
                            uint32_t *alignment) {
    for (;;) {
        if (ptx_take(reader, ".align")) {
            if (!read_variable_read_alignment(reader, alignment)) return false;
        } else if (ptx_take(reader, ".v2")) {
            *vector = 2;
        } else if (ptx_take(reader, ".v4")) {
            *vector = 4;
        } else if (ptx_take(reader, ".attribute")) {
            if (!ptx_expect(reader, "(")) return false;
            while (!ptx_is(reader, ")") && reader->token->kind != SOFT_TOKEN_END) {
                like->is_managed |= ptx_is(reader, ".managed");
                reader->token++;
            }
            if (like->is_managed && like->space != PTX_global) {
                return PTX_FAIL(reader, "only a .global variable can be managed");
            }
            if (!ptx_expect(reader, ")")) return false;
        } else if (like->space == PTX_constant && ptx_is(reader, "[")) {
            return PTX_FAIL(reader, "constant banks are not supported: no PTX after 2.1 has them");
        } else {
            return true;
        }
    }
}

/* ".texref" or ".surfref" in the place of a type: eight bytes, which the driver fills. */
static bool read_opaque(struct ptx_reader *reader, struct ptx_variable *like) {
    if (ptx_is(reader, ".samplerref")) {
        return PTX_FAIL(reader, "separate samplers are not supported by this device");
    }
    like->is_surface = ptx_is(reader, ".surfref");
    like->is_opaque = like->is_surface || ptx_is(reader, ".texref");
    if (!like->is_opaque) return true;
    if (like->space != PTX_global) {
        return PTX_FAIL(reader, "a texture or surface reference must be in .global");
    }
    reader->token++;
    like->type = PTX_b64;
    return true;
}

bool ptx_read_texture(struct ptx_reader *reader, struct ptx_variable ***end) {
    struct ptx_variable like = {.space = PTX_global,
                                .linkage = reader->linkage,
                                .type = PTX_b64,
                                .alignment = 8,
                                .is_opaque = true};
    enum ptx_modifier type;
    if (!ptx_read_type(reader, &type)) return false;
    do {
        if (!read_declarator(reader, &like, 8, end)) return false;
    } while (ptx_take(reader, ","));
    return ptx_expect(reader, ";");
}

bool ptx_read_variables(struct ptx_reader *reader, enum ptx_modifier space, bool external,
                        struct ptx_variable ***end) {
    struct ptx_variable like = {.space = space, .external = external, .linkage = reader->linkage};
    unsigned vector = 1;
    uint32_t alignment = 0;
    if (!read_qualifiers(reader, &like, &vector, &alignment)) return false;
    if (!read_opaque(reader, &like)) return false;
    if (!like.is_opaque && !ptx_read_type(reader, &like.type)) return false;
    unsigned bytes = ptx_types[like.type].bits / 8;
    if (bytes == 0) return PTX_FAIL(reader, "a variable cannot have this type");
    if (!read_qualifiers(reader, &like, &vector, &alignment)) return false;
    like.alignment = alignment > 0 ? alignment : bytes * vector;
    do {
        if (!read_declarator(reader, &like, (uint64_t)bytes * vector, end)) return false;
    } while (ptx_take(reader, ","));
    return ptx_expect(reader, ";");
}

/* parameter = ".param" ".align N"? type (".ptr" space? ".align N"?)? name ("[" N "]")? */
bool ptx_read_parameter(struct ptx_reader *reader, struct ptx_variable **result) {
    struct ptx_variable like = {.space = PTX_param};
    unsigned vector = 1;
    uint32_t alignment = 0;
    if (!ptx_take(reader, ".param")) {
        return PTX_FAIL(reader, "expected .param");
    }
    if (!read_qualifiers(reader, &like, &vector, &alignment)) return false;
    if (ptx_is(reader, ".texref") || ptx_is(reader, ".samplerref") || ptx_is(reader, ".surfref")) {
        return PTX_FAIL(reader, "a reference as a parameter is not supported by this device");
    }
    if (!ptx_read_type(reader, &like.type)) return false;
    unsigned bytes = ptx_types[like.type].bits / 8;
    if (bytes == 0) return PTX_FAIL(reader, "a parameter cannot have this type");
    if (ptx_take(reader, ".ptr")) {
        uint32_t pointee = 0;
        like.is_pointer = true;
        while (ptx_take(reader, ".global") || ptx_take(reader, ".shared") ||
               ptx_take(reader, ".local") || ptx_take(reader, ".const")) {
        }
        if (!read_qualifiers(reader, &like, &vector, &pointee)) return false;
    }
    if (!read_qualifiers(reader, &like, &vector, &alignment)) return false;
    like.alignment = alignment > 0 ? alignment : bytes * vector;
    struct ptx_variable *first = NULL, **end = &first;
    if (!read_declarator(reader, &like, (uint64_t)bytes * vector, &end)) return false;
    *result = first;
    return first != NULL;
}

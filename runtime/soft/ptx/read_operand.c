/*
 * Operands. Source: PTX ISA 9.0, chapter 6.
 *
 *     operand = "!"? name ("." component)? ("|" operand)?  |  name ("+" | "-") constant
 *             | name "[" constant "]"  |  number  |  "_"  |  "[" address "]"  |  "{" operands "}"
 *             | "(" operands ")", in a call
 *     address = (name | constant) (("+" | "-") constant)? ("," operand)*
 *
 * The declaration determines the meaning of a name; labels and functions may be declared later in
 * the text and are resolved at the end of the body.
 */
#include "reader.h"

#include "tollens/cuda_abi.h"

#include <string.h>

enum { ITEMS_MAX = 256, DEPTH_MAX = 8 };

static bool read_one(struct ptx_reader *reader, struct ptx_operand *operand, unsigned depth);

static const struct {
    const char *text;
    size_t length;
    enum ptx_special special;
} specials[] = {
#define PTX_SPECIAL(name, text, bits) {text, sizeof(text) - 1, PTX_SPECIAL_##name},
#include "special.def"
};

/* Looks for "%tid.x" as the name and the dotted word after it, or for the name alone. */
static bool find_special(struct ptx_reader *reader, struct ptx_operand *operand) {
    const char *text = ptx_text(reader);
    size_t alone = reader->token->length;
    if (text[0] != '%' && text[0] != 'W') return false; /* all of them but WARP_SZ */
    const struct soft_token *next = reader->token + 1;
    bool joined = next->kind == SOFT_TOKEN_DOTTED && next->offset == reader->token->offset + alone;
    size_t with = joined ? alone + next->length : alone;
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
        size_t length = specials[i].length;
        if ((length != with && length != alone) || memcmp(text, specials[i].text, length) != 0) {
            continue;
        }
        if (length == alone && joined && with != alone) continue;
        operand->kind = PTX_OPERAND_SPECIAL;
        operand->special = specials[i].special;
        reader->token += length == alone ? 1 : 2;
        return true;
    }
    return false;
}

static bool add_fixup(struct ptx_reader *reader, struct ptx_operand *operand) {
    struct ptx_fixup *fixup = soft_arena_alloc(reader->arena, sizeof *fixup);
    if (fixup == NULL) return PTX_NO_MEMORY(reader);
    fixup->operand = operand;
    fixup->scope = reader->scope;
    fixup->next = reader->fixups;
    reader->fixups = fixup;
    return true;
}

/* ".b2", ".h10" or ".b7654" immediately after a register: the bytes or half-words of it, followed
 * by those of the next register, that a video instruction takes. */
static void read_picks(struct ptx_reader *reader, struct ptx_operand *operand) {
    const struct soft_token *before = reader->token - 1;
    const char *text = ptx_text(reader);
    uint32_t count = reader->token->length - 2u;
    if (reader->token->kind != SOFT_TOKEN_DOTTED || reader->token->length < 3 ||
        reader->token->offset != before->offset + before->length ||
        (text[1] != 'b' && text[1] != 'h') || count > (text[1] == 'b' ? 4 : 2)) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        char digit = text[2 + i];
        if (digit < '0' || digit > (text[1] == 'b' ? '7' : '3')) return;
        operand->picks[i] = (uint8_t)(digit - '0');
    }
    operand->picked = (uint8_t)count;
    operand->picks_halves = text[1] == 'h';
    reader->token++;
}

static bool read_operand_read_name(struct ptx_reader *reader, struct ptx_operand *operand) {
    const char *text = ptx_text(reader);
    size_t length = reader->token->length;
    if (length == 1 && text[0] == '_') {
        operand->kind = PTX_OPERAND_NONE;
        reader->token++;
        return true;
    }
    struct ptx_symbol *symbol = ptx_find_register(reader, &operand->reg);
    if (reader->diagnostic->failed) return false;
    if (symbol != NULL) {
        operand->kind = PTX_OPERAND_REGISTER;
        operand->type = symbol->is.reg.type;
        reader->token++;
        if (symbol->is.reg.width > 1) {
            return ptx_read_vector(reader, operand, symbol->is.reg.width);
        }
        read_picks(reader, operand);
        return true;
    }
    if (find_special(reader, operand) || ptx_read_special_vector(reader, operand)) return true;
    operand->kind = PTX_OPERAND_SYMBOL;
    reader->saw_symbol = true;
    operand->symbol = ptx_symbol_find(reader->scope, text, length);
    /* Labels and functions may be declared later; registers must be declared before. */
    if (operand->symbol == NULL && text[0] == '%' && !ptx_is_of(reader, "bra")) {
        return PTX_FAIL(reader, "'%.*s' is neither a declared register nor a special register",
                        (int)length, text);
    }
    if (operand->symbol == NULL && !add_fixup(reader, operand)) return false;
    reader->token++;
    return true;
}

/* ("+" | "-") constant, after a name: [%rd1+8], [%rd1+-8], [x-4], [x+4*2] */
static bool read_addend(struct ptx_reader *reader, int64_t *addend) {
    if (ptx_take(reader, "+") || ptx_is(reader, "-")) return ptx_read_constant(reader, addend);
    return true;
}

/* x[2] is the address of an array's element, in a load or a store as if in brackets: an addend in
 * elements, while x+8 is one in bytes. */
static bool read_index(struct ptx_reader *reader, struct ptx_operand *operand) {
    const struct ptx_variable *array = operand->symbol->is.variable;
    int64_t index = 0;
    if (array->dimensions != 1)
        return PTX_FAIL(reader, "only an array of one dimension can be indexed");
    reader->token++;
    if (!ptx_read_constant(reader, &index) || !ptx_expect(reader, "]")) return false;
    operand->indexed = true;
    operand->integer = (int64_t)((uint64_t)index * (ptx_types[array->type].bits / 8u));
    return true;
}

/* A whole vector of registers is not allowed in braces, and a component is not allowed in an
 * address, in a pair or as an argument of a call; there a vector means its components. */
static bool check_vectors(struct ptx_reader *reader, struct ptx_operand *items, uint32_t *count,
                          const char *end) {
    struct ptx_operand last = items[*count - 1];
    if (*end == '}' ? last.whole : (*end == ')' || *end == ']') && last.chosen) {
        return soft_error(reader->diagnostic, last.offset, CUDA_ERROR_INVALID_PTX,
                          last.whole ? "a vector is not allowed in braces"
                                     : "a component of a vector is not allowed here");
    }
    if (*end != ')' || !last.whole) return true;
    if (*count - 1 + last.count > ITEMS_MAX) {
        return PTX_FAIL(reader, "more than %d operands", ITEMS_MAX);
    }
    memcpy(items + *count - 1, last.items, last.count * sizeof items[0]);
    *count += last.count - 1;
    return true;
}

/* Braces with a component of a vector have no number. */
static bool check_braces(struct ptx_reader *reader, const struct ptx_operand *items,
                         uint32_t count) {
    bool chosen = false;
    for (uint32_t i = 0; i < count; i++) chosen |= items[i].chosen;
    for (uint32_t i = 0; i < count && chosen; i++) {
        if (items[i].kind == PTX_OPERAND_INTEGER || items[i].kind == PTX_OPERAND_FLOAT32 ||
            items[i].kind == PTX_OPERAND_FLOAT64) {
            return soft_error(reader->diagnostic, items[i].offset, CUDA_ERROR_INVALID_PTX,
                              "a number is not allowed beside a component of a vector");
        }
    }
    return true;
}

static bool read_operand_read_items(struct ptx_reader *reader, struct ptx_operand *operand,
                                    const char *end, unsigned depth) {
    struct ptx_operand items[ITEMS_MAX];
    struct ptx_fixup *before = reader->fixups;
    uint32_t count = 0;
    memset(&items[0], 0, sizeof items[0]);
    while (!ptx_is(reader, end)) {
        if (count == ITEMS_MAX) return PTX_FAIL(reader, "more than %d operands", ITEMS_MAX);
        memset(&items[count], 0, sizeof items[count]);
        if (!read_one(reader, &items[count], depth)) return false;
        count++;
        if (!check_vectors(reader, items, &count, end)) return false;
        if (!ptx_take(reader, ",")) break;
        if (ptx_is(reader, end)) return PTX_FAIL(reader, "expected an operand");
    }
    if (!ptx_expect(reader, end)) return false;
    if (*end == '}' && !check_braces(reader, items, count)) return false;
    operand->items = soft_arena_raw(reader->arena, count * sizeof items[0]);
    if (operand->items == NULL) return PTX_NO_MEMORY(reader);
    memcpy(operand->items, items, count * sizeof items[0]);
    operand->count = count;
    /* Copies the unresolved names into the arena. */
    for (struct ptx_fixup *fixup = reader->fixups; fixup != before; fixup = fixup->next) {
        if (fixup->operand >= items && fixup->operand < items + count) {
            fixup->operand = operand->items + (fixup->operand - items);
        }
    }
    return true;
}

static bool read_address(struct ptx_reader *reader, struct ptx_operand *operand, unsigned depth) {
    operand->kind = PTX_OPERAND_ADDRESS;
    if (!read_operand_read_items(reader, operand, "]", depth + 1)) return false;
    if (operand->count == 0) return PTX_FAIL(reader, "expected an address");
    operand->integer = operand->items[0].integer;
    return true;
}

static bool read_one(struct ptx_reader *reader, struct ptx_operand *operand, unsigned depth) {
    operand->offset = reader->token->offset;
    if (depth > DEPTH_MAX) return PTX_FAIL(reader, "operands are nested too deeply");
    if (ptx_take(reader, "[")) return read_address(reader, operand, depth);
    if (ptx_take(reader, "{")) {
        operand->kind = PTX_OPERAND_VECTOR;
        return read_operand_read_items(reader, operand, "}", depth + 1);
    }
    if (depth == 0 && ptx_is_of(reader, "call") && ptx_take(reader, "(")) {
        operand->kind = PTX_OPERAND_LIST;
        return read_operand_read_items(reader, operand, ")", depth + 1);
    }
    bool negated = ptx_is(reader, "!") && reader->token[1].kind == SOFT_TOKEN_NAME;
    bool minus = ptx_is(reader, "-") && ptx_is_of(reader, "vmad") &&
                 reader->token[1].kind == SOFT_TOKEN_NAME;
    if (negated || minus) reader->token++;
    if (reader->token->kind != SOFT_TOKEN_NAME || ptx_is(reader, "WARP_SZ")) {
        return ptx_read_number(reader, operand);
    }
    operand->negated = negated;
    operand->minus = minus;
    if (!read_operand_read_name(reader, operand)) return false;
    if (operand->kind == PTX_OPERAND_SYMBOL && ptx_is(reader, "[") && operand->symbol != NULL &&
        operand->symbol->kind == PTX_VARIABLE) {
        return read_index(reader, operand);
    }
    if (operand->kind == PTX_OPERAND_REGISTER || operand->kind == PTX_OPERAND_SYMBOL) {
        if (!read_addend(reader, &operand->integer)) return false;
    }
    if (ptx_take(reader, "|")) {
        if (operand->chosen) return PTX_FAIL(reader, "a component of a vector is not allowed here");
        struct ptx_operand *pair = SOFT_ARENA_ARRAY(reader->arena, struct ptx_operand, 2);
        if (pair == NULL) return PTX_NO_MEMORY(reader);
        pair[0] = *operand;
        memset(operand, 0, sizeof *operand);
        operand->kind = PTX_OPERAND_PAIR;
        operand->offset = pair[0].offset;
        operand->items = pair;
        operand->count = 2;
        return read_one(reader, &pair[1], depth + 1);
    }
    return true;
}

bool ptx_read_operands(struct ptx_reader *reader, struct ptx_operand **operands, uint32_t *count) {
    struct ptx_operand list = {.kind = PTX_OPERAND_LIST};
    if (!read_operand_read_items(reader, &list, ";", 0)) return false;
    *operands = list.items;
    *count = list.count;
    return true;
}

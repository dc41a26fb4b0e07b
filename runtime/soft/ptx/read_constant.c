/*
 * Numbers and constant expressions. Source: PTX ISA 9.0, section 4.5 (Constants).
 *
 * Arithmetic uses 64 bits and wraps, as in the manual; division by zero is an error.
 */
#include "reader.h"

#include "tollens/cuda_abi.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* Nested parentheses and signs deeper than this are an attack on the stack, not a program. */
enum { DEPTH_MAX = 64 };

static bool read_conditional(struct ptx_reader *reader, unsigned depth, int64_t *value);

static bool parse_integer(struct ptx_reader *reader, int64_t *value) {
    const char *text = ptx_text(reader);
    size_t length = reader->token->length;
    unsigned base = 10;
    size_t at = 0;
    if (length > 0 && text[length - 1] == 'U') length--;
    if (length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        at = 2;
    } else if (length > 2 && text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) {
        base = 2;
        at = 2;
    } else if (length > 1 && text[0] == '0') {
        base = 8;
        at = 1;
    }
    uint64_t sum = 0;
    for (; at < length; at++) {
        char c = text[at];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                                : 99;
        if (digit >= base) return PTX_FAIL(reader, "'%c' is not a valid digit in this number", c);
        if (sum > (UINT64_MAX - digit) / base) {
            return PTX_FAIL(reader, "the number does not fit in 64 bits");
        }
        sum = sum * base + digit;
    }
    *value = (int64_t)sum;
    return true;
}

/* As strtod in the C locale: the program may have set one with a decimal comma. */
static double number_of(const char *text) {
    static _Atomic(locale_t) kept;
    if (kept == (locale_t)0) kept = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return strtod_l(text, NULL, kept);
}

static bool parse_float(struct ptx_reader *reader, struct ptx_operand *operand) {
    const char *text = ptx_text(reader);
    size_t length = reader->token->length;
    char copy[64];
    if (length >= sizeof copy) return PTX_FAIL(reader, "the number is too long");
    memcpy(copy, text, length);
    copy[length] = '\0';
    char form = length > 1 && copy[0] == '0' ? copy[1] : '\0';
    if (form == 'f' || form == 'F' || form == 'd' || form == 'D') {
        bool single = form == 'f' || form == 'F';
        size_t digits = single ? 8 : 16;
        if (length != digits + 2 || strspn(copy + 2, "0123456789abcdefABCDEF") != digits) {
            return PTX_FAIL(reader, "0%c needs exactly %zu hexadecimal digits", form, digits);
        }
        operand->kind = single ? PTX_OPERAND_FLOAT32 : PTX_OPERAND_FLOAT64;
        operand->bits = strtoull(copy + 2, NULL, 16);
    } else {
        double value = number_of(copy);
        operand->kind = PTX_OPERAND_FLOAT64;
        memcpy(&operand->bits, &value, sizeof value);
    }
    reader->token++;
    return true;
}

bool ptx_read_number(struct ptx_reader *reader, struct ptx_operand *operand) {
    operand->offset = reader->token->offset;
    bool minus = ptx_is(reader, "-") && reader->token[1].kind == SOFT_TOKEN_FLOAT;
    if (minus) reader->token++;
    if (reader->token->kind == SOFT_TOKEN_FLOAT) {
        if (!parse_float(reader, operand)) return false;
        if (minus) operand->bits ^= operand->kind == PTX_OPERAND_FLOAT32 ? 1u << 31 : 1ull << 63;
        return true;
    }
    operand->kind = PTX_OPERAND_INTEGER;
    return ptx_read_constant(reader, &operand->integer);
}

/* unary = ("-" | "+" | "~" | "!")* (integer | "(" constant ")" | cast unary) */
static bool read_unary(struct ptx_reader *reader, unsigned depth, int64_t *value) {
    if (depth > DEPTH_MAX) return PTX_FAIL(reader, "the expression is nested too deeply");
    if (reader->token->kind == SOFT_TOKEN_INTEGER) {
        if (!parse_integer(reader, value)) return false;
        reader->token++;
        return true;
    }
    if (ptx_take(reader, "-")) {
        if (!read_unary(reader, depth + 1, value)) return false;
        *value = (int64_t)(0 - (uint64_t)*value);
        return true;
    }
    if (ptx_take(reader, "+")) return read_unary(reader, depth + 1, value);
    if (ptx_take(reader, "~")) {
        if (!read_unary(reader, depth + 1, value)) return false;
        *value = ~*value;
        return true;
    }
    if (ptx_take(reader, "!")) {
        if (!read_unary(reader, depth + 1, value)) return false;
        *value = *value == 0;
        return true;
    }
    if (ptx_take(reader, "(")) {
        if (ptx_take(reader, ".s64") || ptx_take(reader, ".u64")) {
            return ptx_expect(reader, ")") && read_unary(reader, depth + 1, value);
        }
        return read_conditional(reader, depth + 1, value) && ptx_expect(reader, ")");
    }
    if (reader->token->kind == SOFT_TOKEN_NAME && ptx_is(reader, "WARP_SZ")) {
        reader->token++;
        *value = 32;
        return true;
    }
    return PTX_FAIL(reader, "expected a number");
}

/* The binary operators, weakest first; a level takes all operators of its row. */
static const char *const levels[][4] = {
    {"||"},       {"&&"},     {"|"},           {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">"},
    {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"},
};
enum { LEVELS = sizeof levels / sizeof levels[0] };

/* Whether the next tokens spell an operator: its characters are adjacent. */
static bool at_operator(const struct ptx_reader *reader, const char *spelling) {
    const struct soft_token *token = reader->token;
    const char *text = reader->diagnostic->text;
    for (size_t i = 0; spelling[i] != '\0'; i++) {
        if (token[i].kind != SOFT_TOKEN_MARK || text[token[i].offset] != spelling[i]) return false;
        if (i > 0 && token[i].offset != token[i - 1].offset + 1) return false;
    }
    /* "|" must not match the first half of "||", nor "<" that of "<<" and so on. */
    size_t length = strlen(spelling);
    const struct soft_token *after = &token[length];
    if (length == 1 && strchr("|&<>", spelling[0]) != NULL && after->kind == SOFT_TOKEN_MARK &&
        after->offset == token->offset + 1 && text[after->offset] == spelling[0]) {
        return false;
    }
    return true;
}

static bool read_constant_apply(struct ptx_reader *reader, const char *spelling, int64_t *value,
                                int64_t right) {
    uint64_t a = (uint64_t)*value, b = (uint64_t)right;
    switch (spelling[0]) {
    case '+':
        *value = (int64_t)(a + b);
        break;
    case '-':
        *value = (int64_t)(a - b);
        break;
    case '*':
        *value = (int64_t)(a * b);
        break;
    case '/':
    case '%':
        if (right == 0) return PTX_FAIL(reader, "division by zero");
        if (right == -1) {
            *value = spelling[0] == '/' ? (int64_t)(0 - a) : 0;
        } else {
            *value = spelling[0] == '/' ? *value / right : *value % right;
        }
        break;
    case '<':
        *value = spelling[1] == '<'   ? (b < 64 ? (int64_t)(a << b) : 0)
                 : spelling[1] == '=' ? *value <= right
                                      : *value < right;
        break;
    case '>':
        *value = spelling[1] == '>'   ? (b < 64 ? (int64_t)(a >> b) : 0)
                 : spelling[1] == '=' ? *value >= right
                                      : *value > right;
        break;
    case '=':
        *value = a == b;
        break;
    case '!':
        *value = a != b;
        break;
    case '&':
        *value = spelling[1] == '&' ? a != 0 && b != 0 : (int64_t)(a & b);
        break;
    case '^':
        *value = (int64_t)(a ^ b);
        break;
    default:
        *value = spelling[1] == '|' ? a != 0 || b != 0 : (int64_t)(a | b);
        break;
    }
    return true;
}

static bool read_level(struct ptx_reader *reader, unsigned level, unsigned depth, int64_t *value) {
    if (level == LEVELS) return read_unary(reader, depth, value);
    if (!read_level(reader, level + 1, depth, value)) return false;
    for (;;) {
        const char *found = NULL;
        for (int i = 0; i < 4 && levels[level][i] != NULL && found == NULL; i++) {
            if (at_operator(reader, levels[level][i])) found = levels[level][i];
        }
        if (found == NULL) return true;
        reader->token += strlen(found);
        int64_t right = 0;
        if (!read_level(reader, level + 1, depth, &right)) return false;
        if (!read_constant_apply(reader, found, value, right)) return false;
    }
}

/* conditional = level ("?" conditional ":" conditional)? */
static bool read_conditional(struct ptx_reader *reader, unsigned depth, int64_t *value) {
    int64_t condition = 0, yes = 0, no = 0;
    if (depth > DEPTH_MAX) return PTX_FAIL(reader, "the expression is nested too deeply");
    if (!read_level(reader, 0, depth, &condition)) return false;
    *value = condition;
    if (!ptx_take(reader, "?")) return true;
    if (!read_conditional(reader, depth + 1, &yes) || !ptx_expect(reader, ":") ||
        !read_conditional(reader, depth + 1, &no)) {
        return false;
    }
    *value = condition != 0 ? yes : no;
    return true;
}

/* Whether this is a number alone, as in most cases: the operators are ten levels deep. */
static bool is_alone(const struct ptx_reader *reader) {
    const char after = reader->token[1].first;
    return reader->token->kind == SOFT_TOKEN_INTEGER &&
           (after == ']' || after == ';' || after == ',');
}

bool ptx_read_constant(struct ptx_reader *reader, int64_t *value) {
    int64_t result = 0;
    if (is_alone(reader)) return read_unary(reader, 0, value);
    if (!read_conditional(reader, 0, &result)) return false;
    *value = result;
    return true;
}

bool ptx_read_unary(struct ptx_reader *reader, int64_t *value) {
    return read_unary(reader, 0, value);
}

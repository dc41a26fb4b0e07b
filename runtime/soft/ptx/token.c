/*
 * The lexer: one pass without states; it skips comments and white space. Words are found with a
 * table of characters, because large texts consist mostly of words.
 */
#include "token.h"

#include "tollens/cuda_abi.h"

#include <string.h>

/* The classes of characters. The '\0' after the text has none. */
enum { BLANK = 1, NAME_START = 2, NAME_PART = 4, DIGIT = 8, MARK = 16 };
enum { S_ = BLANK, L_ = NAME_START | NAME_PART, D_ = NAME_PART | DIGIT, M_ = MARK, P_ = MARK | 2 };
static const uint8_t classes[256] = {
    0,  0,  0,  0,  0,  0,  0,  0,  0,  S_, S_, S_, S_, S_, 0,  0,  /* \t \n \v \f \r */
    0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  /* */
    S_, M_, 0,  0,  L_, P_, M_, 0,  M_, M_, M_, M_, M_, M_, M_, M_, /*   !"#$%&'()*+,-./ */
    D_, D_, D_, D_, D_, D_, D_, D_, D_, D_, M_, M_, M_, M_, M_, M_, /* 0123456789:;<=>? */
    M_, L_, L_, L_, L_, L_, L_, L_, L_, L_, L_, L_, L_, L_, L_, L_, /* @ABCDEFGHIJKLMNO */
    L_, L_, L_, L_, L_, L_, L_, L_, L_, L_, L_, M_, 0,  M_, M_, L_, /* PQRSTUVWXYZ[\]^_ */
    0,  L_, L_, L_, L_, L_, L_, L_, L_, L_, L_, L_, L_, L_, L_, L_, /* `abcdefghijklmno */
    L_, L_, L_, L_, L_, L_, L_, L_, L_, L_, L_, M_, M_, M_, M_, 0,  /* pqrstuvwxyz{|}~ */
};

static bool token_is(char c, unsigned class) {
    return (classes[(unsigned char)c] & class) != 0;
}

static bool is_name_start(char c) {
    return token_is(c, NAME_START);
}

static bool token_is_digit(char c) {
    return token_is(c, DIGIT);
}

static bool is_name_part(char c) {
    return token_is(c, NAME_PART);
}

struct lexer {
    struct soft_diagnostic *diagnostic;
    const char *text;
    size_t at, length;
};

static char token_peek(const struct lexer *lexer, size_t ahead) {
    return lexer->at + ahead < lexer->length ? lexer->text[lexer->at + ahead] : '\0';
}

/* Whether a line of the C preprocessor begins here: it names a file, and is not PTX. */
static bool at_line_marker(const struct lexer *lexer) {
    size_t at = lexer->at;
    if (token_peek(lexer, 0) != '#') return false;
    while (at > 0 && (lexer->text[at - 1] == ' ' || lexer->text[at - 1] == '\t')) at--;
    return at == 0 || lexer->text[at - 1] == '\n';
}

/* Skips white space, both kinds of comment, and the C preprocessor's line markers. */
static bool skip_blank(struct lexer *lexer) {
    for (;;) {
        char c = token_peek(lexer, 0);
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v') {
            lexer->at++;
        } else if ((c == '/' && token_peek(lexer, 1) == '/') || at_line_marker(lexer)) {
            while (lexer->at < lexer->length && lexer->text[lexer->at] != '\n') lexer->at++;
        } else if (c == '/' && token_peek(lexer, 1) == '*') {
            size_t begin = lexer->at;
            lexer->at += 2;
            while (lexer->at < lexer->length &&
                   !(token_peek(lexer, 0) == '*' && token_peek(lexer, 1) == '/')) {
                lexer->at++;
            }
            if (lexer->at >= lexer->length) {
                return soft_error(lexer->diagnostic, begin, CUDA_ERROR_INVALID_PTX,
                                  "unterminated comment");
            }
            lexer->at += 2;
        } else {
            return true;
        }
    }
}

/* Whether this is a decimal point: followed by digits, or by nothing that it could be the dot
 * of. */
static bool at_point(const struct lexer *lexer) {
    char next = token_peek(lexer, 1);
    return token_peek(lexer, 0) == '.' &&
           (token_is_digit(next) || (!is_name_start(next) && next != '.'));
}

/* Whether a number begins with its point: ".5", ".5e3"; ".2d" is a word. */
static bool is_fraction(const struct lexer *lexer) {
    size_t at = 1;
    while (token_is_digit(token_peek(lexer, at))) at++;
    char c = token_peek(lexer, at);
    bool exponent = c == 'e' || c == 'E';
    return at > 1 && (exponent || !is_name_part(c));
}

/* number = digits | "0x" hex | "0b" bits | "0f" hex{8} | "0d" hex{16} | decimal with . or e */
static enum soft_token_kind skip_number(struct lexer *lexer) {
    char second = token_peek(lexer, 1);
    if (token_peek(lexer, 0) == '0' && second != '\0' && strchr("xXbBfFdD", second) != NULL) {
        bool is_float = strchr("fFdD", second) != NULL;
        lexer->at += 2;
        while (is_name_part(token_peek(lexer, 0)) && token_peek(lexer, 0) != '$') lexer->at++;
        return is_float ? SOFT_TOKEN_FLOAT : SOFT_TOKEN_INTEGER;
    }
    enum soft_token_kind kind = SOFT_TOKEN_INTEGER;
    while (token_is_digit(token_peek(lexer, 0))) lexer->at++;
    if (at_point(lexer)) {
        kind = SOFT_TOKEN_FLOAT;
        lexer->at++;
        while (token_is_digit(token_peek(lexer, 0))) lexer->at++;
    }
    char sign = token_peek(lexer, 1);
    if ((token_peek(lexer, 0) == 'e' || token_peek(lexer, 0) == 'E') &&
        (token_is_digit(sign) ||
         ((sign == '+' || sign == '-') && token_is_digit(token_peek(lexer, 2))))) {
        kind = SOFT_TOKEN_FLOAT;
        lexer->at += 2;
        while (token_is_digit(token_peek(lexer, 0))) lexer->at++;
    }
    if (token_peek(lexer, 0) == 'U') lexer->at++;
    return kind;
}

static void skip_dotted(struct lexer *lexer) {
    lexer->at++;
    for (;;) {
        while (is_name_part(token_peek(lexer, 0))) lexer->at++;
        if (token_peek(lexer, 0) != ':' || token_peek(lexer, 1) != ':' ||
            !is_name_part(token_peek(lexer, 2)))
            break;
        lexer->at += 2;
    }
}

static bool skip_string(struct lexer *lexer) {
    size_t begin = lexer->at++;
    while (token_peek(lexer, 0) != '"') {
        if (lexer->at >= lexer->length || lexer->text[lexer->at] == '\n') {
            return soft_error(lexer->diagnostic, begin, CUDA_ERROR_INVALID_PTX,
                              "unterminated string");
        }
        lexer->at += token_peek(lexer, 0) == '\\' && lexer->at + 1 < lexer->length ? 2 : 1;
    }
    lexer->at++;
    return true;
}

/* A number that begins with a digit, or with its point. Most are digits alone. */
static enum soft_token_kind skip_any_number(struct lexer *lexer) {
    const char *p = lexer->text + lexer->at;
    while (token_is_digit(*p)) p++;
    if (is_name_part(*p) || *p == '.') return skip_number(lexer);
    lexer->at = (size_t)(p - lexer->text);
    return SOFT_TOKEN_INTEGER;
}

static void skip_word(struct lexer *lexer) {
    const char *p = lexer->text + lexer->at + 1;
    while (is_name_part(*p)) p++;
    lexer->at = (size_t)(p - lexer->text);
}

static bool next_token(struct lexer *lexer, struct soft_token *token) {
    while (token_is(lexer->text[lexer->at], BLANK)) lexer->at++;
    char c = lexer->text[lexer->at];
    if (c == '/' || c == '#') {
        if (!skip_blank(lexer)) return false;
        c = lexer->text[lexer->at];
    }
    size_t begin = lexer->at;
    char next = lexer->at < lexer->length ? lexer->text[lexer->at + 1] : '\0';
    if (is_name_start(c) && (c != '%' || is_name_part(next))) {
        token->kind = SOFT_TOKEN_NAME;
        skip_word(lexer);
    } else if (token_is_digit(c)) {
        token->kind = (uint8_t)skip_any_number(lexer);
    } else if (c == '.' && token_is_digit(next) && is_fraction(lexer)) {
        token->kind = (uint8_t)skip_number(lexer);
    } else if (c == '.' && is_name_part(next)) {
        token->kind = SOFT_TOKEN_DOTTED;
        skip_dotted(lexer);
    } else if (token_is(c, MARK)) {
        token->kind = SOFT_TOKEN_MARK;
        lexer->at++;
    } else if (begin >= lexer->length) {
        token->kind = SOFT_TOKEN_END;
    } else if (c == '"') {
        token->kind = SOFT_TOKEN_STRING;
        if (!skip_string(lexer)) return false;
    } else {
        return soft_error(lexer->diagnostic, begin, CUDA_ERROR_INVALID_PTX,
                          "invalid character (code %u)", (unsigned char)c);
    }
    token->offset = (uint32_t)begin;
    token->length = (uint32_t)(lexer->at - begin);
    token->first = c;
    return true;
}

bool soft_tokenize(struct soft_diagnostic *diagnostic, struct soft_arena *arena,
                   struct soft_token **result, size_t *result_count) {
    struct lexer lexer = {
        .diagnostic = diagnostic, .text = diagnostic->text, .length = diagnostic->length};
    if (lexer.length >= UINT32_MAX) {
        return soft_error(diagnostic, 0, CUDA_ERROR_INVALID_PTX, "the PTX is 4 GiB or larger");
    }
    size_t count = 0, room = 0;
    struct soft_token *tokens = NULL;
    do {
        if (count == room) {
            size_t more = room > 0 ? room * 2 : lexer.length / 2 + 64;
            struct soft_token *bigger = soft_arena_raw(arena, more * sizeof *bigger);
            if (bigger == NULL) {
                return soft_error(diagnostic, lexer.at, CUDA_ERROR_OUT_OF_MEMORY,
                                  "out of host memory");
            }
            if (count > 0) memcpy(bigger, tokens, count * sizeof tokens[0]);
            tokens = bigger;
            room = more;
        }
        if (!next_token(&lexer, &tokens[count])) return false;
    } while (tokens[count++].kind != SOFT_TOKEN_END);
    *result = tokens;
    *result_count = count;
    return true;
}
